package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

// closeCount is a request's body that counts Close calls.
type closeCount struct {
	io.Reader
	closed int
}

func (c *closeCount) Close() error { c.closed++; return nil }

func TestARequestWithoutURLIsAnErrorThatSaysSo(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: robots}}
	body := &closeCount{Reader: strings.NewReader("payload")}
	for name, err := range map[string]error{
		"RoundTrip": func() error { _, err := rt.RoundTrip(&http.Request{Body: body}); return err }(),
		"Decide":    func() error { _, err := rt.Decide(t.Context(), nil); return err }(),
		"Lookup":    func() error { _, err := rt.Lookup(t.Context(), nil); return err }(),
		"Wait":      new(client.Pacer).Wait(t.Context(), nil),
		"Learn":     new(client.Pacer).Learn(nil, policy.Group{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "URL") {
			t.Errorf("%s: got %v, want an error about the URL", name, err)
		}
	}
	if body.closed != 1 {
		t.Errorf("the body was closed %d times, want once", body.closed)
	}
}

func TestABaseThatReturnsNothingIsNamed(t *testing.T) {
	nothing := roundTrip(func(*http.Request) (*http.Response, error) { return nil, nil })
	for _, row := range []struct {
		name  string
		base  http.RoundTripper
		pacer *client.Pacer
		url   string
		want  string // part of the error
	}{
		{"a page", pagesOf(nothing), nil, "http://a.example/", "Base (client_test.pagesOf)"},
		{"a paced page", pagesOf(nothing), &client.Pacer{Delay: -1}, "http://a.example/", "Base (client_test.pagesOf)"},
		{"another scheme", nothing, nil, "ftp://a.example/", "Base (client_test.roundTrip)"},
		{"robots.txt", nothing, nil, "http://a.example/", "unreachable (fetch: http://a.example/robots.txt: the transport returned neither"},
	} {
		t.Run(row.name, func(t *testing.T) {
			rt := &client.Transport{Base: row.base, Pacer: row.pacer}
			resp, err := rt.RoundTrip(&http.Request{URL: mustParse(t, row.url)})
			if resp != nil || err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, %v, want an error with %q", resp, err, row.want)
			}
		})
	}
}

// Robots.txt is read for all callers, but each waits as long as he wants to.
func TestABaseThatNeverReturnsHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		rt := &client.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) {
			<-release
			return nil, errors.New("released")
		})}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := rt.Decide(ctx, mustParse(t, "http://a.example/"))
		if took := time.Since(start); err != context.DeadlineExceeded || took != time.Second {
			t.Errorf("got %v after %v, want the context's error after 1s", err, took)
		}
		// One who would wait for ever hears that robots.txt cannot be had.
		d, err := rt.Decide(t.Context(), mustParse(t, "http://a.example/"))
		if took := time.Since(start); err != nil || d.Reason != policy.ReasonUnreachable || took > 40*time.Second {
			t.Errorf("got %v, %v after %v, want unreachable after 30s", d, err, took)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		close(release)
	})
}

func TestAPanicOfTheBaseInReadingRobotsMakesThemUnreachable(t *testing.T) {
	rt := &client.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) { panic("the base's own") })}
	_, err := rt.RoundTrip(&http.Request{URL: mustParse(t, "http://a.example/")})
	refusal, _ := errors.AsType[*client.DisallowedError](err)
	if refusal == nil || refusal.Decision.Reason != policy.ReasonUnreachable || !strings.Contains(refusal.Error(), "the base's own") {
		t.Errorf("got %v, want a refusal that names the panic", err)
	}
}

// A hook may do with the client what anybody may: ask for the very URL that it is told of.
func TestAHookThatUsesTheClientDoesNotBlockIt(t *testing.T) {
	for _, row := range []struct {
		name string
		hook func(*client.Trace, func())
	}{
		{"Decided", func(trace *client.Trace, again func()) {
			trace.Decided = func(context.Context, client.Decided) { again() }
		}},
		{"Fetched", func(trace *client.Trace, again func()) {
			trace.Fetched = func(client.Fetched) { again() }
		}},
		{"Waited", func(trace *client.Trace, again func()) {
			trace.Waited = func(context.Context, client.Waited) { again() }
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trace := new(client.Trace)
				// One place, no delay, so that all there is to wait for is somebody's end.
				pacer := &client.Pacer{Delay: time.Millisecond, MaxUnderway: 1}
				c := http.Client{Transport: &client.Transport{Base: pagesOf(ok), Pacer: pacer, Trace: trace}}
				var used atomic.Bool
				inner := make(chan error, 1)
				row.hook(trace, func() {
					if !used.Swap(true) {
						inner <- visit(&c, "http://a.example/")
					}
				})
				start := time.Now()
				if err := visit(&c, "http://a.example/"); err != nil {
					t.Error(err)
				}
				if err := visit(&c, "http://a.example/"); err != nil {
					t.Error(err)
				}
				if err := <-inner; err != nil {
					t.Errorf("the hook's request: %v", err)
				}
				if took := time.Since(start); took > 10*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func visit(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A hook that panics ends neither the program nor the Transport, and is named: in the log,
// and by the error of the request whose decision it was told.
func TestAHookThatPanicsIsNamed(t *testing.T) {
	for name, trace := range map[string]*client.Trace{
		"Decided":     {Decided: func(context.Context, client.Decided) { panic("the hook's own") }},
		"Fetched":     {Fetched: func(client.Fetched) { panic("the hook's own") }},
		"Refreshed":   {Refreshed: func(client.Fetched) { panic("the hook's own") }},
		"Waited":      {Waited: func(context.Context, client.Waited) { panic("the hook's own") }},
		"StoreFailed": {StoreFailed: func(client.StoreFailed) { panic("the hook's own") }},
	} {
		t.Run(name, func(t *testing.T) {
			logged := logTo(t)
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				rt := &client.Transport{
					Base: roundTrip(func(req *http.Request) (*http.Response, error) {
						if req.URL.Path != "/robots.txt" {
							sent++
							return ok(req)
						}
						res := answer(200, "", "User-agent: *\nDisallow: /private\n")
						res.Header.Set("ETag", `"1"`)
						return res, nil
					}),
					Pacer: &client.Pacer{Delay: time.Millisecond}, Trace: trace,
					Cache: &cache.Cache{Store: brokenStore{}, MinTTL: -1, MaxTTL: time.Second, Logger: slog.New(slog.DiscardHandler)},
				}
				ask := func(path string) error {
					resp, err := rt.RoundTrip(&http.Request{URL: mustParse(t, "http://a.example"+path)})
					if err == nil {
						resp.Body.Close()
					}
					return err
				}
				if refusal, is := errors.AsType[*client.DisallowedError](ask("/private")); !is {
					t.Errorf("got %v for what is disallowed", refusal)
				}
				time.Sleep(2 * time.Second) // robots.txt is no longer fresh
				err, want := ask("/"), 1
				if name == "Decided" {
					want = 0
				}
				if named := err != nil && err.Error() == "client: Trace.Decided panicked: the hook's own"; named != (want == 0) || !named && err != nil || sent != want {
					t.Errorf("got %v, and %d pages were sent, want %d", err, sent, want)
				}
				if err := rt.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
				rt.Cache.Close(t.Context()) // says what the Store did not get
			})
			if text := logged.String(); !strings.Contains(text, "client: Trace."+name+" panicked: the hook's own") || !strings.Contains(text, "misuse_test.go") {
				t.Errorf("logged %q, want the hook, the panic and its stack", text)
			}
		})
	}
}

// logTo sends what is logged to a buffer, to be read when nothing is logged any more.
func logTo(t *testing.T) *bytes.Buffer {
	logged, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return logged
}
