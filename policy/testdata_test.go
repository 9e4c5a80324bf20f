package policy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// vector is a vectors.Case of testdata/decide. Its body is a robots.txt file to the last byte.
//
//	dialects: in which it holds
//	ask:      token, target, "allowed" or "disallowed", number of the line that
//	          decides or 0; as many as there are questions
type vector struct {
	section  string
	dialects []policy.Dialect
	asks     []ask
	body     []byte
}

type ask struct {
	token, target string
	allowed       bool
	line          int
}

// parseVector accepts nothing that it does not know.
func parseVector(text string) (v vector, err error) {
	c, err := vectors.ReadCase(text, []string{"Dialects", "Ask"})
	if err != nil {
		return v, err
	}
	v.section, v.body = c.Head.Get("Section"), []byte(c.Body)
	if v.dialects, err = vectors.Named[policy.Dialect](c.Head.Get("Dialects")); err != nil {
		return v, err
	}
	for _, value := range c.Head["Ask"] {
		a, err := parseAsk(value)
		if err != nil {
			return v, err
		}
		v.asks = append(v.asks, a)
	}
	return v, nil
}

// parseAsk reads a question from both ends, for a target may hold spaces.
func parseAsk(s string) (a ask, err error) {
	f := strings.Fields(s)
	if len(f) < 4 || f[len(f)-2] != "allowed" && f[len(f)-2] != "disallowed" {
		return a, fmt.Errorf("ask %q is not \"token target allowed|disallowed line\"", s)
	}
	a.token, a.target = f[0], strings.Join(f[1:len(f)-2], " ")
	a.allowed = f[len(f)-2] == "allowed"
	a.line, err = strconv.Atoi(f[len(f)-1])
	return a, err
}

func TestVectors(t *testing.T) {
	covered := map[policy.Dialect]bool{}
	for name, v := range vectors.Cases(t, "testdata/decide", parseVector) {
		t.Run(name, func(t *testing.T) {
			for _, d := range v.dialects {
				covered[d] = true
				p := d.Parse(v.body)
				for _, a := range v.asks {
					got := p.Decide(a.token, a.target)
					if got.Allowed != a.allowed || got.Rule.Line != a.line {
						t.Errorf("%v, %s: %s asks for %s: got %v (line %d), want allowed %v by line %d",
							d, v.section, a.token, a.target, got, got.Rule.Line, a.allowed, a.line)
					}
				}
			}
		})
	}
	for _, d := range dialects {
		if !covered[d] {
			t.Errorf("no vector is about %v", d)
		}
	}
}

func TestVectorReaderIsStrict(t *testing.T) {
	good := "section: 2.2\nkind: standard\ncomment: c\ndialects: RFC9309\nask: a / allowed 0\n\nbody\n"
	v := vectors.CheckStrict(t, parseVector, good, [][2]string{
		{"kind:", "kin:"}, {"standard", "maybe"}, {"RFC9309", "RFC"}, {"allowed", "yes"}, {" 0", " zero"}, {"\n\n", "\n"},
	}...)
	if string(v.body) != "body\n" {
		t.Errorf("got the body %q of %q", v.body, good)
	}
}
