package target

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/client/internal/say"
)

// HasDotSegment reports whether a server might find a "." or ".." segment (RFC 3986 §3.3)
// in the path of target: with dots escaped, between slashes that are escaped or
// backslashes, or with parameters (RFC 3986 §3.3 on ";"). The path ends at the first "?";
// lighttpd 1.4.69 resolves what is before the last.
func HasDotSegment(target string) bool {
	if strings.IndexByte(target, '%') < 0 && !strings.Contains(target, "/.") {
		return false // nearly always
	}
	end := strings.LastIndexByte(target, '?')
	if end < 0 {
		end = len(target)
	}
	for i := range end {
		if n := separator(target[i:]); n > 0 && startsWithDotSegment(target[i+n:]) {
			return true
		}
	}
	return false
}

// separator returns the length of the separator of segments at the start of s, or 0.
func separator(s string) int {
	switch {
	case s[0] == '/':
		return 1
	case s[0] == '%' && len(s) >= 3 && (s[1] == '2' && s[2]|0x20 == 'f' || s[1] == '5' && s[2]|0x20 == 'c'):
		return 3
	}
	return 0
}

func startsWithDotSegment(s string) bool {
	dots := 0
	for ; ; dots++ {
		switch {
		case strings.HasPrefix(s, "."):
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return (dots == 1 || dots == 2) && (s == "" || s[0] == '?' || s[0] == ';' || separator(s) > 0)
		}
	}
}

// Forms yields what servers make of a target with dot segments: the target as it is, what is left of it without them,
// and so on, as another server behind the first may resolve the result again. The error says that there are too many.
func Forms(target string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		forms, size := []string{target}, 0
		for i := 0; i < len(forms); i++ {
			if size += len(forms[i]); size > most {
				yield("", fmt.Errorf("client: the URL's path and query %q have dot segments "+
					"that servers can read in too many ways: write it without", say.Cut(target)))
				return
			}
			if !yield(forms[i], nil) {
				return
			}
			first, last := strings.IndexByte(forms[i], '?'), strings.LastIndexByte(forms[i], '?')
			forms = appendResolved(forms, forms[i], first)
			if last > first { // see HasDotSegment
				forms = appendResolved(forms, forms[i], last)
			}
		}
	}
}

// most is how long all forms of a target may be together. Unless it was made to have
// many, a path has fewer than ten.
const most = 4 * longest

// appendResolved appends to forms the new ones that servers resolve target to, with the
// dot segments of its path removed. The path ends at the index end, or with the target if
// that is -1.
func appendResolved(forms []string, target string, end int) []string {
	path, query := target, ""
	if end >= 0 {
		path, query = target[:end], target[end:]
	}
	add := func(path string) {
		if f := path + query; !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	for _, unescape := range unescapings {
		for _, params := range []func(segment string) string{withParams, withoutParams, withoutParamsOfDots} {
			segments := strings.Split(unescape.Replace(path), "/")[1:]
			for i, s := range segments {
				segments[i] = params(s)
			}
			add(withoutDotSegments(segments)) // whose empty segments are left out when the result is resolved again
			add(withoutDotSegments(strings.Split(withoutEmptySegments("/"+strings.Join(segments, "/")), "/")[1:]))
		}
	}
	return forms
}

// unescapings are what servers take for a dot and for a slash: an escaped dot always, an
// escaped slash if they unescape before they split, and a backslash on some systems. None of
// them unescapes twice.
var unescapings = []*strings.Replacer{
	strings.NewReplacer("%2e", ".", "%2E", "."),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%5c", "/", "%5C", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/"),
}

// Parameters of a segment begin with a semicolon (RFC 3986 §3.3). Servlet containers cut
// them off before they resolve; other servers know none.

func withParams(segment string) string { return segment }

func withoutParams(segment string) string {
	name, _, _ := strings.Cut(segment, ";")
	return name
}

func withoutParamsOfDots(segment string) string {
	if name := withoutParams(segment); name == "." || name == ".." {
		return name
	}
	return segment
}

// withoutDotSegments returns the path that the segments leave (RFC 3986 §5.2.4).
func withoutDotSegments(segments []string) string {
	var kept []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// withoutEmptySegments merges slashes.
func withoutEmptySegments(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
