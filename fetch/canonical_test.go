package fetch

import (
	"strings"
	"testing"
)

// FuzzIsCanonical: the warm path takes only what the long way would not change.
func FuzzIsCanonical(f *testing.F) {
	for _, authority := range []string{
		"example.com", "a.b.c.example.com", "xn--mller-kva.eu", "ex_ample.com", "-a.example.com", "localhost", "a-", "a",
		"example.com:8080", "example.com:80", "example.com:443", "example.com:080", "example.com:0", "example.com:65535",
		"example.com:65536", "example.com:99999", "example.com:", "example.com:8a", "example.com:+8", ":80", "", ".", "..",
		"192.0.2.1", "192.0.2.1:8080", "192.0.2.01", "192.0.2.256", "1.2.3", "1.2.3.4.5", "127.1", "0x7f.1", "1.0x1", "a.0x1",
		"example.3com", "example.com.", ".example.com", "a..b", "Example.com", "[::1]", "[::1]:80", "::1", "a/b", "a b", "a%b",
		strings.Repeat("a", 63), strings.Repeat("a", 64), "b." + strings.Repeat("a", 64), strings.Repeat("a", 64) + ".b",
		strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 126) + "aa", strings.Repeat("a.", 126) + "a:8080",
	} {
		f.Add(authority)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		for _, scheme := range []scheme{schemeHTTP, schemeHTTPS} {
			port := ownPorts[scheme]
			same, err := canonicalAuthority(scheme, authority)
			if isCanonical(authority, port) && (err != nil || same != authority) {
				t.Errorf("%s (%s): %s is canonical for one way, and %q, %v for the other", scheme, port, authority, same, err)
			}
		}
	})
}
