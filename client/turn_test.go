package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// turnOf waits for a turn and tells how long that took.
func turnOf(t *testing.T, rt *client.Transport, url string) (*client.Turn, time.Duration) {
	t.Helper()
	begin := time.Now()
	turn, err := rt.Turn(t.Context(), parse(url))
	if err != nil {
		t.Fatal(err)
	}
	return turn, time.Since(begin)
}

// Requests and turns keep one distance, from start and from end.
func TestTurnsAndRequestsKeepOnePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := paced(&client.Pacer{}, siteOf("User-agent: *\nCrawl-delay: 2\n"))
		rt := web.Transport.(*client.Transport)
		turn, took := turnOf(t, rt, "http://a.example/1")
		if took != 2*time.Second || turn.Delay() != 2*time.Second {
			t.Errorf("after robots.txt: %v of %v, want 2s", took, turn.Delay())
		}
		time.AfterFunc(7*time.Second, turn.End)
		if _, took := get(t, web, "http://a.example/2"); took != 9*time.Second {
			t.Errorf("after a turn of 7s: %v, want 9s", took)
		}
		turn.End() // no harm: it was given back
		if _, took := turnOf(t, rt, "http://a.example/3"); took != 2*time.Second {
			t.Errorf("after a request: %v, want 2s", took)
		}
	})
}

// A turn teaches the Pacer what a response would have.
func TestTurnSaysHowTheSiteAnswered(t *testing.T) {
	for _, c := range []struct {
		status   int // negative: nothing is said
		field    string
		min, max time.Duration // until the next turn
	}{
		{-1, "", time.Second, time.Second},
		{200, "", time.Second, time.Second},
		{404, "7", time.Second, time.Second},
		{429, "7", 7 * time.Second, 7 * time.Second},
		{503, "Sat, 01 Jan 2000 00:01:00 GMT", 50 * time.Second, time.Minute}, // bubbles begin at midnight
		{500, "", 1600 * time.Millisecond, 2400 * time.Millisecond},
		{0, "", 1600 * time.Millisecond, 2400 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			rt := &client.Transport{Base: siteOf(""), Pacer: new(client.Pacer)}
			turn, _ := turnOf(t, rt, "http://a.example/")
			if c.status >= 0 {
				turn.Answered(c.status, http.Header{"Retry-After": {c.field}})
			}
			turn.End()
			if _, took := turnOf(t, rt, "http://a.example/"); took < c.min || took > c.max {
				t.Errorf("after %d, %q: %v, want %v to %v", c.status, c.field, took, c.min, c.max)
			}
		})
	}
}

func TestTurnIsRefusedAsARequestIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		robots := "User-agent: *\nDisallow: /private\n"
		base := &robotsAnswers{
			robots: func() *http.Response { return answer(200, "", robots) },
			page:   func() *http.Response { t.Error("a turn sends nothing"); return answer(200, "", "") },
		}
		rt := &client.Transport{Base: base, Token: "ExampleBot", Pacer: &client.Pacer{Delay: 15 * time.Hour}}
		ctx := t.Context()
		refused, err := rt.Turn(ctx, parse("http://a.example/private"))
		if e, ok := errors.AsType[*client.DisallowedError](err); !ok || e.Token != "ExampleBot" || e.Rule.Line != 2 {
			t.Errorf("/private: got %v, want a *DisallowedError", err)
		}
		if refused != nil {
			refused.End() // who waits for it would wait for ever
		}
		soon, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = rt.Turn(soon, parse("http://a.example/"))
		if _, ok := errors.AsType[*client.LateError](err); !ok || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a *LateError, which is no time-out", err)
		}
		if err := soon.Err(); err != nil {
			t.Errorf("got it with %v, want it before the deadline", err)
		}
		free, err := rt.Turn(client.WithoutRobots(ctx), parse("http://a.example/private"))
		if err != nil || free.Delay() != 0 {
			t.Errorf("without robots: got %+v, %v, want a Turn without a delay", free, err)
		}
		free.Answered(503, nil)
		free.End()
		// The rules of the time when the turn comes. The file is used as it is for 17 hours at least, and
		// for 24 at most: the first turn is given by the old one, the next 15 hours later by the new one.
		robots = "User-agent: *\nDisallow: /\n"
		time.Sleep(16 * time.Hour)
		waits := make(chan error)
		first, _ := turnOf(t, rt, "http://a.example/")
		go func() {
			_, err := rt.Turn(ctx, parse("http://a.example/"))
			waits <- err
		}()
		synctest.Wait()
		first.End()
		err = <-waits
		if _, ok := errors.AsType[*client.DisallowedError](err); !ok {
			t.Errorf("after the rules changed: got %v, want a *DisallowedError", err)
		}
		rt.Shutdown(ctx)
	})
}

// A request that is made with a Turn's context is sent on it at once, whatever its path; later ones and hops wait in
// line. The place ends with the body, and End does nothing then.
func TestARequestIsSentOnItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var log []string
		gate := &client.Transport{Pacer: &client.Pacer{Delay: 2 * time.Second}, Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			log = append(log, fmt.Sprint(req.URL.Path, " ", time.Since(begin)))
			switch req.URL.Path {
			case "/robots.txt":
				return answer(200, "", "User-agent: *\nDisallow: /private\n"), nil
			case "/hop":
				res := answer(302, "", "")
				res.Header.Set("Location", "/target")
				return res, nil
			}
			return answer(200, "", "page"), nil
		})}
		c := &http.Client{Transport: gate}
		get := func(ctx context.Context, path string) *http.Response {
			req, err := http.NewRequestWithContext(ctx, "GET", "http://a.example"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		turn, _ := turnOf(t, gate, "http://a.example/1")
		ctx := turn.Context(t.Context())
		if _, err := c.Do(request("GET", "http://a.example/private", nil).WithContext(ctx)); !errors.As(err, new(*client.DisallowedError)) {
			t.Errorf("got %v, want the refusal of a rule", err)
		}
		res := get(ctx, "/other") // at once
		turn.End()                // no harm, and no end
		time.AfterFunc(3*time.Second, func() { res.Body.Close() })
		get(ctx, "/second").Body.Close() // in line, behind the body
		second, _ := turnOf(t, gate, "http://a.example/hop")
		get(second.Context(t.Context()), "/hop").Body.Close()
		late, _ := turnOf(t, gate, "http://a.example/late")
		time.Sleep(time.Minute)
		get(late.Context(t.Context()), "/late").Body.Close()
		want := []string{"/robots.txt 0s", "/other 2s", "/second 7s", "/hop 9s", "/target 11s", "/late 1m13s"}
		if !slices.Equal(log, want) {
			t.Errorf("got  %q\nwant %q", log, want)
		}
	})
}

// A Turn of another origin, or of another Pacer, is no turn here.
func TestATurnIsOfItsOriginAndItsPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Pacer: &client.Pacer{}, Base: siteOf("")}
		other := &client.Transport{Pacer: &client.Pacer{}, Base: siteOf("")}
		turn, _ := turnOf(t, gate, "http://a.example/")
		defer turn.End()
		for name, ask := range map[string]func() (*http.Response, error){
			"origin": func() (*http.Response, error) {
				return gate.RoundTrip(request("GET", "http://b.example/", nil).WithContext(turn.Context(t.Context())))
			},
			"Pacer": func() (*http.Response, error) {
				return other.RoundTrip(request("GET", "http://a.example/", nil).WithContext(turn.Context(t.Context())))
			},
		} {
			start := time.Now()
			if _, err := ask(); err != nil || time.Since(start) != time.Second {
				t.Errorf("another %s: %v after %v, want it after robots.txt and a delay", name, err, time.Since(start))
			}
		}
	})
}

// Try says go, not before, or no, and waits for nothing: for no turn, and for no robots.txt.
func TestTryHasThreeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		gate := &client.Transport{Pacer: &client.Pacer{}, Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path != "/robots.txt" {
				return ok(req)
			}
			select {
			case <-time.After(3 * time.Second):
				return answer(200, "", "User-agent: *\nDisallow: /private\nCrawl-delay: 5\n"), nil
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		})}
		defer gate.Shutdown(t.Context())
		late := func(err error) time.Duration {
			t.Helper()
			e, ok := errors.AsType[*client.LateError](err)
			if !ok || !errors.Is(err, client.ErrNotSent) || errors.Is(err, context.DeadlineExceeded) || e.Origin.String() != "http://a.example" {
				t.Fatalf("got %v, want a *LateError", err)
			}
			return e.At.Sub(begin)
		}
		u := parse("http://a.example/x")
		_, err := gate.Try(t.Context(), u) // starts to read robots.txt
		if at := late(err); at <= 0 || at > 2*time.Second {
			t.Errorf("while robots.txt is read: at %v, want within 2s", at)
		}
		synctest.Wait()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if _, err := gate.Try(t.Context(), parse("http://a.example/private")); !errors.As(err, new(*client.DisallowedError)) {
			t.Errorf("got %v, want a refusal", err)
		}
		_, err = gate.Try(t.Context(), u)
		if at := late(err); at != 8*time.Second {
			t.Errorf("after robots.txt: at %v, want 8s", at)
		}
		time.Sleep(5 * time.Second)
		turn, err := gate.Try(t.Context(), u)
		if err != nil || turn.Delay() != 5*time.Second {
			t.Fatalf("at that time: got %v, %v, want a Turn with a delay of 5s", turn, err)
		}
		if _, err := gate.RoundTrip(request("GET", "http://a.example/x", nil).WithContext(turn.Context(t.Context()))); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("sent after %v, want 8s", took)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := gate.Try(ended, u); err != context.Canceled {
			t.Errorf("with an ended context: got %v, want %v", err, context.Canceled)
		}
		if _, err := (&client.Transport{}).Try(t.Context(), u); !errors.Is(err, client.ErrNotSent) {
			t.Errorf("without a Pacer: got %v, want ErrNotSent", err)
		}
	})
}

// A site that pauses is not asked for robots.txt either; the caller learns until when.
func TestAPausedSiteIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := &client.Pacer{}
		get(t, paced(pacer, pagesOf(func(*http.Request) (*http.Response, error) { return answer(429, "3600", ""), nil })), "http://a.example/")
		gate := &client.Transport{Base: siteOf(""), Pacer: pacer} // with a Cache of its own
		defer gate.Shutdown(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		for how, ask := range map[string]func() error{
			"Decide": func() error { _, err := gate.Decide(ctx, parse("http://a.example/")); return err },
			"Turn":   func() error { _, err := gate.Turn(ctx, parse("http://a.example/")); return err },
			"Try":    func() error { _, err := gate.Try(ctx, parse("http://a.example/")); return err },
		} {
			late, ok := errors.AsType[*client.LateError](ask())
			if !ok || !late.Paused || time.Until(late.At) < 50*time.Minute {
				t.Errorf("%s: got %v, want that the site pauses for an hour", how, late)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("it took %v, want no time", took)
		}
	})
}

// The Crawl-delay of an Override counts, and MinDelay is a floor for it too.
func TestDelaysOfOverrideAndMinDelay(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{0: 500 * time.Millisecond, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			rules := policy.Parse([]byte("User-agent: *\nCrawl-delay: 0.5\nAllow: /\n"))
			gate := &client.Transport{
				Base: siteOf(""), Pacer: &client.Pacer{Delay: 10 * time.Second, MinDelay: delay},
				Override: func(fetch.Origin) *policy.Policy { return rules },
			}
			c := &http.Client{Transport: gate}
			if _, took := get(t, c, "http://a.example/1"); took != 0 {
				t.Errorf("the first waited %v, want no wait", took)
			}
			if _, took := get(t, c, "http://a.example/2"); took != want {
				t.Errorf("MinDelay %v: the second waited %v, want %v", delay, took, want)
			}
		})
	}
}

// What keeps robots.txt from being read is reported to a Try too, which does not wait for it: a queue must not ask for
// ever.
func TestTryHearsWhyRobotsIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vault, u := errors.New("key vault away"), parse("http://a.example/")
		gate := &client.Transport{Base: siteOf(""), Pacer: &client.Pacer{}, Sign: func(*http.Request) error {
			time.Sleep(time.Second) // which the first Try does not wait for
			return vault
		}}
		defer gate.Shutdown(t.Context())
		if _, err := gate.Try(t.Context(), u); !errors.As(err, new(*client.LateError)) {
			t.Errorf("at first: got %v, want a *LateError", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := gate.Try(t.Context(), u); !errors.Is(err, vault) || !errors.Is(err, client.ErrNotSent) {
			t.Errorf("then: got %v, want the error of Sign", err)
		}
	})
}

// A robots.txt that waited for a place until the end of its flight was not asked for: a Try is late then, and its error
// is no end of its own context.
func TestTryIsLateAfterAFlightThatFoundNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Pacer: &client.Pacer{}, Fetcher: &fetch.Fetcher{MaxFetches: 1, Timeout: time.Hour}, Base: roundtrip.Func(hang)}
		defer gate.Shutdown(t.Context())
		for _, u := range []string{"http://silent.example/", "http://b.example/"} {
			gate.Try(t.Context(), parse(u))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		for range 2 {
			if _, err := gate.Try(t.Context(), parse("http://b.example/")); !errors.As(err, new(*client.LateError)) {
				t.Errorf("got %v, want a *LateError", err)
			}
		}
	})
}

// A Try beyond the fetches that the cache starts for those who do not wait is late as any other: there is a time to ask
// again, and once the silent origins are given up its robots.txt is read.
func TestTryBehindAThousandSilentOriginsIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		gate := &client.Transport{Pacer: &client.Pacer{}, Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host != "last.example" {
				return hang(req)
			}
			asked.Add(1)
			return ok(req)
		})}
		defer gate.Shutdown(t.Context())
		for i := range 1000 {
			gate.Try(t.Context(), parse(fmt.Sprintf("http://silent%d.example/", i)))
		}
		tries := 0
		for ; tries < 200; tries++ {
			turn, err := gate.Try(t.Context(), parse("http://last.example/"))
			if err == nil {
				turn.End()
				break
			}
			late, isLate := errors.AsType[*client.LateError](err)
			if !isLate || time.Until(late.At) < 100*time.Millisecond {
				t.Fatalf("try %d: got %v, want a *LateError with a time to come", tries, err)
			}
			time.Sleep(time.Until(late.At))
		}
		if tries < 10 || tries == 200 || asked.Load() != 1 {
			t.Errorf("got a turn after %d tries and %d requests, want one after some ten seconds", tries, asked.Load())
		}
	})
}
