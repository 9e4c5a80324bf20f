package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	maxFile = 500 << 10 // bytes of a file that count (RFC 9309 §2.5)

	agent = "examplebot/1.0"
	file  = "User-agent: *\nDisallow: /private\n"
)

func response(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// answers is a transport that gives one answer after the other, the last one for ever.
func answers(of ...*http.Response) (roundtrip.Func, *int) {
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
	case r == nil || r.Policy == nil || r.Time.IsZero() || len(r.Body) > maxFile+1 || len(r.Redirects) > 5:
		t.Fatalf("got %v, want a whole Result within its bounds", r)
	}
	if got := verdict(r); got != want {
		t.Errorf("got verdict %s, want %s (status %d, Err %v)", got, want, r.StatusCode, r.Err)
	}
	lost := r.Policy.Decide("examplebot", "/public").Reason == policy.ReasonUnreachable
	if lost != (r.Err != nil) {
		t.Errorf("status %d: unreachable: %v, but Err is %v, want one only if unreachable", r.StatusCode, lost, r.Err)
	}
	if r.Err == nil {
		return
	}
	text := r.Err.Error()
	if !strings.HasPrefix(text, "fetch: ") || len(text) > 1024 || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		t.Errorf("Err is %.200q, of %d bytes, want a printable text of 1 KiB at most that begins with \"fetch: \"", text, len(text))
	}
	if errors.Unwrap(r.Err) != nil {
		t.Errorf("Err wraps %v, want nothing", errors.Unwrap(r.Err))
	}
}

// fetched is what f makes of the robots.txt for a URL. It checks that as check does.
func fetched(t *testing.T, f *fetch.Fetcher, url string, prev *fetch.Result, want string) *fetch.Result {
	t.Helper()
	r, err := f.Fetch(t.Context(), originOf(t, url), prev)
	check(t, r, err, want)
	return r
}

func TestTheZeroValueFetches(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, file) }))
	defer s.Close()
	var f fetch.Fetcher
	r := fetched(t, &f, s.URL, nil, "rules")
	if r.StatusCode != 200 || string(r.Body) != file || r.Redirects != nil || r.Truncated || r.RetryAfter != 0 {
		t.Errorf("got %v with %q, want the file and nothing else", r, r.Body)
	}
}

func TestTheZeroOriginIsAnError(t *testing.T) {
	rt, n := answers(response(200, file))
	f := fetch.Fetcher{Transport: rt}
	r, err := f.Fetch(t.Context(), fetch.Origin{}, nil)
	if *n != 0 || r != nil || !strings.Contains(fmt.Sprint(err), "OriginOf") {
		t.Errorf("got %d requests, %v, %v, want none, and an error that names OriginOf", *n, r, err)
	}
}

func TestRedirects(t *testing.T) {
	const long = "/" + "0123456789"
	for _, c := range []struct {
		name, location string
		want           string // the URL that is asked next; "" if none is
	}{
		{"path", "/r.txt", "http://a.test/r.txt"},
		{"query", "?v=2", "http://a.test/robots.txt?v=2"},
		{"another host", "http://b.test/robots.txt", "http://b.test/robots.txt"},
		{"another host without scheme", "//b.test/robots.txt", "http://b.test/robots.txt"},
		{"https", "https://a.test/robots.txt", "https://a.test/robots.txt"},
		{"a port", "http://a.test:8080/robots.txt", "http://a.test:8080/robots.txt"},
		{"userinfo and fragment", "http://u:p@b.test/r#f", "http://b.test/r"},
		{"a host to make canonical", "http://B.TEST.:80/r", "http://b.test/r"},
		{"IDN", "http://www.müller.eu/r", "http://www.xn--mller-kva.eu/r"},
		{"escaped path", "/a%2Fb%20c", "http://a.test/a%2Fb%20c"},
		{"spaces", "/a b?name=a b", "http://a.test/a%20b?name=a%20b"},
		{"no path", "http://b.test", "http://b.test"},
		{"an empty host", "//", ""},
		{"an empty host with a query", "//?x", ""},
		{"ftp", "ftp://a.test/robots.txt", ""},
		{"file", "file:///etc/passwd", ""},
		{"no host", "http:///robots.txt", ""},
		{"empty", "", ""},
		{"no URL", "http://a.test:port/", ""},
		{"no name", "http://a..b/", ""},
		{"control character", "http://a.test/\x01", ""},
		{"metadata service", "http://169.254.169.254/latest", ""},
		{"loopback", "http://127.0.0.1/r", ""},
		{"loopback, mapped", "http://[::ffff:127.0.0.1]/r", ""},
		{"unspecified", "http://0.0.0.0/r", ""},
		{"too long", strings.Repeat(long, 1000), ""},
	} {
		for _, same := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " of the same host: ", same), func(t *testing.T) {
				var asked []string
				f := fetch.Fetcher{Retries: -1, SameHost: same, Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
					asked = append(asked, r.URL.String())
					if r.Host != r.URL.Host {
						t.Errorf("asked %s under the name %s, want that of the URL", r.URL, r.Host)
					}
					if len(asked) == 1 {
						return response(302, file, "Location", c.location), nil
					}
					return response(200, file), nil
				})}
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				if c.want == "" || same && !strings.Contains(c.want, "//a.test") {
					check(t, r, err, "disallow")
					if len(asked) != 1 {
						t.Errorf("asked %q, want the first alone", asked)
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
}

func TestTheSameHostIsTheNameThatIsAskedFor(t *testing.T) {
	o, err := unmarshal("http://a.test via 192.0.2.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	for location, want := range map[string]string{
		"/r": "rules", "https://a.test:8443/r": "rules", "http://192.0.2.1:8080/r": "disallow", "http://b.test/r": "disallow",
	} {
		send, _ := answers(response(302, "", "Location", location), response(200, file))
		f := fetch.Fetcher{Retries: -1, SameHost: true, Transport: send}
		r, err := f.Fetch(t.Context(), o, nil)
		check(t, r, err, want)
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
			f := fetch.Fetcher{Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
				n++
				return response(301, "", "Location", c.location(n-1)), nil
			})}
			r := fetched(t, &f, "http://a.test", nil, "allow")
			if n != c.requests || r.StatusCode != 301 {
				t.Errorf("got %d requests, status %d, want %d, 301", n, r.StatusCode, c.requests)
			}
		})
	}
}

// Who waits in line loses no time of the site's, and gives up with its context.
func TestRequestsWaitInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Int32
		f := fetch.Fetcher{MaxFetches: 2, Timeout: 18 * time.Second, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
			if busy.Add(1) > 2 {
				t.Error("three requests at once, want two at most")
			}
			time.Sleep(8 * time.Second)
			busy.Add(-1)
			return response(200, file), nil
		})}
		for i := range 6 {
			go fetched(t, &f, fmt.Sprintf("http://a%d.test", i), nil, "rules") // the last wait 16 s
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := f.Fetch(ctx, originOf(t, "http://late.test"), nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "MaxFetches") || time.Since(start) != time.Second {
			t.Errorf("in the queue: got %v after %v, want a DeadlineExceeded that names MaxFetches after 1s", err, time.Since(start))
		}
		time.Sleep(time.Minute)
	})
}

func TestTheRequestIsMadeFromNothing(t *testing.T) {
	want := http.Header{"User-Agent": {agent}, "Accept": {"text/plain, */*;q=0.5"}, "Accept-Encoding": {"gzip"}}
	f := fetch.Fetcher{UserAgent: agent, Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || r.Body != nil || r.URL.User != nil || r.URL.Fragment != "" || !maps.EqualFunc(r.Header, want, slices.Equal) {
			t.Errorf("sent %s %s with %v, want GET and %v", r.Method, r.URL, r.Header, want)
		}
		if r.URL.Path == "/robots.txt" {
			return response(301, "", "Location", "https://u:p@b.test/r#f", "Set-Cookie", "a=b"), nil
		}
		return response(200, file, "Set-Cookie", "a=b"), nil
	})}
	r := fetched(t, &f, "http://u:p@a.test/x#f", nil, "rules")
	if r.Header.Get("Set-Cookie") != "" {
		t.Error("a cookie is kept")
	}
}

func TestAUserAgentThatCannotBeSentIsSaidAtOnce(t *testing.T) {
	for _, agent := range []string{"bot/1.0\r\nCookie: a=b", "bot\n", "bot\x00", "\x7f"} {
		rt, n := answers(response(200, file))
		f := fetch.Fetcher{Transport: rt, UserAgent: agent}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		failure, _ := errors.AsType[*fetch.Failure](err)
		if *n != 0 || r != nil || failure == nil || failure.Cause != "proxy_configuration_error" || !strings.Contains(failure.Text, "UserAgent") {
			t.Errorf("%q: %d requests, %v, %v, want a Failure that names UserAgent", agent, *n, r, err)
		}
	}
}

// T-21: the file that binds a request is the one of the name that the request bears, at the place where it goes.
func TestAnOriginOfAnotherNameIsAskedUnderThatName(t *testing.T) {
	o, err := fetch.OriginOfRequest(&http.Request{URL: originOf(t, "http://127.0.0.1:8080").RobotsURL(), Host: "Site.Test:80"})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	f := fetch.Fetcher{Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host+" "+r.Host+r.URL.Path)
		return response(200+102*(2-len(asked)), file, "Location", "r.txt"), nil
	})}
	r, err := f.Fetch(t.Context(), o, nil)
	check(t, r, err, "rules")
	want := []string{"127.0.0.1:8080 site.test/robots.txt", "127.0.0.1:8080 site.test/r.txt"}
	if !slices.Equal(asked, want) || !slices.Equal(r.Redirects, []string{"http://site.test/r.txt"}) {
		t.Errorf("asked %q, Redirects %q, want %q and the second as http://site.test/r.txt", asked, r.Redirects, want)
	}
}

// What a test or a log prints of a Result is one short line, whatever the file or the error.
func TestAResultIsOneLine(t *testing.T) {
	long := []byte("User-agent: *\n" + strings.Repeat("Disallow: /secret\n", 10_000))
	for _, c := range []struct {
		r    *fetch.Result
		want string // all of it, or how a long one begins
	}{
		{&fetch.Result{}, "status 0"},
		{&fetch.Result{Policy: policy.Parse(long), StatusCode: 200}, "status 200 in RFC9309: rules"},
		{&fetch.Result{Policy: policy.Parse(long), StatusCode: 200, Body: long}, "status 200 in RFC9309: rules in 180014 bytes"},
		{&fetch.Result{Policy: policy.Unavailable(), Dialect: policy.Yandex, StatusCode: 503}, "status 503 in Yandex: robots.txt is unavailable"},
		{&fetch.Result{Policy: policy.Unreachable(), Err: errors.New("fetch: no")}, "fetch: no"},
		{&fetch.Result{Policy: policy.Unreachable(), Err: errors.New("it broke off"), StatusCode: 200}, "it broke off (status 200)"},
		{&fetch.Result{Policy: policy.Unreachable(), Err: errors.New("status 503 Service Unavailable, twice"), StatusCode: 503}, "status 503 Service Unavailable, twice"},
		{&fetch.Result{Err: errors.New("it broke" + strings.Repeat("\nagain", 10_000))}, "it broke?again"},
	} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("fetched", "result", c.r, "value", *c.r)
		for _, got := range []string{fmt.Sprint(c.r), fmt.Sprintf("%+v", *c.r), c.r.LogValue().String()} {
			if got != c.want && len(got) < 400 || !strings.HasPrefix(got, c.want) || len(got) > 512 || strings.ContainsAny(got, "\n") || log.Len() > 1500 {
				t.Errorf("got %q and %d bytes of log, want a line that begins %q", got, log.Len(), c.want)
			}
		}
	}
}
