package fetch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	agent = "examplebot/1.0"
	file  = "User-agent: *\nDisallow: /private\n"
)

// roundTripFunc is a transport of the caller's: used as it is.
type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// answers is a transport that gives one answer after the other, the last one for ever.
func answers(of ...*http.Response) (roundTripFunc, *int) {
	n := new(int)
	return func(*http.Request) (*http.Response, error) {
		res := of[min(*n, len(of)-1)]
		*n++
		return res, nil
	}, n
}

// verdict says in a word what a Result permits.
func verdict(r *fetch.Result) string {
	public, private := r.Policy.Decide("examplebot", "/public"), r.Policy.Decide("examplebot", "/private/x")
	switch {
	case public.Allowed && private.Allowed:
		return "allow"
	case !public.Allowed && !private.Allowed:
		return "disallow"
	case public.Allowed:
		return "rules"
	}
	return "reversed"
}

// check asserts what holds for every Result, and its verdict.
func check(t *testing.T, r *fetch.Result, err error, want string) {
	t.Helper()
	switch {
	case err != nil:
		t.Fatalf("got error %v, want a Result", err)
	case r.Policy == nil || r.Time.IsZero() || len(r.Body) > fetch.MaxBytes || len(r.Redirects) > fetch.MaxRedirects:
		t.Fatalf("incomplete or unbounded Result: %+v", r)
	}
	if got := verdict(r); got != want {
		t.Errorf("got verdict %s, want %s (status %d, Err %v)", got, want, r.StatusCode, r.Err)
	}
	lost := r.Policy.Decide("examplebot", "/public").Reason == policy.ReasonUnreachable
	if lost != (r.Err != nil) {
		t.Errorf("unreachable: %v, but Err is %v", lost, r.Err)
	}
	if r.Err == nil {
		return
	}
	text := r.Err.Error()
	if !strings.HasPrefix(text, "fetch: ") || len(text) > 1024 || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		t.Errorf("Err is %.200q, of %d octets", text, len(text))
	}
	if errors.Unwrap(r.Err) != nil {
		t.Errorf("Err wraps %v", errors.Unwrap(r.Err))
	}
}

func TestTheZeroValueFetches(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, file) }))
	defer s.Close()
	var f fetch.Fetcher
	r, err := f.Fetch(t.Context(), originOf(t, s.URL), nil)
	check(t, r, err, "rules")
	if r.StatusCode != 200 || string(r.Body) != file || r.Redirects != nil || r.Truncated || r.RetryAfter != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestTheZeroOriginIsUnreachable(t *testing.T) {
	for _, o := range []fetch.Origin{{}, originOf(t, "ftp://example.com/")} {
		rt, n := answers(response(200, file))
		f := fetch.Fetcher{Transport: rt}
		r, err := f.Fetch(t.Context(), o, nil)
		check(t, r, err, "disallow")
		if *n != 0 || !strings.Contains(r.Err.Error(), "OriginOf") {
			t.Errorf("%q: %d requests, Err %v", o, *n, r.Err)
		}
	}
}

func TestStatuses(t *testing.T) {
	dialects := []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original, 200}
	for _, c := range []struct {
		status int
		want   string // for each dialect: r rules, a allow, d disallow
	}{
		{200, "rrrrrr"}, {201, "rrarrr"}, {204, "rrarrr"}, {206, "rrarrr"}, {299, "rrarrr"},
		{300, "dddddd"}, {304, "dddddd"}, {305, "dddddd"}, {306, "dddddd"}, {399, "dddddd"},
		{400, "aaaaaa"}, {401, "aaaada"}, {402, "aaaaaa"}, {403, "aaaada"}, {404, "aaaaaa"},
		{407, "aaaaaa"}, {410, "aaaaaa"}, {418, "aaaaaa"}, {429, "adaaaa"}, {451, "aaaaaa"}, {499, "aaaaaa"},
		{500, "ddaddd"}, {502, "ddaddd"}, {503, "ddaddd"}, {520, "ddaddd"}, {599, "ddaddd"},
		{0, "dddddd"}, {20, "dddddd"}, {99, "dddddd"}, {101, "dddddd"}, {600, "dddddd"}, {999, "dddddd"},
		{-1, "dddddd"},
	} {
		for i, d := range dialects {
			rt, n := answers(response(c.status, file))
			f := fetch.Fetcher{Transport: rt, Dialect: d, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			t.Run(fmt.Sprintf("%d %v", c.status, d), func(t *testing.T) {
				check(t, r, err, map[byte]string{'r': "rules", 'a': "allow", 'd': "disallow"}[c.want[i]])
				if r.StatusCode != c.status || *n != 1 {
					t.Errorf("got status %d after %d requests", r.StatusCode, *n)
				}
				if (c.want[i] == 'r') != (string(r.Body) == file) {
					t.Errorf("got body %q", r.Body)
				}
			})
		}
	}
}

func TestRFC9309_StatusFacts(t *testing.T) {
	dialects := map[string]policy.Dialect{"rfc9309": policy.RFC9309, "google": policy.Google}
	seen := 0
	for _, c := range vectors.Read[accessFact](t, "vectors/access.jsonl") {
		want := map[string]string{"parse": "rules", "allow_all": "allow", "disallow_all": "disallow", "redirect": "rules", "follow": "rules"}[c.Result]
		var of []*http.Response
		switch c.Kind {
		case "status":
			of = append(of, response(c.Status, file, "Location", "/elsewhere"))
		case "redirects":
			for i := range c.Hops {
				of = append(of, response(301, "", "Location", fmt.Sprintf("http://h%d.test/robots.txt", i)))
			}
		default:
			continue
		}
		seen++
		rt, _ := answers(append(of, response(200, file))...)
		f := fetch.Fetcher{Transport: rt, Dialect: dialects[c.Profile], Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "https://a.test"), nil)
		t.Run(c.ID, func(t *testing.T) { check(t, r, err, want) })
	}
	if seen != 21 {
		t.Errorf("checked %d facts, want 21", seen)
	}
}

func TestRedirects(t *testing.T) {
	const long = "/" + "0123456789"
	for _, c := range []struct {
		name, location string
		want           string // the URL that is asked next; "" if none is
	}{
		{"path", "/r.txt", "http://a.test/r.txt"},
		{"relative path", "r.txt", "http://a.test/r.txt"},
		{"query", "?v=2", "http://a.test/robots.txt?v=2"},
		{"another host", "http://b.test/robots.txt", "http://b.test/robots.txt"},
		{"another host without scheme", "//b.test/robots.txt", "http://b.test/robots.txt"},
		{"https", "https://a.test/robots.txt", "https://a.test/robots.txt"},
		{"userinfo and fragment", "http://u:p@b.test/r#f", "http://b.test/r"},
		{"a host to make canonical", "http://B.TEST.:80/r", "http://b.test/r"},
		{"IDN", "http://www.müller.eu/r", "http://www.xn--mller-kva.eu/r"},
		{"escaped path", "/a%2Fb%20c", "http://a.test/a%2Fb%20c"},
		{"spaces", "/a b?name=a b", "http://a.test/a%20b?name=a%20b"},
		{"no path", "http://b.test", "http://b.test"},
		{"an empty host", "//", ""},
		{"an empty host with a path", "///r", ""},
		{"an empty host with a query", "//?x", ""},
		{"ftp", "ftp://a.test/robots.txt", ""},
		{"file", "file:///etc/passwd", ""},
		{"data", "data:text/plain,User-agent:*", ""},
		{"gopher", "gopher://a.test/", ""},
		{"javascript", "javascript:alert(1)", ""},
		{"opaque http", "http:robots.txt", ""},
		{"no host", "http:///robots.txt", ""},
		{"empty", "", ""},
		{"no URL", "http://a.test:port/", ""},
		{"no name", "http://a..b/", ""},
		{"control character", "http://a.test/\x01", ""},
		{"metadata service", "http://169.254.169.254/latest", ""},
		{"loopback", "http://127.0.0.1/r", ""},
		{"loopback, IPv6", "http://[::1]/r", ""},
		{"loopback, mapped", "http://[::ffff:127.0.0.1]/r", ""},
		{"unspecified", "http://0.0.0.0/r", ""},
		{"too long", strings.Repeat(long, 1000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			f := fetch.Fetcher{Retries: -1, Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
				asked = append(asked, r.URL.String())
				if r.Host != r.URL.Host {
					t.Errorf("asked %s under the name %s", r.URL, r.Host)
				}
				if len(asked) == 1 {
					return response(302, file, "Location", c.location), nil
				}
				return response(200, file), nil
			})}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			if c.want == "" {
				check(t, r, err, "disallow")
				if len(asked) != 1 {
					t.Errorf("asked %q", asked)
				}
				return
			}
			check(t, r, err, "rules")
			if len(asked) != 2 || asked[1] != c.want || !slices.Equal(r.Redirects, asked[1:]) {
				t.Errorf("asked %q, Redirects %q, want %s", asked, r.Redirects, c.want)
			}
		})
	}
}

func TestMoreThanFiveRedirectsOrALoopAreUnavailable(t *testing.T) {
	for _, c := range []struct {
		name     string
		location func(n int) string
		requests int
	}{
		{"six", func(n int) string { return fmt.Sprintf("/r%d.txt", n) }, 6},
		{"to itself", func(int) string { return "/robots.txt" }, 1},
		{"to its first URL", func(n int) string { return []string{"/x", "//A.test:80/robots.txt"}[n%2] }, 2},
		{"to a later URL", func(n int) string { return []string{"/x", "/y"}[n%2] }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			f := fetch.Fetcher{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
				n++
				return response(301, "", "Location", c.location(n-1)), nil
			})}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			check(t, r, err, "allow")
			if n != c.requests || r.StatusCode != 301 {
				t.Errorf("got %d requests, status %d, want %d, 301", n, r.StatusCode, c.requests)
			}
		})
	}
}

// Eighteen requests are what five redirects and two retries of each URL come to. They are
// the limit of everything else, too.
func TestAFetchHasEighteenRequestsInAll(t *testing.T) {
	for _, c := range []struct {
		name    string
		retries int
		prev    string                       // the URL of the stored file
		answer  func(n int) (int, [2]string) // status and header of the n-th request
	}{
		{"redirects after retries", 30, "", func(n int) (int, [2]string) {
			if n < 18 {
				return 503, [2]string{}
			}
			return 302, [2]string{"Location", fmt.Sprintf("/%d", n)}
		}},
		{"a 304 of another copy", 0, "http://a.test/15", func(n int) (int, [2]string) {
			switch {
			case n == 18:
				return 304, [2]string{"ETag", `"other"`}
			case n%3 == 0:
				return 302, [2]string{"Location", fmt.Sprintf("/%d", n)}
			}
			return 503, [2]string{}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				f := fetch.Fetcher{Retries: c.retries, Timeout: time.Hour, AttemptTimeout: time.Minute, Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
					n++
					status, header := c.answer(n)
					return response(status, "", header[:]...), nil
				})}
				prev := stored("ETag", tag)
				prev.Redirects = []string{c.prev}
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), prev)
				check(t, r, err, "disallow")
				if n != 18 {
					t.Errorf("got %d requests, want 18", n)
				}
			})
		})
	}
}

func TestRetries(t *testing.T) {
	down := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		retries int
		status  int
		header  []string
		err     error
		want    int // requests
	}{
		{"404", 0, 404, nil, nil, 1},
		{"200", 0, 200, nil, nil, 1},
		{"304", 0, 304, nil, nil, 1},
		{"429", 0, 429, nil, nil, 1},
		{"600", 0, 600, nil, nil, 1},
		{"503 by default", 0, 503, nil, nil, 3},
		{"503 once", 1, 503, nil, nil, 2},
		{"503 never", -1, 503, nil, nil, 1},
		{"503 often", 1000, 503, nil, nil, 10}, // pauses grow, Timeout ends it: see below
		{"failure by default", 0, 0, nil, down, 3},
		{"failure never", -1, 0, nil, down, 1},
		{"Retry-After that fits", 0, 503, []string{"Retry-After", "9"}, nil, 3},
		{"Retry-After that fits once", 0, 503, []string{"Retry-After", "20"}, nil, 2},
		{"Retry-After that does not fit", 0, 503, []string{"Retry-After", "3600"}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, start := 0, time.Now()
				f := fetch.Fetcher{Retries: c.retries, Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
					n++
					return response(c.status, file, c.header...), c.err
				})}
				_, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 30*time.Second || c.want == 1 && took > 0 {
					t.Errorf("took %v", took)
				}
				if c.retries == 1000 {
					if n < c.want || n > 18 {
						t.Errorf("got %d requests, want %d to 18", n, c.want)
					}
				} else if n != c.want {
					t.Errorf("got %d requests, want %d", n, c.want)
				}
			})
		})
	}
}

func TestTheCallersContextIsTheOnlyError(t *testing.T) {
	hang := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	deaf := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		time.Sleep(time.Hour)
		return nil, errors.New("late")
	})
	for name, rt := range map[string]http.RoundTripper{"hangs": hang, "hangs and ignores its context": deaf} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fetch.Fetcher{Transport: rt}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
					t.Errorf("got %v, %v", r, err)
				}
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("returned after %v, want 3s", took)
				}
				if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
					t.Errorf("with an ended context: got %v, %v", r, err)
				}
				// Our own time-out is an answer.
				start = time.Now()
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				check(t, r, err, "disallow")
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("gave up after %v, want at most 30s", took)
				}
				time.Sleep(2 * time.Hour) // the deaf transport's goroutines end
			})
		})
	}
}

func TestFetchesWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, most := 0, 0
		var mu sync.Mutex
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			busy += by
			most = max(most, busy)
		}
		f := fetch.Fetcher{MaxFetches: 2, Timeout: 10 * time.Second, Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
			count(1)
			defer count(-1)
			time.Sleep(8 * time.Second)
			return response(200, file), nil
		})}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				// The last wait 16 s, and then have their 10 s.
				r, err := f.Fetch(t.Context(), originOf(t, fmt.Sprintf("http://a%d.test", i)), nil)
				if err != nil || r.Err != nil {
					t.Errorf("%v, %v", err, r.Err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := f.Fetch(ctx, originOf(t, "http://late.test"), nil); err != context.DeadlineExceeded || time.Since(start) != time.Second {
			t.Errorf("in the queue: %v after %v", err, time.Since(start))
		}
		all.Wait()
		if most != 2 {
			t.Errorf("%d at once, want 2", most)
		}
	})
}

func TestTheRequestIsMadeFromNothing(t *testing.T) {
	want := http.Header{"User-Agent": {agent}, "Accept": {"text/plain, */*;q=0.5"}, "Accept-Encoding": {"gzip"}}
	f := fetch.Fetcher{UserAgent: agent, Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || r.Body != nil || r.URL.User != nil || r.URL.Fragment != "" || !maps.EqualFunc(r.Header, want, slices.Equal) {
			t.Errorf("sent %s %s with %v", r.Method, r.URL, r.Header)
		}
		if r.URL.Path == "/robots.txt" {
			return response(301, "", "Location", "https://u:p@b.test/r#f", "Set-Cookie", "a=b"), nil
		}
		return response(200, file, "Set-Cookie", "a=b"), nil
	})}
	r, err := f.Fetch(t.Context(), originOf(t, "http://u:p@a.test/x#f"), nil)
	check(t, r, err, "rules")
	if r.Header.Get("Set-Cookie") != "" {
		t.Error("a cookie is kept")
	}
}

func TestAUserAgentThatCannotBeSentIsSaidAtOnce(t *testing.T) {
	for _, agent := range []string{"bot/1.0\r\nCookie: a=b", "bot\n", "bot\x00", "\x7f"} {
		rt, n := answers(response(200, file))
		f := fetch.Fetcher{Transport: rt, UserAgent: agent}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		check(t, r, err, "disallow")
		if *n != 0 || !strings.Contains(r.Err.Error(), "UserAgent") || !strings.Contains(r.Err.Error(), "control characters") {
			t.Errorf("%q: %d requests, Err %v", agent, *n, r.Err)
		}
	}
}

// T-21: the file that binds a request is the one of the name that the request bears, at
// the place where it goes.
func TestAnOriginOfAnotherNameIsAskedUnderThatName(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.URL.Path)
		if r.URL.Path == "/robots.txt" {
			http.Redirect(w, r, "r.txt", http.StatusFound)
			return
		}
		io.WriteString(w, file)
	}))
	defer s.Close()
	req, err := http.NewRequest(http.MethodGet, s.URL+"/page", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "Site.Test:80"
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		t.Fatal(err)
	}
	var f fetch.Fetcher
	r, err := f.Fetch(t.Context(), o, nil)
	check(t, r, err, "rules")
	if !slices.Equal(asked, []string{"site.test/robots.txt", "site.test/r.txt"}) || !slices.Equal(r.Redirects, []string{"http://site.test/r.txt"}) {
		t.Errorf("asked %q, Redirects %q", asked, r.Redirects)
	}
}

func TestNothingIsSentForACallerWhoHasGone(t *testing.T) {
	rt, n := answers(response(200, file))
	f := fetch.Fetcher{Transport: rt}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a select would be right every other time
		if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.Canceled || *n != 0 {
			t.Fatalf("got %v, %v, %d requests", r, err, *n)
		}
	}
}

// There is no use in a pause that the caller will not see the end of.
func TestNoPauseGoesBeyondTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, n := answers(response(503, "", "Retry-After", "10"))
		f := fetch.Fetcher{Transport: rt}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil)
		check(t, r, err, "disallow")
		if took := time.Since(start); took != 0 || *n != 1 {
			t.Errorf("%d requests in %v", *n, took)
		}
	})
}

func TestErrSaysWhichTimeWasUp(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + file
	for name, c := range map[string]struct{ message, want string }{
		"in the header": {"HTTP/1.1 200 OK\r\n", "header"},
		"in the body":   {head, "no complete answer to one request within 15s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fetch.Fetcher{Retries: -1, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() {
						http.ReadRequest(bufio.NewReader(server))
						io.WriteString(server, c.message)
						io.Copy(io.Discard, server)
					}()
					return client, nil
				}}}
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				check(t, r, err, "disallow")
				if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) {
					t.Errorf("got %v, want it to say %q", r.Err, c.want)
				}
			})
		})
	}
}

// An answer that breaks off is worth one more request, what will fail again none.
func TestWhatIsWorthARetry(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error  // of the transport, or
		body string // a body that breaks off
		want int
	}{
		{"time-out", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "", 3},
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "", 3},
		{"name server does not answer", &net.DNSError{IsTimeout: true}, "", 3},
		{"name does not exist", &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, "", 1},
		{"certificate", &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}}, "", 1},
		{"body breaks off", nil, file, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				f := fetch.Fetcher{Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
					n++
					res := response(200, "")
					res.Body = io.NopCloser(io.MultiReader(strings.NewReader(c.body), readFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF })))
					return res, c.err
				})}
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				check(t, r, err, "disallow")
				if n != c.want {
					t.Errorf("%d requests, want %d", n, c.want)
				}
				if n > 1 && !strings.Contains(r.Err.Error(), fmt.Sprintf("requests: %d", n)) {
					t.Errorf("Err does not say that there were %d requests: %v", n, r.Err)
				}
			})
		})
	}
}

// eofConn is a stream, as of a multiplexer, whose Read ends with io.EOF once it is closed
// at this end.
type eofConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *eofConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func (c *eofConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && c.closed.Load() {
		err = io.EOF
	}
	return n, err
}

// T-02: a file without a length, of which one half came, is not the whole file because we
// hang up.
func TestOurOwnCloseIsNotTheEndOfTheFile(t *testing.T) {
	base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			http.ReadRequest(bufio.NewReader(server))
			io.WriteString(server, "HTTP/1.1 200 OK\r\n\r\n"+file)
			io.Copy(io.Discard, server)
		}()
		return &eofConn{Conn: client}, nil
	}}
	t.Run("time-out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := fetch.Fetcher{Transport: base, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			check(t, r, err, "disallow")
		})
	})
	t.Run("the caller goes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := fetch.Fetcher{Transport: base, Retries: -1}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	})
}

type stuckConn struct {
	net.Conn
	closed <-chan struct{}
}

func (c stuckConn) Close() error {
	<-c.closed
	return c.Conn.Close()
}

// What the caller has put into an *http.Transport may block. Fetch keeps its time.
func TestFetchEndsInTimeWhateverACallersFunctionDoes(t *testing.T) {
	for _, name := range []string{"proxy", "close", "dial", "read"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					go func() {
						io.Copy(io.Discard, server)
						server.Close()
					}()
					if name == "dial" {
						<-over
					}
					if name == "close" {
						return stuckConn{client, over}, nil
					}
					return client, nil
				}}
				if name == "proxy" {
					base.Proxy = func(*http.Request) (*url.URL, error) { <-over; return nil, errors.New("no") }
				}
				f := fetch.Fetcher{Transport: base, MaxFetches: 1}
				for range 2 { // the first has to give its place back
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					start := time.Now()
					if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded || time.Since(start) != time.Second {
						t.Errorf("got %v, %v after %v", r, err, time.Since(start))
					}
					cancel()
				}
				close(over)
				synctest.Wait()
			})
		})
	}
}
