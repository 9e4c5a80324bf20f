package integration_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

func TestOneFetchForAThousandCallers(t *testing.T) {
	release := make(chan struct{})
	origin, record := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		io.WriteString(w, rules)
	})
	rt := gate(&http.Transport{MaxConnsPerHost: 16})
	defer rt.CloseIdleConnections()

	var callers, started sync.WaitGroup
	var sent, refused atomic.Int32
	for i := range 1000 {
		started.Add(1)
		callers.Go(func() {
			started.Done()
			path := "/public"
			if i%2 == 0 {
				path = "/private"
			}
			ok, err := do(t.Context(), rt, origin+path)
			switch {
			case ok:
				sent.Add(1)
			case errors.As(err, new(*client.DisallowedError)):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	started.Wait()
	close(release)
	callers.Wait()

	if sent.Load() != 500 || refused.Load() != 500 {
		t.Errorf("sent %d and refused %d, want 500 each", sent.Load(), refused.Load())
	}
	if n := len(record.of("/robots.txt")); n != 1 {
		t.Errorf("robots.txt was fetched %d times, want once", n)
	}
	if n := len(record.of("/private")); n != 0 {
		t.Errorf("%d forbidden requests were sent", n)
	}
}

// "Said no", "did not answer" and "I was cancelled" are told apart by type and value.
func TestATimeoutOfRobotsIsNotTheCallersDeadline(t *testing.T) {
	origin, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	rt := gate(nil)
	rt.Fetcher.Timeout, rt.Fetcher.Retries = 200*time.Millisecond, -1 // of two tries, the second would end as the whole does
	_, err := do(t.Context(), rt, origin+"/public")
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v looks like the caller's deadline", err)
	}
	refusal, ok := errors.AsType[*client.DisallowedError](err)
	if !ok || refusal.Decision.Reason != policy.ReasonUnreachable {
		t.Fatalf("got %v, want a refusal because robots.txt is unreachable", err)
	}
	if got := refusal.URL.String(); got != origin+"/public" {
		t.Errorf("refused %s, want %s", got, origin+"/public")
	}
	for _, part := range []string{"ExampleBot", "unreachable", "within 100ms"} {
		if !strings.Contains(refusal.Error(), part) {
			t.Errorf("%q does not name %q", refusal, part)
		}
	}
}

func TestPageRedirectsAreDecidedHopByHop(t *testing.T) {
	target, targetSeen := serve(t, text(rules))
	start := new(seen)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start.add(r)
		switch r.URL.Path {
		case "/to-private":
			http.Redirect(w, r, target+"/private/page", http.StatusFound)
		case "/to-public":
			http.Redirect(w, r, target+"/public", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	rt := gate(nil)

	if sent, refusal := get(t, rt, s.URL+"/to-public"); !sent {
		t.Errorf("allowed hop was refused: %v", refusal)
	}
	_, refusal := get(t, rt, s.URL+"/to-private")
	if refusal == nil || refusal.URL.String() != target+"/private/page" || refusal.Decision.Rule.Line != 2 {
		t.Errorf("second hop: %v, want the refusal of %s/private/page by line 2", refusal, target)
	}
	if len(targetSeen.of("/private/page")) != 0 {
		t.Error("the forbidden hop was asked for")
	}
	if len(start.of("/to-private")) != 1 {
		t.Error("the first hop is allowed and was not sent")
	}
}

// countedBody counts Close calls.
type countedBody struct {
	io.Reader
	closed atomic.Int32
}

func (b *countedBody) Close() error { b.closed.Add(1); return nil }

func TestRoundTripperContract(t *testing.T) {
	origin, record := serve(t, text(rules))
	down, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		url  string
		sent bool
	}{
		{"sent", t.Context(), origin + "/public?q=1", true},
		{"refused by a rule", t.Context(), origin + "/private", false},
		{"refused as unreachable", t.Context(), down + "/public", false},
		{"context ended", cancelled, origin + "/public", false},
		{"opaque URL", t.Context(), "http:opaque", false},
		{"no host", t.Context(), "http:///public", false},
		{"impossible port", t.Context(), "http://127.0.0.1:99999/public", false},
		{"impossible host", t.Context(), "http://a..b/public", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			u, err := url.Parse(row.url)
			if err != nil {
				t.Fatal(err)
			}
			body := &countedBody{Reader: strings.NewReader("payload")}
			req := (&http.Request{
				Method: http.MethodPost, URL: u, Body: body, ContentLength: 7,
				Header: http.Header{"X-Own": {"1"}},
			}).WithContext(row.ctx)
			before := req.Clone(row.ctx)

			resp, err := gate(nil).RoundTrip(req)
			if sent := err == nil; sent != row.sent {
				t.Fatalf("sent = %t (%v), want %t", sent, err, row.sent)
			}
			if (resp == nil) == (err == nil) {
				t.Errorf("response %v with error %v: want one of them", resp, err)
			}
			if resp != nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if body.closed.Load() == 0 {
				t.Error("the request body was not closed")
			}
			if *before.URL != *req.URL || before.Host != req.Host || req.Body != io.ReadCloser(body) ||
				!maps.EqualFunc(before.Header, req.Header, slices.Equal) {
				t.Errorf("the request was modified: %+v, was %+v", req, before)
			}
		})
	}
	if page := record.of("/public"); len(page) != 1 || page[0].UserAgent() != userAgent || page[0].Header.Get("X-Own") != "1" {
		t.Errorf("the page request was not sent once with its own fields and our User-Agent: %v", page)
	}
}

func TestRobotsRequestsCarryNothingOfTheCallers(t *testing.T) {
	origin, record := serve(t, text(rules))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(origin, "//", "//user:secret@", 1)+"/public", nil)
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.SplitSeq("Authorization Cookie Proxy-Authorization Referer X-Token Range", " ") {
		req.Header.Set(field, "secret")
	}
	resp, err := (&http.Client{Transport: gate(nil)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	robots := record.of("/robots.txt")
	if len(robots) != 1 {
		t.Fatalf("robots.txt was fetched %d times, want once", len(robots))
	}
	for field, values := range robots[0].Header {
		if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding", "Connection"}, field) || strings.Contains(strings.Join(values, ""), "secret") {
			t.Errorf("robots.txt was asked for with %s: %q", field, values)
		}
	}
	if got := robots[0].UserAgent(); got != userAgent {
		t.Errorf("robots.txt was asked for as %q, want %q", got, userAgent)
	}
}
