package cache_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// vector is a vectors.Case of testdata/outage. Its body is the robots.txt file that the site serves.
//
//	dialects: in which it holds
//	outages:  the settings of Cache.Outage for which it holds
//	field:    of the header of every answer; any number of them
//	step:     how long after the step before; what the site answers from then on: a status, or
//	          "silence"; what a lookup then permits: "rules", "allow" or "disallow"; and how
//	          often the site has been asked in all, for that lookup or behind it
//
// Waits are those of a Cache without jitter.
type vector struct {
	dialects []policy.Dialect
	outages  []cache.Outage
	header   http.Header
	steps    []vectorStep
	body     string
}

type vectorStep struct {
	after   time.Duration
	status  int // 0: no answer
	verdict string
	asked   int
}

var outages = map[string]cache.Outage{
	"LastGood": cache.LastGood, "Strict": cache.Strict, "GoogleLadder": cache.GoogleLadder,
}

// parseVector accepts nothing that it does not know.
func parseVector(text string) (v vector, err error) {
	c, err := vectors.ReadCase(text, []string{"Dialects", "Outages", "Step"}, "Field")
	if err != nil {
		return v, err
	}
	v.body, v.header = c.Body, http.Header{}
	if v.dialects, err = vectors.Named[policy.Dialect](c.Head.Get("Dialects")); err != nil {
		return v, err
	}
	for name := range strings.FieldsSeq(c.Head.Get("Outages")) {
		o, ok := outages[name]
		if !ok {
			return v, fmt.Errorf("unknown outage %q", name)
		}
		v.outages = append(v.outages, o)
	}
	for _, field := range c.Head["Field"] {
		name, value, ok := strings.Cut(field, ": ")
		if !ok {
			return v, fmt.Errorf("field %q is not \"name: value\"", field)
		}
		v.header.Add(name, value)
	}
	for _, value := range c.Head["Step"] {
		s, err := parseStep(value)
		if err != nil {
			return v, err
		}
		v.steps = append(v.steps, s)
	}
	return v, nil
}

func parseStep(text string) (s vectorStep, err error) {
	f := strings.Fields(text)
	if len(f) != 4 || !slices.Contains([]string{"rules", "allow", "disallow"}, f[2]) {
		return s, fmt.Errorf("step %q is not \"duration status verdict number\"", text)
	}
	s.verdict = f[2]
	if s.after, err = time.ParseDuration(f[0]); err != nil {
		return s, err
	}
	if f[1] != "silence" {
		if s.status, err = strconv.Atoi(f[1]); err != nil {
			return s, err
		}
	}
	s.asked, err = strconv.Atoi(f[3])
	return s, err
}

func TestOutageVectors(t *testing.T) {
	covered := map[cache.Outage]bool{}
	for name, v := range vectors.Cases(t, "testdata/outage", parseVector) {
		t.Run(name, func(t *testing.T) {
			for _, o := range v.outages {
				covered[o] = true
				for _, d := range v.dialects {
					synctest.Test(t, func(t *testing.T) { v.run(t, o, d) })
				}
			}
		})
	}
	if len(covered) != len(outages) {
		t.Errorf("the vectors are about %v, want all of %v", covered, outages)
	}
}

func (v vector) run(t *testing.T, o cache.Outage, d policy.Dialect) {
	status, asked := 0, 0
	f := &fetch.Fetcher{Retries: -1, Dialect: d, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
		if asked++; status == 0 {
			return nil, errDown
		}
		body := io.NopCloser(strings.NewReader(v.body))
		return &http.Response{StatusCode: status, Header: v.header.Clone(), Body: body, ContentLength: -1}, nil
	})}
	c := (&cache.Cache{Outage: o}).WithoutSpread()
	for i, s := range v.steps {
		time.Sleep(s.after)
		status = s.status
		r := ask(t, c, sourceOf(f), "https://a.example")
		synctest.Wait() // for what runs behind the lookup
		if got := verdictOf(r); got != s.verdict || asked != s.asked {
			t.Errorf("outage %v, %v, step %d: got %s, asked %d times, want %s, %d", o, d, i, got, asked, s.verdict, s.asked)
		}
	}
	closeCache(t, c)
}

func TestOutageVectorReaderIsStrict(t *testing.T) {
	good := "section: 2.4\nkind: standard\ncomment: c\ndialects: RFC9309\noutages: Strict\n" +
		"field: Age: 1\nstep: 1h 503 disallow 1\n\nbody\n"
	v := vectors.CheckStrict(t, parseVector, good, [][2]string{
		{"kind:", "kin:"}, {"standard", "maybe"}, {"RFC9309", "RFC"}, {"Strict", "strict"}, {"Age: 1", "Age"},
		{"1h", "1"}, {"503", "5xx"}, {" disallow", " no"}, {"disallow 1", "disallow one"}, {" 1\n", "\n"}, {"\n\n", "\n"},
	}...)
	if v.body != "body\n" {
		t.Errorf("got the body %q of %q", v.body, good)
	}
}
