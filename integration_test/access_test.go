package integration_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

type accessFact struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	URL     string `json:"url"`
	Robots  string `json:"robots_url"`
	Applies bool   `json:"applies"`
	Profile string `json:"profile"`
	Status  int    `json:"status"`
	Hops    int    `json:"hops"`
	Result  string `json:"result"`
}

// responses is a transport that gives one response after the other.
type responses []*http.Response

func (r *responses) RoundTrip(*http.Request) (*http.Response, error) {
	if len(*r) == 0 {
		return nil, errors.New("more requests than answers")
	}
	res := (*r)[0]
	*r = (*r)[1:]
	return res, nil
}

func response(status int, body, location string) *http.Response {
	h := http.Header{"Location": {location}}
	r := io.NopCloser(strings.NewReader(body))
	return &http.Response{StatusCode: status, Header: h, Body: r, ContentLength: int64(len(body))}
}

func TestRFC9309_StatusFacts(t *testing.T) {
	dialects := map[string]policy.Dialect{"rfc9309": policy.RFC9309, "google": policy.Google}
	seen := 0
	for _, c := range vectors.Read[accessFact](t, "vectors/access.jsonl", "section", "note") {
		want := map[string]origins.Verdict{
			"parse": origins.Rules, "redirect": origins.Rules, "follow": origins.Rules,
			"allow_all": origins.Allow, "disallow_all": origins.Disallow,
		}[c.Result]
		var rt responses
		switch c.Kind {
		case "status":
			rt = append(rt, response(c.Status, origins.File, "/elsewhere"))
		case "redirects":
			for i := range c.Hops {
				rt = append(rt, response(301, "", fmt.Sprintf("http://h%d.test/robots.txt", i)))
			}
		default:
			continue
		}
		seen++
		rt = append(rt, response(200, origins.File, ""))
		f := fetch.Fetcher{Transport: &rt, Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "https://a.test"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r = r.In(dialects[c.Profile]); verdictOf(r.Policy) != want || (r.Err != nil) != (want == origins.Disallow) {
			t.Errorf("%s: got %s (%v), want %s", c.ID, verdictOf(r.Policy), r.Err, want)
		}
	}
	if seen != 21 {
		t.Errorf("checked %d facts, want 21", seen)
	}
}

func TestRFC9309_WhereTheFileIsAndWhatItSpeaksFor(t *testing.T) {
	seen := 0
	for _, f := range vectors.Read[accessFact](t, "vectors/access.jsonl", "section", "note") {
		switch f.Kind {
		case "robots_url":
			seen++
			if got := originOf(t, f.URL).RobotsURL().String(); got != f.Robots {
				t.Errorf("%s: robots.txt of %s is at %s, want %s", f.ID, f.URL, got, f.Robots)
			}
		case "scope":
			seen++
			u, err := url.Parse(f.Robots)
			if err != nil {
				t.Fatal(err)
			}
			speaks := u.Path == "/robots.txt" && originOf(t, f.Robots) == originOf(t, f.URL)
			if speaks != f.Applies {
				t.Errorf("%s: %s speaks for %s: got %v, want %v", f.ID, f.Robots, f.URL, speaks, f.Applies)
			}
		}
	}
	if seen != 33 {
		t.Errorf("checked %d facts, want 33", seen)
	}
}
