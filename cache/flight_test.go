package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// An origin is scheme, host and port (RFC 9309 §2.3), and the name it is asked for where
// that is another: those that have some of it in common do not share a result.
func TestOriginsOfOneHostAreFetchedApart(t *testing.T) {
	var c cache.Cache
	defer c.Close()
	for i, link := range []string{
		"http://a.example", "https://a.example", "http://a.example:8080", "https://a.example:8080", "http://b.example",
		"http://a.example.b.example", "http://a.example c.example", "https://a.example c.example", "http://b.example c.example",
	} {
		link, host, _ := strings.Cut(link, " ")
		o, err := fetch.OriginOfRequest(request(t, link, host))
		if err != nil {
			t.Fatal(err)
		}
		load := func(_ context.Context, asked fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			if asked != o {
				t.Errorf("Load of %v, want %v", asked, o)
			}
			return rules(fmt.Sprintf("/%d/", i)), nil
		}
		r, _, err := c.Get(t.Context(), o, &cache.Source{Load: load})
		if n := c.Stats().Origins; err != nil || r.Policy.Decide("a", fmt.Sprintf("/%d/", i)).Allowed || n != i+1 {
			t.Errorf("%v: got %s, %v, and %d origins are known, want its own rules and %d", o, brief(r), err, n, i+1)
		}
	}
}

// A crawl that met a thousand origins in one moment does not fetch a thousand files in
// one moment of the next day: each copy is renewed once in its lifetime, behind its
// callers, and no hundredth of a lifetime has more than 18 % of the fetches of one.
func TestRenewalsAreSpreadAndOnePerLifetime(t *testing.T) {
	tier.Gate(t)
	const (
		origins, askers = 1000, 200
		lifetime        = 24 * time.Hour
		round           = lifetime / 400 // each origin is asked about once in a round
	)
	end := lifetime * time.Duration(10/proc.Slowdown())
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var renewals []time.Duration
		latest := map[fetch.Origin]time.Time{}
		c, start := new(cache.Cache), time.Now()
		load := func(_ context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			mu.Lock()
			if before, ok := latest[o]; ok {
				renewals = append(renewals, time.Since(start))
				if gap := time.Since(before); gap < lifetime*72/100 || gap > lifetime {
					t.Errorf("%v: a copy was renewed after %v, want 72 %% of %v at least, and no more than it", o, gap, lifetime)
				}
			}
			latest[o] = time.Now()
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			return rules("/private"), nil
		}
		var asking sync.WaitGroup
		for asker := range askers {
			asking.Go(func() {
				time.Sleep(round / askers * time.Duration(asker)) // all of them at once would only see the bound on renewals
				for ; time.Since(start) < end; time.Sleep(round) {
					for i := asker; i < origins; i += askers {
						before := time.Now()
						ask(t, c, &cache.Source{Load: load}, fmt.Sprintf("https://www%d.example", i))
						if waited := time.Since(before); waited > 0 && before.Sub(start) > 2*round {
							t.Errorf("a caller waited %v for a renewal, want not at all", waited)
						}
					}
				}
			})
		}
		asking.Wait()
		closeCache(t, c) // which ends what runs behind
		worst := 0
		for i, from := 0, 0; i < len(renewals); i++ { // they are in order
			for renewals[i]-renewals[from] >= lifetime/100 {
				from++
			}
			worst = max(worst, i-from+1)
		}
		if worst > origins*18/100 || len(renewals) < origins {
			t.Errorf("%d of %d origins renewed within 1 %% of a lifetime, want 15 %% at most; %d renewals", worst, origins, len(renewals))
		}
	})
}

func TestOneFetchEvenIfItLandsAtOnce(t *testing.T) {
	for n := range 300 {
		c, s := new(cache.Cache), &site{serve: always(rules("/private"))}
		var asking sync.WaitGroup
		for range 40 {
			asking.Go(func() { get(t, c, s, "https://a.example") })
		}
		if asking.Wait(); s.count() != 1 {
			t.Fatalf("round %d: %d fetches, want 1: a caller that saw nothing in memory fetched after one that did", n, s.count())
		}
	}
}

// A fetch that no caller waits for must not delay one that a caller does; but everything
// gets its turn.
func TestRenewalsAreFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, renewed atomic.Int32
		slow := func(ctx context.Context, _ fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(10 * time.Second)
			renewed.Add(1)
			return rules("/"), nil
		}
		quick := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return rules("/"), nil }
		c := new(cache.Cache)
		ask := func(load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)) {
			for i := range 100 {
				ask(t, c, &cache.Source{Load: load}, fmt.Sprintf("https://www%d.example", i))
			}
		}
		ask(quick)
		time.Sleep(20 * time.Hour) // 80 % of a day have passed
		start := time.Now()
		for range 20 {
			ask(slow)
			time.Sleep(3 * time.Second)
		}
		if most.Load() != 32 || renewed.Load() != 100 || time.Since(start) != time.Minute {
			t.Errorf("%d renewals at a time, %d in %v; want 32, 100 in a minute", most.Load(), renewed.Load(), time.Since(start))
		}
		closeCache(t, c)
	})
}

// An origin whose robots.txt hangs, and is in use, has one renewal under way.
func TestOneSlowOriginLeavesTheOthersTheirRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cache.Cache).WithoutSpread()
		slow := &site{serve: always(rules("/private", "Cache-Control", "max-age=600"))}
		fine := &site{serve: always(rules("/private", "Cache-Control", "max-age=600"))}
		get(t, c, slow, "https://slow.example")
		time.Sleep(45 * time.Second)
		get(t, c, fine, "https://fine.example")
		slow.delay = 110 * time.Second
		time.Sleep(435 * time.Second) // slow is due now, fine in 45 s
		for range 100 {
			get(t, c, slow, "https://slow.example")
			get(t, c, fine, "https://fine.example")
			time.Sleep(time.Second)
		}
		if slow.count() != 2 {
			t.Fatalf("setup: %d fetches of slow.example, want 2", slow.count())
		}
		if fine.count() != 2 {
			t.Errorf("%d fetches of fine.example within 55 s after it was due, want 2", fine.count())
		}
		time.Sleep(200 * time.Second)
		closeCache(t, c)
	})
}

// Where the last good copy would serve in an outage, a site that stalls costs the first
// callers 3 s and the next ones nothing, wherever the copy is. The refresh goes on.
func TestAUsableCopyIsThreeSecondsAway(t *testing.T) {
	const stall = 30 * time.Second
	for _, row := range []struct {
		name, cacheControl string
		outage             cache.Outage
		unkept             bool // copies are not kept beyond their lifetime
		restart, locked    bool
		want               time.Duration // that the first caller waits
	}{
		{name: "as it is", cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "must-revalidate", cacheControl: "max-age=60, must-revalidate", want: 3 * time.Second},
		{name: "no-cache", cacheControl: "no-cache", want: 3 * time.Second},
		{name: "no-store", cacheControl: "no-store", want: 3 * time.Second},
		{name: "while another process fetches", locked: true, cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "only in the Store", restart: true, cacheControl: "max-age=60, must-revalidate", want: 3 * time.Second},
		{name: "only in the Store, while another process fetches", restart: true, locked: true, cacheControl: "max-age=60", want: 3 * time.Second},
		{name: "that may not be used", unkept: true, cacheControl: "max-age=60", want: stall},
		{name: "that may not be used, in the Store", unkept: true, restart: true, cacheControl: "max-age=60", want: stall},
		{name: "in Strict", outage: cache.Strict, cacheControl: "max-age=60", want: stall},
		{name: "in Strict, in the Store", outage: cache.Strict, restart: true, cacheControl: "max-age=60", want: stall},
		{name: "up the ladder", outage: cache.GoogleLadder, cacheControl: "max-age=60", want: stall},
		{name: "of no file", want: stall},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := rules("/old", "Cache-Control", row.cacheControl)
				if row.cacheControl == "" {
					answer = unavailable(404)
				}
				store, s := new(lockStore), &site{serve: inTurn(answer, rules("/new"))}
				open := func() *cache.Cache {
					c := &cache.Cache{Store: store, Logger: quiet, Outage: row.outage}
					if row.unkept {
						c.WithTerms(day, 0)
					}
					return c
				}
				c := open()
				get(t, c, s, "https://a.example")
				synctest.Wait()
				if row.restart {
					closeCache(t, c)
					c = open()
				}
				time.Sleep(25 * time.Hour)
				if row.locked {
					store.mu.Lock()
					store.locks["RGC5 https://a.example "] = time.Now().Add(time.Hour)
					store.mu.Unlock()
				}
				s.delay = stall
				start := time.Now()
				var asking sync.WaitGroup
				for range 100 {
					asking.Go(func() {
						r := get(t, c, s, "https://a.example")
						old := !r.Policy.Decide("x", "/old").Allowed
						if took := time.Since(start); took != row.want || old != (row.want < stall) {
							t.Errorf("got the old rules: %v after %v, want %v after %v", old, took, row.want < stall, row.want)
						}
					})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != context.DeadlineExceeded {
					t.Errorf("a caller in a hurry: got %v, want %v", err, context.DeadlineExceeded)
				}
				asking.Wait()
				for range 8 {
					before := time.Now()
					if get(t, c, s, "https://a.example"); time.Since(before) != 0 {
						t.Errorf("%v later another waited for %v, want not at all", time.Since(start), time.Since(before))
					}
					time.Sleep(3 * time.Second)
				}
				time.Sleep(stall) // the fetch may have begun when the wait for the lock was over
				if r := get(t, c, s, "https://a.example"); s.count() != 2 || r.Policy.Decide("x", "/new").Allowed {
					t.Errorf("after %d fetches got %s, want 2 fetches and the new rules: the refresh goes on", s.count(), brief(r))
				}
				closeCache(t, c)
			})
		})
	}
}

// So it is for callers who never have so much time.
func TestAUsableCopyIsThereForCallersInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cache.Cache).WithoutSpread()
		s := &site{serve: inTurn(rules("/old", "Cache-Control", "max-age=60"), rules("/new"))}
		get(t, c, s, "https://a.example")
		time.Sleep(time.Hour)
		s.delay = 20 * time.Second
		for start := time.Now(); time.Since(start) < 20*time.Second; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			late := time.Since(start) >= 3*time.Second
			if _, _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); late != (err == nil) {
				t.Errorf("after %v: got %v, want an error: %v", time.Since(start), err, !late)
			}
			cancel()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if r := get(t, c, s, "https://a.example"); r.Policy.Decide("x", "/new").Allowed || s.count() != 2 {
			t.Errorf("after %d fetches got %s, want 2 and the new rules", s.count(), brief(r))
		}
		closeCache(t, c)
	})
}

// After a stall, the next refresh is waited for again.
func TestTheNextRefreshIsWaitedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cache.Cache).WithoutSpread()
		s := &site{serve: inTurn(rules("/old", "Cache-Control", "max-age=60"), rules("/late", "Cache-Control", "max-age=60"), rules("/new"))}
		get(t, c, s, "https://a.example")
		time.Sleep(time.Hour)
		s.delay = 10 * time.Second
		get(t, c, s, "https://a.example")
		time.Sleep(time.Hour)
		synctest.Wait()
		s.delay = 2 * time.Second
		if r := get(t, c, s, "https://a.example"); r.Policy.Decide("x", "/new").Allowed {
			t.Errorf("got %s, want the new rules, which were to be had within 3 s", brief(r))
		}
		closeCache(t, c)
	})
}

func TestACallerWhoLeavesFailsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache), &site{serve: always(rules("/private")), delay: 2 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var left sync.WaitGroup
		left.Go(func() {
			if r, _, err := c.Get(ctx, origin(t, "https://a.example"), &cache.Source{Load: s.load}); err != context.DeadlineExceeded || r != nil {
				t.Errorf("the leader got %v, %v, want the error of its context", r, err)
			}
		})
		synctest.Wait()
		if r := get(t, c, s, "https://a.example"); r.Err != nil {
			t.Errorf("the follower got %s, want the rules", brief(r))
		}
		left.Wait()
		if get(t, c, s, "https://a.example"); s.count() != 1 {
			t.Errorf("afterwards: %d fetches, want 1", s.count())
		}
	})
}

// A stranger's bytes may make a fetch panic: a failure with a pause. What does not heed its deadline is not ours.
func TestAPanicOfAFetchIsAFailureWithAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, loads := new(cache.Cache).WithoutSpread(), 0
		src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			loads++
			panic("boom")
		}}
		for range 2 {
			r := ask(t, c, src, "https://a.example")
			if r.Policy.Decide("examplebot", "/").Reason != policy.ReasonUnreachable || !strings.Contains(r.Err.Error(), "boom") {
				t.Errorf("got %s, want an unreachable result", brief(r))
			}
			time.Sleep(29 * time.Second)
		}
		if ask(t, c, src, "https://a.example"); loads != 2 {
			t.Errorf("%d loads in 58 seconds, want 2", loads)
		}
		closeCache(t, c)

		store := new(memStore)
		then(t, store, rules("/private"))
		time.Sleep(25 * time.Hour)
		c = &cache.Cache{Store: store, Logger: quiet}
		if got := verdictOf(ask(t, c, src, "https://a.example")); got != "rules" {
			t.Errorf("with a copy in the Store: %s, want rules", got)
		}
		closeCache(t, c)
	})
}

// An error of Load goes to all who wait, as it is, and nothing is kept of it. A copy that would serve in an outage does.
func TestAnErrorOfLoadGoesToAllWhoWait(t *testing.T) {
	turn := errors.New("no turn before noon")
	for _, tt := range []struct {
		name   string
		outage cache.Outage
		first  *fetch.Result
		copied bool
	}{
		{"nothing known", cache.LastGood, nil, false},
		{"a copy", cache.LastGood, rules("/private", "Cache-Control", "max-age=60"), true},
		{"a copy, strictly", cache.Strict, rules("/private", "Cache-Control", "max-age=60"), false},
		{"no file", cache.LastGood, unavailable(404, "Cache-Control", "max-age=60"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			c := (&cache.Cache{Outage: tt.outage, Store: store}).WithoutSpread()
			if tt.first != nil {
				get(t, c, &site{serve: always(tt.first)}, "https://a.example")
				time.Sleep(time.Hour)
			}
			before, puts, loads := c.Stats(), store.count("Put"), 0
			src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				loads++
				time.Sleep(time.Second)
				return nil, turn
			}}
			for round := range 2 {
				var asking sync.WaitGroup
				for range 3 {
					asking.Go(func() {
						r, _, err := c.Get(t.Context(), origin(t, "https://a.example"), src)
						if (r != nil) != tt.copied || !tt.copied && err != turn {
							t.Errorf("%s: got %s, %v, want a copy %t, or the error of Load", tt.name, brief(r), err, tt.copied)
						}
					})
				}
				asking.Wait()
				if loads != round+1 || c.Stats() != before || store.count("Put") != puts {
					t.Errorf("%s: %d loads in round %d, %+v and %d puts; want %d, %+v and %d", tt.name, loads, round, c.Stats(), store.count("Put"), round+1, before, puts)
				}
				time.Sleep(5 * time.Second)
			}
			if get(t, c, &site{serve: always(rules("/new"))}, "https://a.example").Policy.Decide("x", "/new").Allowed {
				t.Errorf("%s: then the site is not asked, want its new rules", tt.name)
			}
			closeCache(t, c)
		})
	}
}

// The time-out of a fetch is not that of those who wait for it, and must not look like it.
func TestTheEndOfAFlightIsNoTimeOutOfTheCaller(t *testing.T) {
	for name, told := range map[string]func(context.Context) error{
		"bare":    func(ctx context.Context) error { return ctx.Err() },
		"wrapped": func(ctx context.Context) error { return fmt.Errorf("no place: %w", ctx.Err()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			c, start := new(cache.Cache), time.Now()
			r, _, err := c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{
				Load: func(ctx context.Context, _ fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
					<-ctx.Done()
					return nil, told(ctx)
				},
			})
			want := fetch.Failure{Text: "cache: robots.txt was not read within 2m0s", Cause: "proxy_internal_error"}
			why, ours := err.(*fetch.Failure)
			if r != nil || !ours || *why != want || time.Since(start) != 2*time.Minute {
				t.Errorf("%s: got %s, %v after %v; want %+v after 2m", name, brief(r), err, time.Since(start), want)
			}
			closeCache(t, c)
		})
	}
}

// With a context that has ended, Get says what holds at present; if there is nothing, it starts the fetch.
func TestGetWithAnEndedContextStartsTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache).WithoutSpread(), &site{serve: always(rules("/private", "Cache-Control", "max-age=60")), delay: time.Second}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for i, step := range []struct {
			after   time.Duration
			holds   bool
			fetches int
		}{{0, false, 1}, {time.Second / 2, false, 1}, {time.Second, true, 1}, {time.Minute, false, 2}, {2 * time.Second, true, 2}} {
			time.Sleep(step.after)
			r, until, err := c.Get(ended, origin(t, "https://a.example"), &cache.Source{Load: s.load})
			synctest.Wait()
			if step.holds != (r != nil) || step.holds == errors.Is(err, context.Canceled) || s.count() != step.fetches {
				t.Errorf("step %d: got %s, %v after %d fetches, want one: %v", i, brief(r), err, s.count(), step.holds)
			}
			if step.holds && (until.Before(time.Now()) || until.After(r.Time.Add(time.Minute))) {
				t.Errorf("step %d: it holds until %v, want a minute from %v at most", i, until, r.Time)
			}
		}
		closeCache(t, c)
	})
}

// Get with a context that has ended waits for nothing, so no caller bounds how many fetches it starts.
func TestFetchesThatNoCallerWaitsForAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1000
		c := new(cache.Cache)
		silent := &site{delay: time.Hour}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		ask := func(ctx context.Context, name string, s *site) error {
			_, _, err := c.Get(ctx, origin(t, "https://"+name), &cache.Source{Load: s.load})
			synctest.Wait()
			return err
		}
		for i := range 2 * most {
			if err := ask(ended, fmt.Sprintf("silent%d.example", i), silent); err != context.Canceled {
				t.Fatalf("origin %d: got error %v, want %v", i, err, context.Canceled)
			}
		}
		if got := silent.count(); got != most {
			t.Errorf("%d silent origins are being asked, want %d", got, most)
		}
		healthy := &site{serve: always(rules("/private"))}
		if err := ask(t.Context(), "waited.example", healthy); err != nil || healthy.count() != 1 {
			t.Errorf("a caller who waits: got error %v and %d fetches, want none and one", err, healthy.count())
		}
		time.Sleep(3 * time.Minute) // all have been given up
		if err := ask(ended, "later.example", healthy); err != context.Canceled || healthy.count() != 2 {
			t.Errorf("later: got error %v and %d fetches in all, want %v and two", err, healthy.count(), context.Canceled)
		}
		closeCache(t, c)
	})
}
