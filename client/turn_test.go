package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/internal/memturns"
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

// Requests and turns keep one distance, from start and from end, in one process and in a fleet.
func TestTurnsAndRequestsKeepOnePace(t *testing.T) {
	for name, pacer := range map[string]*client.Pacer{"alone": {}, "a fleet": {Turns: new(memturns.Store)}} {
		synctest.Test(t, func(t *testing.T) {
			web := paced(pacer, withRobots("User-agent: *\nCrawl-delay: 2\n"))
			rt := web.Transport.(*client.Transport)
			turn, took := turnOf(t, rt, "http://a.example/1")
			if took != 2*time.Second || turn.Delay() != 2*time.Second {
				t.Errorf("%s: after robots.txt: %v of %v, want 2s", name, took, turn.Delay())
			}
			time.AfterFunc(7*time.Second, turn.End)
			if _, took := get(t, web, "http://a.example/2"); took != 9*time.Second {
				t.Errorf("%s: after a turn of 7s: %v, want 9s", name, took)
			}
			turn.End() // no harm: it was given back
			last, took := turnOf(t, rt, "http://a.example/3")
			if took != 2*time.Second {
				t.Errorf("%s: after a request: %v, want 2s", name, took)
			}
			last.End()
			synctest.Wait()
		})
	}
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
			rt := &client.Transport{Base: withRobots(""), Pacer: new(client.Pacer)}
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

// A caller that gives up while it waits leaves no place and no gap behind.
func TestTurnThatIsGivenUpLeavesNothing(t *testing.T) {
	for name, pacer := range map[string]*client.Pacer{"alone": {}, "a fleet": {Turns: new(memturns.Store)}} {
		synctest.Test(t, func(t *testing.T) {
			rt := &client.Transport{Base: withRobots(""), Pacer: pacer}
			first, _ := turnOf(t, rt, "http://a.example/")
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the client has gone")
			failed := make(chan error)
			go func() {
				_, err := rt.Turn(ctx, parse("http://a.example/"))
				failed <- err
			}()
			synctest.Wait()
			cancel(gone)
			if err := <-failed; err != gone {
				t.Errorf("%s: got %v, want %v", name, err, gone)
			}
			synctest.Wait()
			first.End()
			last, took := turnOf(t, rt, "http://a.example/")
			if took != time.Second {
				t.Errorf("%s: the next turn took %v, want 1s", name, took)
			}
			last.End()
			synctest.Wait()
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
		if late, ok := errors.AsType[net.Error](err); !ok || !late.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a time-out", err)
		}
		if err := soon.Err(); err != nil {
			t.Errorf("it took until %v", err)
		}
		for _, s := range []string{"mailto:a@b.example", "ftp://a.example/", "/relative", "http:opaque"} {
			if _, err := rt.Turn(ctx, parse(s)); err == nil {
				t.Errorf("%s has a turn", s)
			}
		}
		if _, err := rt.Turn(ctx, nil); err == nil {
			t.Error("nil has a turn")
		}
		if _, err := (&client.Transport{Base: base}).Turn(ctx, parse("http://a.example/")); err == nil {
			t.Error("without a Pacer there is a turn")
		}
		free, err := rt.Turn(client.WithoutRobots(ctx), parse("http://a.example/private"))
		if err != nil || free.Delay() != 0 {
			t.Errorf("without robots: %v", err)
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
		if _, err := rt.Turn(ctx, parse("http://a.example/")); err != client.ErrClosed {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A process that is stopped between its turn and the return of Turn asks again: no other has a turn meanwhile.
func TestTurnIsOfAPlaceThatHasNotLapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memturns.Store)
		var asleep atomic.Bool
		var once sync.Once
		rt := &client.Transport{Base: withRobots(""), Pacer: &client.Pacer{Turns: stopped{store, &asleep, func() {}}}}
		rt.Trace = &client.Trace{Waited: func(context.Context, client.WaitedInfo) {
			once.Do(func() {
				asleep.Store(true)
				time.Sleep(6500 * time.Millisecond)
				asleep.Store(false)
			})
		}}
		turn, took := turnOf(t, rt, "http://a.example/")
		if took < 7*time.Second {
			t.Fatalf("a turn after %v, although the process slept", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := (&client.Pacer{Turns: store}).Wait(ctx, parse("http://a.example/")); err == nil {
			t.Error("another process has a turn beside it")
		}
		turn.End()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (&client.Pacer{Turns: store}).Wait(ctx, parse("http://a.example/")); err != nil {
			t.Errorf("the place is kept after End: %v", err)
		}
		time.Sleep(time.Minute)
	})
}

// A hook that ends its goroutine, as the Fatal of a test does, keeps no place.
func TestTurnSurvivesItsHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := true
		rt := &client.Transport{Base: withRobots(""), Pacer: new(client.Pacer), Trace: &client.Trace{
			Waited: func(context.Context, client.WaitedInfo) {
				if ends {
					runtime.Goexit()
				}
			},
		}}
		done := make(chan bool)
		go func() {
			defer close(done)
			rt.Turn(t.Context(), parse("http://a.example/"))
		}()
		<-done
		ends = false
		if _, took := turnOf(t, rt, "http://a.example/"); took != time.Second {
			t.Errorf("the next turn took %v, want 1s", took)
		}
	})
}
