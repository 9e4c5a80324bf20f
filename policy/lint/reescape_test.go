package lint

import (
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

// A suggestion changes how a pattern is written, not what it means: policy's normal form of both is one.
func FuzzReescape(f *testing.F) {
	for _, v := range []string{"/", "/%", "/100%*", "/%7euser", "/%c3%bc", "/ü", "/a%2fb", "/%2A%24$", "/*.gif$", "/%23", "/a b", "/\xff"} {
		f.Add(v)
	}
	normal := func(v string) string {
		return policy.Parse([]byte("User-agent: *\nDisallow: " + v)).String()
	}
	f.Fuzz(func(t *testing.T, v string) {
		if v = "/" + v; len(v) > maxReplacement/3 || strings.ContainsAny(v, "\r\n#") || strings.TrimSpace(v) != v {
			t.Skip("no pattern that is rewritten whole")
		}
		if got, want := normal(reescape(v)), normal(v); got != want {
			t.Errorf("%q is rewritten as %q: means %q, want %q", v, reescape(v), got, want)
		}
	})
}
