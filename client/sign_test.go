package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// Sign sees what goes out, when it goes out, in a copy.
func TestSignIsCalledLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var signed []string
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Signed") != req.URL.Path {
				t.Errorf("%s is signed as %q, want its path", req.URL, req.Header.Get("Signed"))
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
				t.Errorf("the caller's header is now %v, want it empty", req.Header)
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
	for _, path := range []string{"/page", "/robots.txt"} {
		synctest.Test(t, func(t *testing.T) {
			vault, fails := errors.New("key vault away"), 0
			gate := &client.Transport{Base: pagesOf(ok), Pacer: &client.Pacer{Delay: time.Second}, Sign: func(r *http.Request) error {
				if r.URL.Path == path && fails < 3 {
					fails++
					return vault
				}
				return nil
			}}
			for i := range 4 {
				start := time.Now()
				resp, err := gate.RoundTrip(request(http.MethodGet, "http://a.example/page", nil))
				if (i < 3) != (errors.Is(err, vault) && errors.Is(err, client.ErrNotSent)) {
					t.Errorf("%s, request %d: got %v, want the error of Sign: %t", path, i, err, i < 3)
				}
				if err == nil {
					resp.Body.Close()
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("%s, request %d waited %v, want 2s at most", path, i, took)
				}
			}
		})
	}
}
