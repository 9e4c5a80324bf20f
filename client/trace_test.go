package client_test

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// A hook that panics ends neither the program nor the Transport, and is named: in the log,
// and by the error of the request whose decision it was told.
func TestAHookThatPanicsIsNamed(t *testing.T) {
	for name, trace := range map[string]*client.Trace{
		"Decided": {Decided: func(context.Context, client.DecidedInfo) { panic("the hook's own") }},
		"Fetched": {Fetched: func(context.Context, client.FetchedInfo) { panic("the hook's own") }},
		"Waited":  {Waited: func(context.Context, client.WaitedInfo) { panic("the hook's own") }},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var logged strings.Builder
			logTo(t, func(r slog.Record) {
				mu.Lock()
				defer mu.Unlock()
				logged.WriteString(r.Message)
				r.Attrs(func(a slog.Attr) bool { logged.WriteString(a.String()); return true })
			})
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				rt := &client.Transport{
					Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
						if req.URL.Path != "/robots.txt" {
							sent++
							return ok(req)
						}
						res := answer(200, "", "User-agent: *\nDisallow: /private\n")
						res.Header.Set("ETag", `"1"`)
						return res, nil
					}),
					Pacer: &client.Pacer{Delay: time.Millisecond}, Trace: trace,
					Cache: &cache.Cache{MinTTL: -1, MaxTTL: time.Second},
				}
				ask := func(path string) error {
					resp, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example" + path)})
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
				if err := rt.Shutdown(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
				if err := rt.Cache.Shutdown(t.Context()); err != nil {
					t.Errorf("Close of the Cache: %v", err)
				}
			})
			if text := logged.String(); !strings.Contains(text, "client: Trace."+name+" panicked: the hook's own") || !strings.Contains(text, "TestAHookThatPanicsIsNamed.func") {
				t.Errorf("logged %q, want the hook, the panic and its stack", text)
			}
		})
	}
}

// wicked panics again whenever it is asked what it is.
type wicked struct{}

func (w wicked) String() string { panic(w) }

// handler is a slog.Handler.
type handler func(slog.Record)

func (handler) Enabled(context.Context, slog.Level) bool        { return true }
func (h handler) Handle(_ context.Context, r slog.Record) error { h(r); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h handler) WithGroup(string) slog.Handler                 { return h }

// Nothing that a panic or the logging of it does gets out, or goes on without end.
func TestAHookThatPanicsWickedlyIsHeld(t *testing.T) {
	var rt *client.Transport
	var logged atomic.Int32
	u := parse("http://a.example/")
	for name, c := range map[string]struct {
		value   any
		handler handler
		want    string
	}{
		"a value that panics":            {wicked{}, func(slog.Record) {}, "client: Trace.Decided panicked: client_test.wicked"},
		"a long text":                    {strings.Repeat("x", 1<<20), func(slog.Record) {}, "client: Trace.Decided panicked: " + strings.Repeat("x", 256) + "…"},
		"a handler that panics":          {"hook", func(slog.Record) { panic("handler") }, "client: Trace.Decided panicked: hook"},
		"a handler that uses the gate":   {"hook", func(slog.Record) { rt.Decide(context.Background(), u) }, "client: Trace.Decided panicked: hook"},
		"a handler that panics wickedly": {wicked{}, func(slog.Record) { panic(wicked{}) }, "client: Trace.Decided panicked: client_test.wicked"},
	} {
		t.Run(name, func(t *testing.T) {
			logTo(t, func(r slog.Record) {
				if len(r.Message) > 1024 {
					t.Errorf("the text that is logged has %d bytes", len(r.Message))
				}
				logged.Add(1)
				c.handler(r)
			})
			logged.Store(0)
			trace := &client.Trace{Decided: func(context.Context, client.DecidedInfo) { panic(c.value) }}
			want := int32(1)
			if name != "a handler that uses the gate" { // which would wait for the file that is being reported
				trace.Fetched, want = func(context.Context, client.FetchedInfo) { panic(c.value) }, 2
			}
			rt = &client.Transport{Base: pagesOf(ok), Trace: trace}
			for range 3 {
				body := &closeCount{Reader: strings.NewReader("payload")}
				if _, err := rt.RoundTrip(&http.Request{URL: u, Body: body}); err == nil || err.Error() != c.want || body.closed != 1 {
					t.Errorf("got %v, want %q; the body was closed %d times", err, c.want, body.closed)
				}
				if d, err := rt.Decide(t.Context(), u); err == nil || d != (client.Answer{}) {
					t.Errorf("Decide: %v, %v, want an error and nothing else", d, err)
				}
			}
			if err := rt.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if n := logged.Load(); n != want {
				t.Errorf("logged %d times, want %d: once for each hook", n, want)
			}
		})
	}
}

// A hook that ends its goroutine, as Fatal does in a test, leaves no body open.
func TestAHookThatEndsItsGoroutineClosesTheBody(t *testing.T) {
	rt := &client.Transport{Base: pagesOf(ok), Trace: &client.Trace{Decided: func(context.Context, client.DecidedInfo) { runtime.Goexit() }}}
	body, done := &closeCount{Reader: strings.NewReader("payload")}, make(chan bool)
	go func() {
		defer close(done)
		rt.RoundTrip(&http.Request{URL: parse("http://a.example/"), Body: body})
		t.Error("the request went on")
	}()
	if <-done; body.closed != 1 {
		t.Errorf("the body was closed %d times", body.closed)
	}
}

// Trace hears the reason of a permission, for which RoundTrip itself has no use.
func TestDecidedIsToldWhyARequestIsAllowed(t *testing.T) {
	var told client.DecidedInfo
	rt := &client.Transport{
		Base: &web{robots: "User-agent: *\nDisallow: /private\nAllow: /private/press\n"}, UserAgent: "ExampleBot/1.0",
		Trace: &client.Trace{Decided: func(_ context.Context, d client.DecidedInfo) { told = d }},
	}
	if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/private/press/1")}); err != nil {
		t.Fatal(err)
	}
	want := policy.Decision{Allowed: true, Reason: policy.ReasonRule, Rule: policy.Rule{Allow: true, Pattern: "/private/press", Line: 3}, GroupToken: "*"}
	if told.Decision != want || told.Target != "/private/press/1" || told.Token != "ExampleBot" {
		t.Errorf("told %v of %q for %q, want %v", told.Decision, told.Target, told.Token, want)
	}
}

// logTo hands what is logged to h, until the test ends.
func logTo(t *testing.T, h handler) {
	before, to, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(h)) // which has package log write there as well
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(to)
		log.SetFlags(flags)
	})
}

func TestDecidedIsCalledWithTheErrorToo(t *testing.T) {
	n := 0
	rt := &client.Transport{Base: &web{}, Trace: &client.Trace{Decided: func(context.Context, client.DecidedInfo) { n++ }}}
	rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "a.example", Path: "x"}})
	rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "a..example", Path: "/x"}})
	if n != 2 {
		t.Errorf("Decided called %d times, want 2", n)
	}
}

// A Fetched names the file that it replaces a copy of.
func TestFetchedSaysWhetherItWasARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refreshes []bool
		rt := &client.Transport{Base: &web{robots: robots}, Cache: &cache.Cache{DefaultTTL: time.Minute, NoRefresh: true}, Trace: &client.Trace{
			Fetched: func(_ context.Context, f client.FetchedInfo) { refreshes = append(refreshes, f.Refresh) },
		}}
		for range 3 {
			if _, err := rt.Decide(t.Context(), parse("http://a.example/x")); err != nil {
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
			Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != "/robots.txt" {
					told = append(told, "sent")
				}
				return pages.RoundTrip(req)
			}),
			Pacer: &client.Pacer{Delay: 10 * time.Second},
			Trace: &client.Trace{
				Fetched: func(context.Context, client.FetchedInfo) { say("fetched") },
				Waited:  func(context.Context, client.WaitedInfo) { say("waited") },
				Decided: func(context.Context, client.DecidedInfo) { say("decided") },
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

// Who closes a Transport and then what its hooks write to must not be told of anything after
// that: neither of an answer from a cache that others go on with, nor of one that was late.
func TestDecidedIsNotCalledAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		base := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				<-release
			}
			return (&web{robots: robots}).RoundTrip(req)
		})
		var told atomic.Int32
		shared := new(cache.Cache)
		rt := &client.Transport{Base: base, Cache: shared, Trace: &client.Trace{
			Decided: func(context.Context, client.DecidedInfo) { told.Add(1) },
		}}
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := rt.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		close(release)
		asking.Wait()
		if told.Load() != 0 {
			t.Error("Decided was called after Close had returned")
		}
		if err := shared.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
