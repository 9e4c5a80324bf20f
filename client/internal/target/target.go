// Package target is about request targets (RFC 9112 §3.2.1) and nothing else: what net/http sends for a URL, and what
// servers make of its dot segments (RFC 3986 §3.3, §5.2.4). It decides nothing.
package target

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unsafe"

	"github.com/robotsgate/robotsgate/client/internal/say"
)

// longest is how long a target may be that is decided on. The time of a decision grows
// with the length of the target multiplied by that of the file. Few servers take a target
// half as long.
const longest = 16 << 10

// Of returns the request target in origin form (RFC 9112 §3.2.1) that net/http sends for u: the
// escaped path, and the query unchanged. The result may live in buf and must not outlast it.
//
// It is u.RequestURI without the allocation, but refuses what servers read differently: a
// path without a leading slash (the asterisk of "OPTIONS *" too), and a query with a space
// or a "#", which may end the target early. net/http itself refuses control characters. A
// target longer than longest is refused as well: a redirect can be a megabyte.
func Of(buf []byte, u *url.URL) (string, error) { return OfPath(buf, Path(u), u) }

// OfPath is Of if Path is known.
func OfPath(buf []byte, path string, u *url.URL) (string, error) {
	if path == "" {
		path, buf = escapedPath(buf, u)
	}
	if path[0] != '/' {
		return "", fmt.Errorf("client: the URL's path %q does not start with a slash", say.Cut(u.EscapedPath())) // path stays on the stack
	}
	if len(path)+len(u.RawQuery) >= longest { // perhaps, with the question mark
		if target := u.RequestURI(); len(target) > longest {
			return "", fmt.Errorf("client: the URL's path and query %q are %d bytes: shorten them to %d, "+
				"the most that is decided on", say.Cut(target), len(target), longest)
		}
	}
	if !u.ForceQuery && u.RawQuery == "" {
		return path, nil
	}
	if strings.IndexByte(u.RawQuery, ' ') >= 0 || strings.IndexByte(u.RawQuery, '#') >= 0 {
		return "", fmt.Errorf("client: the URL's query %q holds a space or a #: write them as %%20 and %%23",
			say.Cut(u.RawQuery))
	}
	if n := len(path) + 1 + len(u.RawQuery); n > cap(buf) {
		return path + "?" + u.RawQuery, nil
	}
	if len(buf) == 0 {
		buf = append(buf, path...)
	}
	return view(append(append(buf, '?'), u.RawQuery...)), nil
}

// view returns the bytes of a buffer as a string. No byte is written again while the string is
// in use: each caller of Of passes its own buffer, and keeps the string no longer.
func view(buf []byte) string { return unsafe.String(unsafe.SliceData(buf), len(buf)) }

// Path returns u.EscapedPath if that stands in u, or else nothing. No path at all is "/".
func Path(u *url.URL) string {
	switch {
	case u.RawPath != "" && isEscaped(u.RawPath, u.Path):
		return u.RawPath
	case u.Path == "":
		return "/"
	}
	path := u.Path // read once, not at each byte
	for i := range len(path) {
		if pathBytes[path[i]]&isPlain == 0 {
			return ""
		}
	}
	return path
}

// escapedPath is u.EscapedPath of a path that begins with a slash and does not stand in u. It stands in buf, if that
// has room for it.
func escapedPath(buf []byte, u *url.URL) (string, []byte) {
	n := len(u.Path)
	for i := range len(u.Path) {
		if pathBytes[u.Path[i]]&isPlain == 0 {
			n += len("FF")
		}
	}
	if n > cap(buf) {
		return u.EscapedPath(), buf
	}
	const digits = "0123456789ABCDEF"
	for i := range len(u.Path) {
		if c := u.Path[i]; pathBytes[c]&isPlain != 0 {
			buf = append(buf, c)
		} else {
			buf = append(buf, '%', digits[c>>4], digits[c&15])
		}
	}
	return view(buf), buf
}

// pathBytes tells, in isPlain and inRaw, of each byte whether net/url keeps it as it is in a Path, and in a RawPath.
// It is asked, because what it does decides what is sent.
var pathBytes = func() (set [256]uint8) {
	for c := range set {
		path := string([]byte{'/', byte(c)})
		if (&url.URL{Path: path}).EscapedPath() == path {
			set[c] |= isPlain
		}
		if (&url.URL{Path: path, RawPath: path}).EscapedPath() == path {
			set[c] |= inRaw
		}
	}
	return set
}()

const (
	isPlain = 1 << iota
	inRaw
)

// isEscaped reports whether raw is a form of path (RFC 3986 §2.1) that net/url takes.
func isEscaped(raw, path string) bool {
	n := 0
	for i := 0; i < len(raw); i, n = i+1, n+1 {
		c := raw[i]
		if c == '%' {
			if i+2 >= len(raw) {
				return false
			}
			octet, err := strconv.ParseUint(raw[i+1:i+3], 16, 8)
			if err != nil {
				return false
			}
			c, i = byte(octet), i+2
		} else if pathBytes[c]&inRaw == 0 {
			return false
		}
		if n == len(path) || path[n] != c {
			return false
		}
	}
	return n == len(path)
}
