package usage_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// hold checks what is true of any statements: their number is bounded, those with a problem
// have no effect, their order makes no difference, and what For returns is one of them.
func hold(t *testing.T, said []usage.Statement) {
	t.Helper()
	if len(said) > 2*1025 {
		t.Errorf("got %d statements, want %d at most", len(said), 2*1025)
	}
	for _, label := range []string{"train-ai", "ai-use", "search", "use=full"} {
		p, by, _ := usage.For(said, usage.Label(label))
		backwards := slices.Clone(said)
		slices.Reverse(backwards)
		if q, _, _ := usage.For(backwards, usage.Label(label)); p != q {
			t.Errorf("%s: got %v, and %v of the same in another order", label, p, q)
		}
		if p != usage.Unknown && (by.Problem != "" || !slices.Contains(said, by)) {
			t.Errorf("%s: got %v by %+v, which is no statement of %+v", label, p, by, said)
		}
		for _, s := range said {
			if q, _, _ := usage.For([]usage.Statement{s}, usage.Label(label)); s.Problem != "" && q != usage.Unknown {
				t.Errorf("%+v has a problem, and says %v", s, q)
			}
		}
	}
}

// FuzzRobots: every statement is of its line, and no other group has a say.
func FuzzRobots(f *testing.F) {
	for _, v := range ownFacts(f) {
		f.Add(v.Robots, v.Token, v.Path)
	}
	f.Fuzz(func(t *testing.T, file, token, target string) {
		for d := policy.RFC9309; d <= policy.Original; d++ {
			p := d.Parse([]byte(file))
			said := usage.ParseRobots(p, token, target, "Google-Extended")
			hold(t, said)
			records := map[int]policy.Record{}
			for r := range p.Records("") {
				records[r.Line] = r
			}
			for _, s := range said {
				if s.In != "robots.txt" || s.By != "policy token" && s.Text != "" && records[s.Line].Value != s.Text {
					t.Errorf("%v: got %+v, line %d is %q", d, s, s.Line, records[s.Line].Value)
				}
				if s.By == "Content-Usage" && !p.Decide(token, target).Allowed {
					t.Errorf("%v: got %v of what may not be crawled", d, s)
				}
			}
		}
	})
}

// FuzzHeader: field lines of Content-Usage are one dictionary, those of Content-Signal are not.
func FuzzHeader(f *testing.F) {
	for _, v := range ownFacts(f) {
		f.Add(v.Value, strings.Join(v.Fields, "\n"), strings.Join(v.Header["Link"], ", "))
	}
	f.Fuzz(func(t *testing.T, signal, fields, link string) {
		lines := strings.Split(fields, "\n")
		said := usage.ParseHeader(http.Header{
			"Content-Usage": lines, "Content-Signal": {signal}, "Link": {link}, "Tdm-Reservation": {signal},
		})
		hold(t, said)
		each := usage.ParseHeader(http.Header{"Content-Usage": lines})
		joined := usage.ParseHeader(http.Header{"Content-Usage": {strings.Join(lines, ", ")}})
		if !slices.Equal(each, joined) {
			t.Errorf("%q: got %+v, joined %+v", lines, each, joined)
		}
		hold(t, usage.ParseMeta("tdm-reservation", signal, 0))
		for _, s := range said {
			if s.By == "RSL" && s.Problem == "" && !strings.Contains(link, s.Value) {
				t.Errorf("got %+v of %q", s, link)
			}
		}
	})
}

func FuzzTDMRep(f *testing.F) {
	for _, v := range ownFacts(f) {
		f.Add(v.File, v.Path)
	}
	f.Fuzz(func(t *testing.T, file, target string) {
		said := usage.ParseTDMRep([]byte(file), target)
		hold(t, said)
		for _, s := range said {
			if s.Line != said[0].Line {
				t.Errorf("got %+v of two entries", said)
			}
		}
	})
}
