package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

func TestSchemelessURLIsNoWayRoundTheGate(t *testing.T) {
	for _, u := range []*url.URL{{Host: "a.example", Path: "/private"}, {Path: "/private"}} {
		base := &web{robots: robots}
		rt := &client.Transport{Base: base}
		if _, err := rt.RoundTrip(&http.Request{URL: u}); err == nil {
			t.Errorf("%q was handed to Base without a question", u)
		}
	}
}

func TestErrorTextIsSafeInALogLine(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /private"}
	rt := &client.Transport{Base: base}
	for _, u := range []*url.URL{
		mustParse(t, "http://a.example/private?q=\u009b2J\u202etxt.exe"), // a Location field can hold that
		mustParse(t, "http://a.example/private?\xff"),
		mustParse(t, "http://a.example/private?"+strings.Repeat("é", 300)),
	} {
		_, err := rt.RoundTrip(&http.Request{URL: u})
		var refusal *client.DisallowedError
		if !errors.As(err, &refusal) {
			t.Fatalf("%v", err)
		}
		text := refusal.Error()
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("unprintable or not UTF-8: %+q", text)
		}
	}
}

func TestDecideSaysWhatRoundTripDoes(t *testing.T) {
	for _, row := range []struct {
		name string
		ctx  context.Context
		url  string
	}{
		{"without robots", client.WithoutRobots(t.Context()), "http://a.example/private"},
		{"with robots", t.Context(), "http://a.example/private"},
	} {
		rt := &client.Transport{Base: &web{robots: "User-agent: *\nDisallow: /"}}
		u := mustParse(t, row.url)
		_, err := rt.RoundTrip((&http.Request{URL: u}).WithContext(row.ctx))
		d, derr := rt.Decide(row.ctx, u)
		if sent := err == nil; sent != d.Allowed {
			t.Errorf("%s: sent = %t, Decide says %v, %v", row.name, sent, d, derr)
		}
	}
}

func TestQueryWithHash(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /*?a$"}
	rt := &client.Transport{Base: base}
	if _, err := rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "a.example", Path: "/", RawQuery: "a#b"}}); err == nil {
		t.Errorf("sent %q", base.pages[0].URL.RequestURI())
	}
}

func TestDecidedIsCalledWithTheErrorToo(t *testing.T) {
	n := 0
	rt := &client.Transport{Base: &web{}, Trace: &client.Trace{Decided: func(context.Context, client.Decided) { n++ }}}
	rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "a.example", Path: "x"}})
	rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "a..example", Path: "/x"}})
	if n != 2 {
		t.Errorf("Decided called %d times, want 2", n)
	}
}

func TestWaitedIsCalled(t *testing.T) {
	var n atomic.Int32
	rt := &client.Transport{Base: &web{robots: robots}, Pacer: &client.Pacer{Delay: 20 * time.Millisecond}, Trace: &client.Trace{Waited: func(context.Context, client.Waited) { n.Add(1) }}}
	for range 2 {
		resp, err := rt.RoundTrip(&http.Request{URL: mustParse(t, "http://a.example/x")})
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err := rt.Close(t.Context()); err != nil || n.Load() == 0 {
		t.Error("no report")
	}
}

func TestDefaultTransportMayBeTheGateItself(t *testing.T) {
	if os.Getenv("ROBOTSGATE_TEST_SELF") != "" {
		http.DefaultTransport = &client.Transport{UserAgent: "ExampleBot/1.0"}
		_, err := http.Get("http://127.0.0.1:1/x")
		fmt.Println("error:", err)
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDefaultTransportMayBeTheGateItself$")
	cmd.Env = append(os.Environ(), "ROBOTSGATE_TEST_SELF=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %.300s", err, out)
	}
	t.Logf("%.300s", out)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// what is dialled and named is what was decided for
func FuzzTheHostSentIsTheHostDecidedOn(f *testing.F) {
	for _, h := range []string{"a.example", "A.example.", "a.example:80", "a.example:080", "[::1]", "[::1%eth0]:80", "[fe80::1%25x]:8080", "Müller.de", "1.2.3.4", "example。com", "a_b.example", "xn--mller-kva.de", "ſ.example", "a.example:443"} {
		f.Add(h, "", false)
		f.Add("a.example", h, false)
		f.Add(h, "B.example:0080", true)
	}
	f.Fuzz(func(t *testing.T, urlHost, hostField string, upper bool) {
		scheme := "http"
		if upper {
			scheme = "HTTP"
		}
		watch := time.AfterFunc(2*time.Second, func() { panic(fmt.Sprintf("stuck on %q %q %v", urlHost, hostField, upper)) })
		defer watch.Stop()
		type seen struct{ addr, host, target string }
		ch := make(chan seen, 8)
		base := &http.Transport{DisableKeepAlives: true, DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				req, err := http.ReadRequest(bufio.NewReader(far))
				if err != nil {
					return
				}
				ch <- seen{addr, req.Host, req.RequestURI}
				fmt.Fprint(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}()
			return near, nil
		}}
		rt := &client.Transport{Base: base, Fetcher: &fetch.Fetcher{Retries: -1, Timeout: time.Second, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})}}
		req := (&http.Request{URL: &url.URL{Scheme: scheme, Host: urlHost, Path: "/p"}, Host: hostField, Header: http.Header{}}).WithContext(t.Context())
		o, oerr := fetch.OriginOfRequest(&http.Request{URL: &url.URL{Scheme: "http", Host: urlHost}, Host: hostField})
		resp, err := rt.RoundTrip(req)
		if err != nil {
			if oerr == nil && !errors.As(err, new(*client.DisallowedError)) {
				t.Logf("%q %q: %v", urlHost, hostField, err)
			}
			return
		}
		resp.Body.Close()
		if oerr != nil {
			t.Fatalf("sent without origin: %v", oerr)
		}
		s := <-ch
		want := o.Authority()
		if _, _, e := net.SplitHostPort(want); e != nil {
			want += ":80"
		}
		if !strings.EqualFold(s.addr, want) {
			t.Errorf("%q %q: dialled %q, decided for %q", urlHost, hostField, s.addr, want)
		}
		if !strings.EqualFold(strings.TrimSuffix(s.host, ":80"), strings.TrimSuffix(o.Host(), ":80")) {
			t.Errorf("%q %q: named %q, decided for %q", urlHost, hostField, s.host, o.Host())
		}
	})
}

func TestEscapedSlashNextToDots(t *testing.T) {
	for _, raw := range []string{"/public/..%2fprivate/x", "/public/%2e%2e%2Fprivate/x", "/public%2f../private/x", "/public/x%2F..%2F..%2Fprivate/x"} {
		base := &web{robots: "User-agent: *\nDisallow: /private"}
		path, _ := url.PathUnescape(raw)
		u := &url.URL{Scheme: "http", Host: "a.example", Path: path, RawPath: raw}
		if _, err := (&client.Transport{Base: base}).RoundTrip(&http.Request{URL: u}); err == nil {
			t.Errorf("sent %q, which nginx answers as /private/x", u.RequestURI())
		}
	}
}

// A Fetched names the file that it replaces a copy of.
func TestFetchedSaysWhetherItWasARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refreshes []bool
		rt := &client.Transport{Base: &web{robots: robots}, Cache: &cache.Cache{DefaultTTL: time.Minute, Foreground: true}, Trace: &client.Trace{
			Fetched: func(f client.Fetched) { refreshes = append(refreshes, f.Refresh) },
		}}
		for range 3 {
			if _, err := rt.Decide(t.Context(), mustParse(t, "http://a.example/x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if want := []bool{false, true, true}; !slices.Equal(refreshes, want) {
			t.Errorf("got %v, want %v", refreshes, want)
		}
	})
}

// Hooks run where it happens: when RoundTrip returns, they have.
func TestHooksRunBeforeTheRequestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		say := func(what string) { time.Sleep(time.Second); told = append(told, what) }
		pages := pagesOf(ok)
		rt := &client.Transport{
			Base: roundTrip(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != "/robots.txt" {
					told = append(told, "sent")
				}
				return pages.RoundTrip(req)
			}),
			Pacer: &client.Pacer{Delay: 10 * time.Second},
			Trace: &client.Trace{
				Fetched: func(client.Fetched) { say("fetched") },
				Waited:  func(context.Context, client.Waited) { say("waited") },
				Decided: func(context.Context, client.Decided) { say("decided") },
			},
		}
		if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != nil {
			t.Fatal(err)
		}
		if want := []string{"fetched", "decided", "waited", "sent"}; !slices.Equal(told, want) {
			t.Errorf("got %q, want %q", told, want)
		}
	})
}
