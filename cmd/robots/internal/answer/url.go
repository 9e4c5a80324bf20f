package answer

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Every subcommand reads a URL by the same rule:
//
//   - "http://..." and "https://..." are URLs, and "ftp://..." for a dialect that reads FTP;
//   - "//site/..." is a URL without its scheme (RFC 3986 section 4.2), which is https;
//   - "/..." is a path, which only match takes: the others need a site;
//   - without either, text that begins with a site is an https URL. A site is a name under a
//     public suffix ("example.com/a"), localhost, or an IP address.
//
// White space around a URL is no part of it. Everything else is an error, never a guess:
// "private/2" may be a path without its slash, and "page.html" is no site. Where people write
// paths, as for match, the last case is an error too: .py and .sh are public suffixes, and
// "setup.py" is a file more often than a site. Records of match --jsonl are by programs.

// MaxURL is how long a URL may be, or a line of a list, in bytes.
const MaxURL = 64 << 10

func tooLong(text string) error {
	if len(text) > MaxURL {
		return fmt.Errorf("longer than %d bytes", MaxURL)
	}
	return nil
}

// ReadURL reads a URL whose site is to be asked, and which a dialect reads.
func ReadURL(d policy.Dialect, text string) (*url.URL, error) {
	full, err := splitURL(d, text, false, true)
	if err != nil {
		return nil, err
	}
	if full[0] == '/' {
		return nil, fmt.Errorf("%s is a path and names no site: write https://example.com%s", Quoted(text), Brief(Redacted(full)))
	}
	u, err := url.Parse(full)
	if err != nil {
		return nil, NotURL(text, err)
	}
	return resolved(u), nil
}

// resolved is u without dot segments (RFC 3986 §5.2.4): browsers, and most programs, ask for no other. As in the URL
// Standard, an escaped dot is one, too.
func resolved(u *url.URL) *url.URL {
	if !hasDots(u.EscapedPath()) {
		return u
	}
	plain := *u
	segments := strings.Split(u.RawPath, "/")
	for i, s := range segments {
		if hasDots(s) {
			segments[i] = strings.NewReplacer("%2e", ".", "%2E", ".").Replace(s)
		}
	}
	plain.RawPath = strings.Join(segments, "/")
	return u.ResolveReference(&plain)
}

// hasDots reports whether a path has a dot segment, escaped or not.
func hasDots(path string) bool {
	for s := range strings.SplitSeq(path, "/") {
		if s = strings.ReplaceAll(strings.ToLower(s), "%2e", "."); s == "." || s == ".." {
			return true
		}
	}
	return false
}

// HasDots reports whether the path of a URL, as it was written, has a dot segment.
func HasDots(text string) bool {
	path, _, _ := strings.Cut(TargetOf(text), "?")
	return hasDots(path)
}

// Redacted is a URL as it was written, without the password in it.
func Redacted(text string) string {
	start := strings.Index(text, "//") + len("//")
	if start < len("//") {
		start = 0
	}
	authority := authorityOf(text[start:])
	colon, at := strings.IndexByte(authority, ':'), strings.LastIndexByte(authority, '@')
	if colon < 0 || at < colon {
		return text
	}
	return text[:start+colon] + ":xxxxx" + text[start+at:]
}

func ReadSite(d policy.Dialect, text string) (*url.URL, fetch.Origin, error) {
	u, err := ReadURL(d, text)
	if err != nil {
		return nil, fetch.Origin{}, err
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		return nil, fetch.Origin{}, NotURL(text, err)
	}
	return u, o, nil
}

// ReadTarget returns what of a URL or path, which a dialect reads, is compared with rules, as written. sites tells
// whether a URL may begin with its site.
func ReadTarget(d policy.Dialect, text string, sites bool) (string, error) {
	full, err := splitURL(d, text, true, sites)
	if err != nil {
		return "", err
	}
	if scheme, after, _ := strings.Cut(full, "://"); full[0] != '/' {
		if _, err := originOf(scheme, authorityOf(after)); err != nil {
			return "", NotURL(text, err)
		}
	}
	return TargetOf(full), nil
}

// splitURL reads text by the rule above, and returns a URL with its scheme, or a path with its slash. It leaves the host
// behind a scheme, and escapes, unchecked. Its errors offer a path as a remedy if paths are taken.
func splitURL(d policy.Dialect, text string, paths, sites bool) (string, error) {
	if err := tooLong(text); err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "//") {
		text = "https:" + text
	}
	scheme, after, found := strings.Cut(text, "://")
	if found && strings.ContainsAny(scheme, "/?#") { // /a?b=http://c has none
		found = false
	}
	switch at := strings.IndexFunc(text, Blank); {
	case text == "":
		return "", errors.New(`"" is no URL: write one, such as https://example.com/`)
	case at >= 0 && (found || text[0] == '/'):
		return "", blankIn(text, at)
	case text[0] == '/':
		return text, nil
	case !found:
		return splitBare(text, paths, sites)
	}
	scheme = strings.ToLower(scheme)
	switch authority := authorityOf(after); {
	case scheme != "http" && scheme != "https" && scheme != "ftp":
		return "", fmt.Errorf("%s: robots.txt is about http and https only", Quoted(text))
	case authority == "":
		return "", fmt.Errorf("%s names no host", Quoted(text))
	case strings.Contains(authority, ";"): // the end of the host to some, a part of it to others
		return "", fmt.Errorf("%s has a semicolon in its host", Quoted(text))
	case scheme == "ftp" && d != policy.Google:
		return "", fmt.Errorf("%s: robots.txt is about http and https only; the dialect google reads it over ftp, too (--as google)", Quoted(text))
	default:
		return text, nil
	}
}

// splitBare is splitURL for text with neither a scheme nor a slash in front: a site, or an error that says
// what to write.
func splitBare(text string, paths, sites bool) (string, error) {
	authority := authorityOf(text)
	if scheme := strings.ToLower(authority); scheme == "http:" || scheme == "https:" {
		return "", fmt.Errorf("%s lacks a slash: write %s//%s", Quoted(text), scheme, Brief(strings.TrimLeft(text[len(scheme):], "/")))
	}
	known, possible := isSite(authority)
	switch at := strings.IndexFunc(text, Blank); {
	case known && sites && at >= 0:
		return "", blankIn(text, at)
	case known && sites:
		return "https://" + text, nil
	case !possible:
		return "", fmt.Errorf("%s is no http or https URL", Quoted(text))
	case paths:
		return "", fmt.Errorf("%s is neither a URL nor a path: write https://%s or /%[2]s",
			Quoted(text), Brief(Redacted(text)))
	default:
		return "", fmt.Errorf("%s is no http or https URL: write https://%s", Quoted(text), Brief(Redacted(text)))
	}
}

func blankIn(text string, at int) error {
	return fmt.Errorf("%s holds a blank or control character: write it as %%%02X", Quoted(text), text[at])
}

// authorityOf is what of text is before its path, query and fragment.
func authorityOf(text string) string {
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		return text[:i]
	}
	return text
}

// isSite reports whether an authority without a scheme can hardly be anything else, and whether it could be a host at
// all. There are words before a colon that are no hosts (mailto:), and files with a dot.
func isSite(authority string) (known, possible bool) {
	if strings.ContainsAny(authority, "@; ") {
		return false, false
	}
	o, err := originOf("https", authority)
	if err != nil {
		return false, false
	}
	host := o.RobotsURL().Hostname()
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true, true
	}
	// A suffix that the list does not have is one label, and not icann: "page.html" is no site.
	suffix, icann := publicsuffix.PublicSuffix(host)
	return host != suffix && (icann || strings.Contains(suffix, ".")), true
}

// originOf is the origin of a URL in parts. It checks the host as the origin of a request is checked.
func originOf(scheme, authority string) (fetch.Origin, error) {
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		return fetch.Origin{}, err
	}
	return fetch.OriginOf(u)
}

// TargetOf returns what of a URL is compared with rules: path, parameters and query, as
// written, without the fragment, and always with a slash in front. Nothing is decoded,
// resolved or checked.
//
// An authority ends at the first of / ? ; and what has neither a scheme nor a slash in front
// is a host.
func TargetOf(url string) string {
	rest := strings.TrimPrefix(url, "//")
	// "://" is the end of a scheme only before any path: /a?b=http://c has none.
	if scheme, after, found := strings.Cut(rest, "://"); found && !strings.ContainsAny(scheme, "/?;") {
		rest = after
	}
	rest, _, _ = strings.Cut(rest, "#")
	switch start := strings.IndexAny(rest, "/?;"); {
	case start < 0:
		return "/"
	case rest[start] != '/':
		return "/" + rest[start:]
	default:
		return rest[start:]
	}
}

// Blank reports whether r is a space or an ASCII control character, which no URL and no product token may hold.
func Blank(r rune) bool { return r <= ' ' || r == 0x7f }

func NotURL(text string, err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return fmt.Errorf("%s is no URL that could be asked for: %w", Quoted(text), err)
}
