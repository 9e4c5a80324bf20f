package policy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

// vector is a file of testdata/decide: a header of "key: value" lines, a blank
// line, and a robots.txt file to the last byte.
//
//	section:  where the rule is from, of RFC 9309 if it is a number
//	kind:     standard, or extension for what the RFC does not say
//	comment:  what the vector is about
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
	r := bufio.NewReader(strings.NewReader(text))
	head, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil {
		return v, err
	}
	v.section = head.Get("Section")
	v.body, _ = io.ReadAll(r) // of a strings.Reader
	for key := range head {
		if !slices.Contains([]string{"Section", "Kind", "Comment", "Dialects", "Ask"}, key) {
			return v, fmt.Errorf("unknown header key %q", key)
		}
	}
	for name := range strings.FieldsSeq(head.Get("Dialects")) {
		var d policy.Dialect
		if err := d.UnmarshalText([]byte(name)); err != nil {
			return v, err
		}
		v.dialects = append(v.dialects, d)
	}
	for _, value := range head["Ask"] {
		a, err := parseAsk(value)
		if err != nil {
			return v, err
		}
		v.asks = append(v.asks, a)
	}
	if kind := head.Get("Kind"); v.section == "" || head.Get("Comment") == "" ||
		kind != "standard" && kind != "extension" || len(v.dialects) == 0 || len(v.asks) == 0 {
		return v, fmt.Errorf("header lacks section, kind, comment, dialects or ask")
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
	names, err := filepath.Glob("testdata/decide/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no vectors", err)
	}
	covered := map[policy.Dialect]bool{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			v, err := parseVector(string(text))
			if err != nil {
				t.Fatal(err)
			}
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
	if v, err := parseVector(good); err != nil || !slices.Equal(v.body, []byte("body\n")) {
		t.Errorf("got %v, %v, want the body of %q", v, err, good)
	}
	for _, bad := range []string{
		strings.Replace(good, "kind:", "kin:", 1),
		strings.Replace(good, "standard", "maybe", 1),
		strings.Replace(good, "RFC9309", "RFC", 1),
		strings.Replace(good, "allowed", "yes", 1),
		strings.Replace(good, " 0", " zero", 1),
		strings.Replace(good, "\n\n", "\n", 1),
	} {
		if _, err := parseVector(bad); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}
