package proxy

import (
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// Where no rule forbids, no target is decided against, in any dialect.
func TestForbidsSeesEachRule(t *testing.T) {
	targets := []string{"/", "/a", "/a?b", "/index.html", "/robots.txt?", "/%2F", "/*", "/$", "//", "/private/x"}
	for text, open := range map[string]bool{
		"": true, "User-agent: *\nDisallow:\n": true, "User-agent: *\nAllow: /\n": true,
		"User-agent: *\nDisallow: /\nUser-agent: bot\nDisallow:\n":               true,
		"User-agent: *\nDisallow:\nUser-agent: bot\nDisallow: /x\n":              false,
		"User-agent: *\nDisallow: *\n":                                           false,
		"User-agent: *\nAllow: /\nDisallow: /\n":                                 false,
		"User-agent: bot\nDisallow:\nDisallow: /a$\n":                            false,
		"User-agent: bot\nCrawl-delay: 2\n":                                      true,
		"User-agent: *\nDisallow: /a\nUser-agent: bot\nCrawl-delay: 2\nAllow: /": true,
	} {
		for _, d := range answer.Dialects {
			p := d.Parse([]byte(text))
			if _, any := forbidsAny(p); any != strings.Contains(text, "Disallow: ") {
				t.Errorf("%v: %q: forbidsAny is %v", d, text, any)
			}
			_, is := forbids(p, "bot")
			if is == open {
				t.Errorf("%v: %q: forbids is %v", d, text, is)
			}
			for _, target := range targets {
				if !is && !p.Group("bot").Decide(target).Allowed {
					t.Errorf("%v: %q: %s is forbidden", d, text, target)
				}
			}
		}
	}
	_, is := forbids(policy.Unreachable(), "bot")
	if _, any := forbidsAny(policy.Unreachable()); !is || !any {
		t.Error("the unreachable forbids nothing")
	}
	for name, text := range vectors.Corpus(t) {
		for _, d := range answer.Dialects {
			p := d.Parse(text)
			_, any := forbidsAny(p)
			if _, is := forbids(p, "bot"); is {
				if !any {
					t.Errorf("%v: %s: something is forbidden", d, name)
				}
				continue
			}
			for _, target := range targets {
				if !p.Group("bot").Decide(target).Allowed {
					t.Errorf("%v: %s: %s is forbidden", d, name, target)
				}
			}
		}
	}
}
