package fetch_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// One answer means the same in a dialect, whatever it was read in before.
func TestAnAnswerMeansTheSameWhateverItWasReadInBefore(t *testing.T) {
	long := full(maxFile+1, file, "")
	type answer struct {
		status int
		body   string
		header []string
	}
	served := []answer{
		{200, "", nil}, {200, long, nil}, {206, long, nil}, {206, "", nil}, {200, file, []string{"Content-Encoding", "br"}},
		{402, file, []string{"Content Length", "1"}}, {200, file, []string{"Content Length", "1"}},
		{302, "", []string{"Location", "/robots.txt"}}, {302, "", []string{"Location", "mailto:a"}}, {302, "", nil},
		{200, "<html>", nil}, {403, "", nil},
		{429, "", []string{"Retry-After", "60"}}, {503, "", []string{"Retry-After", "60"}},
	}
	for status := range 601 {
		if status != http.StatusProxyAuthRequired { // of a RoundTripper that may use a proxy
			served = append(served, answer{status, file, nil})
		}
	}
	for _, s := range served {
		rt, _ := answers(response(302, "", "Location", "/r", "Cache-Control", "max-age=60"), response(s.status, s.body, s.header...))
		f := fetch.Fetcher{Transport: rt, Retries: -1, UserAgent: agent}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		if err != nil {
			t.Fatal(err)
		}
		in := make([]*fetch.Result, len(dialects)) // as read in each dialect
		for i, d := range dialects {
			in[i] = r.In(d)
		}
		for i, from := range dialects {
			for j, to := range dialects {
				got, want := in[i].In(to), in[j]
				name := fmt.Sprintf("%d %v, %v read in %v", s.status, s.header, from, to)
				if from == to {
					if got != in[i] {
						t.Errorf("%s: got %v, want the same Result", name, got)
					}
					kept := *got // as a cache keeps it
					kept.Policy = nil
					got = kept.In(to)
				}
				if verdict(got) != verdict(want) || got.Policy.String() != want.Policy.String() || (got.Err == nil) != (want.Err == nil) || got.Dialect != to {
					t.Errorf("%s: %s, %v, want %s, %v", name, verdict(got), got.Err, verdict(want), want.Err)
				}
				if got.Wall != want.Wall {
					t.Errorf("%s: wall %v, want %v", name, got.Wall, want.Wall)
				}
				if got.StatusCode != want.StatusCode || got.RetryAfter != want.RetryAfter ||
					!reflect.DeepEqual(got.Header, want.Header) || !reflect.DeepEqual(got.Redirects, want.Redirects) ||
					!reflect.DeepEqual(got.RedirectHeaders, want.RedirectHeaders) {
					t.Errorf("%s: got %+v, want the answer of %+v", name, got, want)
				}
				if string(got.Body) != string(want.Body) || (got.Body == nil) != (want.Body == nil) || got.Truncated != want.Truncated {
					t.Errorf("%s: %d bytes of the file, want %d", name, len(got.Body), len(want.Body))
				}
			}
		}
	}
}

// A cache may have dropped the file, but what it was read as does not speak for others.
func TestRulesInAnotherDialectNeedTheFile(t *testing.T) {
	rt, _ := answers(response(200, file))
	f := fetch.Fetcher{Transport: rt}
	r := fetched(t, &f, "http://a.test", nil, "rules")
	dropped := *r
	dropped.Body = nil
	check(t, dropped.In(policy.Google), nil, "disallow")
	check(t, dropped.In(policy.RFC9309), nil, "rules")
	unread := fetch.Result{Policy: policy.Unavailable(), Dialect: policy.Yandex, StatusCode: 206, Time: time.Now()}
	check(t, unread.In(policy.RFC9309), nil, "disallow")
	check(t, r.In(policy.Google).In(policy.Yandex).In(policy.Original), nil, "rules")
	dropped.Policy = nil
	check(t, dropped.In(policy.RFC9309), nil, "disallow")
}

// What could not be used as an answer permits nothing in any dialect, even if its status does.
func TestABrokenAnswerIsUnreachableInEveryDialect(t *testing.T) {
	for _, status := range []int{0, 200, 206, 302, 304, 404, 407, 503} {
		r := &fetch.Result{Policy: policy.Unreachable(), StatusCode: status, Time: time.Now(), Err: errors.New("fetch: it broke off")}
		if status == 503 { // without a cause, it is the status that makes it unreachable
			r.Err = &fetch.Failure{Text: "fetch: it broke off", Cause: "connection_timeout"}
		}
		for _, d := range dialects {
			in := r.In(d)
			check(t, in, nil, "disallow")
			if in.Err != r.Err {
				t.Errorf("%d in %v: got Err %v, want %v", status, d, in.Err, r.Err)
			}
		}
	}
}

// Whatever the status, an answer with more header than is kept was not used.
func TestTooMuchHeaderIsUnreachableInEveryDialect(t *testing.T) {
	for _, status := range []int{200, 206, 404, 429, 500, 503, 599} {
		rt, _ := answers(response(status, file, "X-Pad", strings.Repeat("x", 64<<10)))
		f := fetch.Fetcher{Transport: rt}
		r := fetched(t, &f, "http://a.test", nil, "disallow")
		for _, d := range dialects {
			check(t, r.In(d), nil, "disallow")
		}
	}
}

// An error says whose status it is about. The origin is known.
func TestInNamesWhereARedirectLed(t *testing.T) {
	rt, _ := answers(response(302, "", "Location", "http://b.test/r"), response(429, ""))
	f := fetch.Fetcher{Transport: rt}
	r := fetched(t, &f, "http://a.test", nil, "allow").In(policy.Google)
	check(t, r, nil, "disallow")
	if got, want := r.Err.Error(), "fetch: http://b.test/r: status 429 Too Many Requests"; got != want {
		t.Errorf("got Err %q, want %q", got, want)
	}
}

// With two different Locations, no one can tell which is meant. Such an answer gives no permission.
func TestARedirectLeadsToOnePlace(t *testing.T) {
	for _, c := range []struct{ second, want string }{{"/a", "allow"}, {"/b", "disallow"}} {
		send, _ := answers(response(302, "", "Location", "/a", "Location", c.second), response(404, ""))
		f := fetch.Fetcher{Transport: send}
		fetched(t, &f, "http://a.test", nil, c.want)
	}
}
