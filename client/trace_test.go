package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

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
		rt := &client.Transport{Base: &web{robots: robots}, Cache: &cache.Cache{MaxTTL: time.Minute, NoRefresh: true}, Trace: &client.Trace{
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
				Waited:  func(context.Context, *url.URL, time.Duration, error) { say("waited") },
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

// Trace.Waited says what the Pacer did, and is silent where it did nothing.
func TestTraceWaitedSaysHowLongARequestWasHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(chan string, 9)
		c := paced(&client.Pacer{}, pagesOf(ok))
		c.Transport.(*client.Transport).Trace = &client.Trace{Waited: func(_ context.Context, u *url.URL, took time.Duration, err error) {
			log <- fmt.Sprint(u, " ", took, " ", err)
		}}
		get(t, c, "http://a.example/1") // a second after robots.txt
		time.Sleep(time.Minute)
		get(t, c, "http://a.example/2")
		time.Sleep(400 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/3", nil)
		c.Do(req)
		get(t, c, "http://a.example/4")
		c.Transport.(*client.Transport).Try(t.Context(), parse("http://a.example/5"))
		_, err := c.Transport.(*client.Transport).Try(t.Context(), parse("http://b.example/")) // Decided gets this one
		if err == nil || !strings.HasSuffix(err.Error(), ", as robots.txt is being read") {
			t.Errorf("got %v, want an error that says that robots.txt is being read", err)
		}
		want := []string{
			"http://a.example/1 1s <nil>",
			"http://a.example/3 100ms context canceled",
			"http://a.example/4 500ms <nil>",
			"http://a.example/5 0s client: not sent: no turn at http://a.example before 2000-01-01T00:01:03.000Z",
		}
		synctest.Wait()
		for _, want := range want {
			if got := <-log; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if len(log) > 0 {
			t.Errorf("and then %q", <-log)
		}
	})
}
