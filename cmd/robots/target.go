package main

import "strings"

// targetOf returns what of a URL is compared with rules: path, parameters and query,
// as written, without the fragment, and always with a slash in front. It takes any
// text: a full URL, one without a scheme, or an origin-form path, as the records of
// "robots match" may hold either. Nothing is decoded, resolved or checked, so that
// odd URLs can be asked about octet for octet.
//
// An authority ends at the first of / ? ; and those of a URL without a scheme are
// told from a path by the slash in front alone: "example.com" is a host, "/a" a path.
func targetOf(url string) string {
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
