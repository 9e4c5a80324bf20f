package client_test

import (
	"testing"

	"github.com/robotsgate/robotsgate/client"
)

// RFC 9309 §2.2.2: "The /robots.txt URI is implicitly allowed". No other is.
func TestOnlyRobotsTxtItselfIsAllowedUnasked(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: "User-agent: *\nDisallow: /\n"}, UserAgent: "ExampleBot/1.0"}
	for target, want := range map[string]bool{
		"/robots.txt":     true,
		"/robots.txt.bak": false,
		"/robots.txt/":    false,
		"/robots.txt/x":   false,
		"/robots.txt?x=1": false,
		"/robots.tx":      false,
		"/Robots.txt":     false,
		"/a/robots.txt":   false,
	} {
		d, err := rt.Decide(t.Context(), mustParse(t, "http://a.example"+target))
		if err != nil || d.Allowed != want {
			t.Errorf("%s: %v, %v, want it allowed: %v", target, d, err, want)
		}
	}
}
