package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func origin(t testing.TB, raw string) (o fetch.Origin) {
	t.Helper()
	u, err := url.Parse(raw)
	if err == nil {
		o, err = fetch.OriginOf(u)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// site answers robots.txt fetches with whatever serve returns, and counts them.
type site struct {
	serve func(n int, prev *fetch.Result) *fetch.Result // n: how many fetches there were before
	delay time.Duration

	dialect policy.Dialect // that it is read in

	mu      sync.Mutex
	fetches int
}

func (s *site) load(ctx context.Context, _ fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
	s.mu.Lock()
	n := s.fetches
	s.fetches++
	s.mu.Unlock()
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := *s.serve(n, prev)
	r.Dialect = s.dialect
	r.Time = time.Now()
	return &r, nil
}

// brief is what a failing test prints of a result.
func brief(r *fetch.Result) string {
	if r == nil {
		return "no result"
	}
	reason := "no policy"
	if r.Policy != nil {
		reason = fmt.Sprintf("policy %.80q", r.Policy)
	}
	return fmt.Sprintf("%d %.200v at %v in %v, %s, %v", r.StatusCode, r.Header, r.Time, r.Dialect, reason, r.Err)
}

// sourceOf is what a Fetcher brings.
func sourceOf(f *fetch.Fetcher) *cache.Source {
	return &cache.Source{Load: f.Fetch, Reader: f.Reader()}
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// rules is an answer with rules that disallow a path; fields come in pairs.
func rules(path string, fields ...string) *fetch.Result {
	body := []byte("User-agent: *\nDisallow: " + path + "\n")
	return &fetch.Result{StatusCode: 200, Header: header(fields...), Body: body, Policy: policy.Parse(body)}
}

func unavailable(code int, fields ...string) *fetch.Result {
	return &fetch.Result{StatusCode: code, Header: header(fields...), Policy: policy.Unavailable()}
}

var errDown = errors.New("connection refused")

func down() *fetch.Result { return &fetch.Result{Err: errDown, Policy: policy.Unreachable()} }

func header(fields ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return h
}

// causeOf is the cause that a failure states.
func causeOf(err error) string {
	if f, ok := errors.AsType[*fetch.Failure](err); ok {
		return f.Cause
	}
	return ""
}

func always(r *fetch.Result) func(int, *fetch.Result) *fetch.Result {
	return func(int, *fetch.Result) *fetch.Result { return r }
}

// inTurn serves one answer after the other, the last one for ever.
func inTurn(answers ...*fetch.Result) func(int, *fetch.Result) *fetch.Result {
	return func(n int, _ *fetch.Result) *fetch.Result { return answers[min(n, len(answers)-1)] }
}

// allowed asks the cache and then its answer.
func allowed(t *testing.T, c *cache.Cache, s *site, target string) bool {
	t.Helper()
	r := ask(t, c, &cache.Source{Load: s.load}, "https://a.example")
	return r.Policy.Decide("examplebot", target).Allowed
}

// What a crawler was told is for another one, or for the same with a signature, never used.
func TestReadersShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		for round := range 2 { // the second time from the Store
			c := &cache.Cache{Store: store, Logger: quiet}
			for i, reader := range []string{"a", "a signed", "b", ""} {
				s := &site{serve: always(rules(fmt.Sprint("/", i)))}
				r := ask(t, c, &cache.Source{Load: s.load, Reader: reader}, "https://a.example")
				if r.Policy.Decide("x", fmt.Sprint("/", i)).Allowed || s.count() != 1-round {
					t.Errorf("round %d, %q: got %s after %d fetches, want the rules of this reader after %d", round, reader, brief(r), s.count(), 1-round)
				}
			}
			if n := c.Stats().Origins; n != 4 {
				t.Errorf("round %d: %d entries, want 4", round, n)
			}
			closeCache(t, c)
		}
	})
}

// A field that is too long is dropped. One that tells a lifetime makes the answer stale, and others take none.
func TestAHostileAnswerIsCutDownBeforeItIsKept(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	r := rules("/private", "Set-Cookie", long, "ETag", `"`+long+`"`, "Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT", "Cache-Control", "max-age=3600, x="+long)
	r.Redirects = []string{"https://b.example/" + long}
	got := get(t, new(cache.Cache), &site{serve: always(r)}, "https://a.example")
	if got.Body != nil || got.Redirects != nil || len(got.Header) != 1 || got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("kept %d bytes of body, redirects %.40q, header %.40q: want that it is stale, and no validator for a URL that is not known", len(got.Body), got.Redirects, got.Header)
	}
	r = rules("/x", "Cache-Control", "max-age=60", "Content-Type", long)
	got = get(t, &cache.Cache{KeepBody: true}, &site{serve: always(r)}, "https://a.example")
	if len(got.Header) != 1 || got.Header.Get("Cache-Control") != "max-age=60" {
		t.Errorf("kept the header %.100q, want the Cache-Control alone", got.Header)
	}
}

// A Source without Load starts no fetch, and waits for none.
func TestASourceWithoutLoadLooksInMemoryAlone(t *testing.T) {
	var c cache.Cache
	defer c.Close()
	o := origin(t, "https://a.example")
	if r, _, err := c.Get(t.Context(), o, new(cache.Source)); r != nil || !errors.Is(err, cache.ErrMiss) {
		t.Errorf("before a fetch: got %v, %v, want ErrMiss", r, err)
	}
	want := get(t, &c, &site{serve: always(unavailable(404))}, "https://a.example")
	if r, _, err := c.Get(t.Context(), o, new(cache.Source)); r != want || err != nil {
		t.Errorf("after it: got %v, %v, want %v", r, err, want)
	}
}

// What later decisions need of an answer, or of a failure, is kept in memory and in a Store.
func TestWhatIsKeptOfAResult(t *testing.T) {
	for _, want := range []*fetch.Result{
		{StatusCode: 200, Policy: policy.Parse(nil), Body: []byte{}, Wall: true},
		{StatusCode: 200, Policy: policy.Parse(nil), Body: []byte{}},
		{Policy: policy.Unreachable(), RetryAfter: time.Hour, Err: &fetch.Failure{Text: "down", Cause: "tls_certificate_error"}},
		{Policy: policy.Unreachable(), RetryAfter: time.Hour, Err: &fetch.Failure{Text: "down"}},
		// By ObeyWalls: without the cause, this status would open the site.
		{StatusCode: 403, Policy: policy.Unreachable(), Err: &fetch.Failure{Text: "down", Cause: "http_request_denied"}},
		{StatusCode: 503, Policy: policy.Unreachable(), Err: &fetch.Failure{Text: "down", Cause: "http_response_header_section_size"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, s := new(memStore), &site{serve: always(want)}
			for range 2 { // the second time from the Store
				c := &cache.Cache{Store: store}
				for range 2 { // the second time from memory
					r := get(t, c, s, "https://a.example")
					if causeOf(r.Err) != causeOf(want.Err) || fmt.Sprint(r.Err) != fmt.Sprint(want.Err) || r.RetryAfter != want.RetryAfter || r.Wall != want.Wall {
						t.Errorf("%s, a wall %t, Retry-After %v; want %v, %t, %v", brief(r), r.Wall, r.RetryAfter, want.Err, want.Wall, want.RetryAfter)
					}
				}
				closeCache(t, c)
			}
			if s.count() != 1 {
				t.Errorf("%d fetches, want one", s.count())
			}
		})
	}
}

// wantFile fails the test unless r has the file of rules(path), and what it says reads the same in
// another dialect.
func wantFile(t *testing.T, when string, r *fetch.Result, path string) {
	t.Helper()
	want := string(rules(path).Body)
	if in := r.In(policy.Google); string(r.Body) != want || r.Err != nil || in.Err != nil || in.Policy.Decide("x", path).Allowed {
		t.Errorf("%s: %s with body %q, and in Google's dialect %s; want %q", when, brief(r), r.Body, brief(in), want)
	}
}

// A file is kept in memory and through every 304, and comes back from a Store, whichever Cache put it there.
func TestKeepBodyKeepsTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, path := new(memStore), "/private"
		s := &site{serve: func(_ int, prev *fetch.Result) *fetch.Result {
			if prev == nil {
				return rules(path, "ETag", `"v1"`, "Cache-Control", "max-age=600", "Content-Type", "text/plain")
			}
			wantFile(t, "to be validated", prev, path)
			return prev // as a 304 has it
		}}
		for i, keep := range []bool{true, true, false, true} {
			c := &cache.Cache{KeepBody: keep, Store: store, Logger: quiet}
			for range 3 {
				r := get(t, c, s, "https://a.example")
				if when := fmt.Sprintf("in process %d after %d fetches", i, s.count()); keep {
					wantFile(t, when, r, path)
				} else if r.Body != nil {
					t.Errorf("%s: body %q, want none", when, r.Body)
				}
				if synctest.Wait(); keep && i < 2 && r.Header.Get("Content-Type") != "text/plain" {
					t.Errorf("process %d: header %v, want its Content-Type", i, r.Header)
				}
				time.Sleep(11 * time.Minute)
			}
			closeCache(t, c)
		}
		if n := s.count(); n < 10 {
			t.Errorf("%d fetches, want 10: one is validated in each process", n)
		}
	})
}

func TestTheZeroValueIsReady(t *testing.T) {
	var c cache.Cache
	s := &site{serve: always(rules("/private"))}
	for range 2 {
		if allowed(t, &c, s, "/private/a") || !allowed(t, &c, s, "/public") {
			t.Error("/private/a is allowed, or /public is not, want it by the rules")
		}
	}
	if got := c.Stats(); got.Origins != 1 || got.StoreErrors != 0 {
		t.Errorf("got %+v, want one origin", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != cache.ErrClosed {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}
