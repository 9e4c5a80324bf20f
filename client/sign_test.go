package client_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// Sign sees what goes out, when it goes out, in a copy.
func TestSignIsCalledLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var signed []string
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Signed") != req.URL.Path {
				t.Errorf("%s is signed as %q", req.URL, req.Header.Get("Signed"))
			}
			body := ""
			if req.URL.Path == "/robots.txt" {
				body = "User-agent: *\nCrawl-delay: 10\n"
			}
			return answer(200, "", body), nil
		})
		gate := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{}, Sign: func(r *http.Request) error {
			signed = append(signed, r.URL.Path+" "+r.Header.Get("User-Agent")+" "+time.Since(start).String())
			r.Header.Set("Signed", r.URL.Path)
			return nil
		}}
		for _, path := range []string{"/a", "/b"} {
			req := request(http.MethodGet, "http://a.example"+path, nil)
			resp, err := gate.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if len(req.Header) != 0 {
				t.Errorf("the caller's header is now %v", req.Header)
			}
		}
		want := "/robots.txt ExampleBot/1.0 0s, /a ExampleBot/1.0 10s, /b ExampleBot/1.0 20s"
		if got := strings.Join(signed, ", "); got != want {
			t.Errorf("signed %s, want %s", got, want)
		}
	})
}

// A Sign that fails for a robots.txt that had to wait for its turn is told at once, too.
func TestAFailingSignIsToldAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vault, start := errors.New("key vault away"), time.Now()
		gate := &client.Transport{
			Base: pagesOf(ok), Pacer: &client.Pacer{Delay: 20 * time.Second},
			Sign: func(r *http.Request) error { return vault },
		}
		get(t, paced(gate.Pacer, pagesOf(ok)), "http://a.example/page") // 20s after its robots.txt
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := gate.Decide(ctx, parse("http://a.example/page"))
		if took := time.Since(start); !errors.Is(err, vault) || took != 40*time.Second {
			t.Errorf("got %v after %v, want the error of Sign after 40s", err, took)
		}
		gate.Close()
	})
}

// A hook that fails is not the site's doing: the next request need not wait for longer.
func TestAFailingSignDoesNotSlowTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vault := errors.New("key vault away")
		fails := 0
		pacer := &client.Pacer{Delay: time.Second}
		gate := &client.Transport{
			Base:  roundtrip.Func(func(req *http.Request) (*http.Response, error) { return answer(404, "", ""), nil }),
			Pacer: pacer,
			Sign: func(r *http.Request) error {
				if r.URL.Path == "/page" && fails < 3 {
					fails++
					return vault
				}
				return nil
			},
		}
		for i := range 4 {
			start := time.Now()
			req := request(http.MethodGet, "http://a.example/page", nil)
			resp, err := gate.RoundTrip(req)
			if (i < 3) != errors.Is(err, vault) {
				t.Errorf("request %d: %v", i, err)
			}
			if err == nil {
				resp.Body.Close()
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("request %d waited %v", i, took)
			}
		}
	})
}

// A signature is of the canonical host, and that is what is sent with it: not all receivers make it of what they get.
// Without a signature the host stays as the caller has written it.
func TestTheHostIsCanonicalWhereItIsSigned(t *testing.T) {
	for _, c := range []struct{ url, host, signed, plain string }{
		{"http://EXAMPLE.com/", "", "example.com", "EXAMPLE.com"},
		{"http://example.com:80/", "", "example.com", "example.com:80"},
		{"https://example.com:443/", "", "example.com", "example.com:443"},
		{"http://10.0.0.1/", "Shop.example:80", "shop.example", "Shop.example:80"},
		{"http://example.com:8080/", "", "example.com:8080", "example.com:8080"},
	} {
		for _, sign := range []func(*http.Request) error{nil, func(*http.Request) error { return nil }} {
			want := c.plain
			if sign != nil {
				want = c.signed
			}
			gate := &client.Transport{Sign: sign, Base: pagesOf(func(req *http.Request) (*http.Response, error) {
				var wire strings.Builder
				if err := req.Write(&wire); err != nil || !strings.Contains(wire.String(), "\r\nHost: "+want+"\r\n") {
					t.Errorf("%s %s, signed %v: %v, sent %q, want %s", c.url, c.host, sign != nil, err, &wire, want)
				}
				return answer(200, "", ""), nil
			})}
			req := request(http.MethodGet, c.url, nil)
			if c.host != "" {
				req.Host = c.host
			}
			if _, err := gate.RoundTrip(req); err != nil {
				t.Error(err)
			}
		}
	}
}

// A clock that is wrong makes every signature invalid. That is said once.
func TestAClockThatIsWrongIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		off    time.Duration
		sign   bool
		told   bool
	}{
		{"ahead", 401, -2 * time.Minute, true, true},
		{"behind", 403, 2 * time.Minute, true, true},
		{"right", 403, 30 * time.Second, true, false},
		{"not refused", 200, time.Hour, true, false},
		{"not signed", 403, time.Hour, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			text := slog.NewTextHandler(&log, nil)
			logTo(t, func(r slog.Record) { text.Handle(t.Context(), r) })
			gate := &client.Transport{Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path == "/robots.txt" {
					return answer(404, "", ""), nil
				}
				resp := answer(c.status, "", "")
				resp.Header.Set("Date", time.Now().Add(c.off).UTC().Format(http.TimeFormat))
				return resp, nil
			})}
			if c.sign {
				gate.Sign = func(*http.Request) error { return nil }
			}
			for range 2 {
				req := request(http.MethodGet, "http://a.example/", nil)
				if _, err := gate.RoundTrip(req); err != nil {
					t.Fatal(err)
				}
			}
			if n := strings.Count(log.String(), "clock"); (n == 1) != c.told || n > 1 {
				t.Errorf("told %d times: %s", n, &log)
			}
		})
	}
}

// A site that asks for a signature is not asked again behind the caller's back.
func TestARequestForASignatureIsTheCallersToAnswer(t *testing.T) {
	pages := 0
	gate := &client.Transport{
		Base: pagesOf(func(*http.Request) (*http.Response, error) {
			pages++
			resp := answer(http.StatusForbidden, "", "sign")
			resp.Header.Set("Accept-Signature", `sig1=("@authority");tag="web-bot-auth"`)
			return resp, nil
		}),
		Sign: func(*http.Request) error { return nil },
	}
	req := request(http.MethodGet, "http://a.example/", nil)
	resp, err := gate.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusForbidden || resp.Header.Get("Accept-Signature") == "" || pages != 1 {
		t.Errorf("%v, %v, %d requests", resp, err, pages)
	}
}

// A Base of another type than *http.Transport may read the request, on a goroutine of its own, while it connects.
func TestWhatABaseHasIsNotSignedAnewBelowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			before := req.Header.Clone()
			time.Sleep(2 * time.Second)
			httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{
				Conn: located{near, &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}}})
			if !maps.EqualFunc(before, req.Header, slices.Equal) {
				t.Errorf("%v became %v", before, req.Header)
			}
			return answer(200, "", "page"), nil
		})
		gate := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Fetcher: &fetch.Fetcher{PublicOnly: true},
			Sign: func(req *http.Request) error { req.Header.Set("Signature", time.Now().String()); return nil }}
		res, err := gate.RoundTrip(request("GET", "http://site.example/", nil).WithContext(client.WithoutRobots(t.Context())))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	})
}
