package client_test

import (
	"context"
	"errors"
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
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// Trace hears the reason of a permission, for which RoundTrip itself has no use.
func TestDecidedIsToldWhyARequestIsAllowed(t *testing.T) {
	var told client.Answer
	rt := &client.Transport{
		Base: &web{robots: "User-agent: *\nDisallow: /private\nAllow: /private/press\n"}, UserAgent: "ExampleBot/1.0",
		Trace: &client.Trace{Decided: func(_ context.Context, _ *url.URL, a client.Answer, _ time.Duration, _ error) { told = a }},
	}
	if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/private/press/1")}); err != nil {
		t.Fatal(err)
	}
	want := policy.Decision{Allowed: true, Reason: policy.ReasonRule, Rule: policy.Rule{Allow: true, Pattern: "/private/press", Line: 3}, GroupToken: "*"}
	if told.Decision != want || told.Token != "ExampleBot" {
		t.Errorf("told %v for %q, want %v for ExampleBot", told.Decision, told.Token, want)
	}
}

func TestDecidedIsCalledWithTheErrorToo(t *testing.T) {
	for _, u := range []*url.URL{{Scheme: "http", Host: "a.example", Path: "x"}, {Scheme: "http", Host: "a..example", Path: "/x"}, nil} {
		var told []error
		rt := &client.Transport{Base: &web{}, Token: "ExampleBot", Trace: &client.Trace{
			Decided: func(_ context.Context, of *url.URL, a client.Answer, _ time.Duration, err error) {
				if of != u || a != (client.Answer{Token: "ExampleBot"}) {
					t.Errorf("told of %v and %+v, want %v and only the token", of, a, u)
				}
				told = append(told, err)
			},
		}}
		if _, err := rt.RoundTrip(&http.Request{URL: u}); err == nil || !slices.Equal(told, []error{err}) {
			t.Errorf("%v: told %v, want %v once", u, told, err)
		}
	}
}

// Fetched is told of each reading, and of one that did not come to the site.
func TestFetchedSaysWhatARobotsTxtWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked := false
		var told []string
		rt := &client.Transport{
			Base: roundtrip.Func(func(*http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				return answer(404, "", ""), nil
			}),
			Cache: &cache.Cache{MaxTTL: time.Minute},
			Sign: func(*http.Request) error {
				if locked {
					return errors.New("vault away")
				}
				return nil
			},
			Trace: &client.Trace{Fetched: func(_ context.Context, o fetch.Origin, r *fetch.Result, took time.Duration, err error) {
				told = append(told, fmt.Sprint(o, " ", r, " ", took, " ", err))
			}},
		}
		for range 3 {
			rt.Decide(t.Context(), parse("http://a.example/x"))
			time.Sleep(time.Hour)
			locked = len(told) == 2
		}
		was := "http://a.example status 404 in RFC9309: robots.txt is unavailable 1s <nil>"
		isNot := "http://a.example <nil> 0s fetch: http://a.example: not sent, because Sign failed: vault away"
		if want := []string{was, was, isNot}; !slices.Equal(told, want) {
			t.Errorf("got %q, want %q", told, want)
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
				Fetched: func(context.Context, fetch.Origin, *fetch.Result, time.Duration, error) { say("fetched") },
				Waited:  func(context.Context, *url.URL, time.Duration, error) { say("waited") },
				Decided: func(context.Context, *url.URL, client.Answer, time.Duration, error) { say("decided") },
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
		if err == nil || !strings.HasSuffix(err.Error(), ", as robots.txt has to be read first") {
			t.Errorf("got %v, want an error that says that robots.txt has to be read first", err)
		}
		want := []string{
			"http://a.example/1 1s <nil>",
			"http://a.example/3 100ms context canceled",
			"http://a.example/4 500ms <nil>",
			"http://a.example/5 0s client: not sent: no turn at http://a.example before 2000-01-01T00:01:03.000Z, as requests there are 1s apart",
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
