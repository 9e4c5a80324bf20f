package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// A panic in Decided is the caller's, and leaves nothing broken behind.
func TestAPanicOfAHookHarmsNoLaterRequest(t *testing.T) {
	u := mustParse(t, "http://a.example/")
	armed := true
	rt := &client.Transport{Base: pagesOf(ok), Pacer: &client.Pacer{Delay: -1}, Trace: &client.Trace{Decided: func(context.Context, client.Decided) {
		if armed {
			panic("the hook's own")
		}
	}}}
	if got := panicOf(rt, u); got != "the hook's own" {
		t.Errorf("got the panic %v", got)
	}
	armed = false
	if got := panicOf(rt, u); got != nil {
		t.Errorf("the next request panics as well: %v", got)
	}
}

// panicOf is what a request for u ends with, if that is a panic.
func panicOf(rt http.RoundTripper, u *url.URL) (p any) {
	defer func() { p = recover() }()
	rt.RoundTrip(&http.Request{URL: u})
	return nil
}
