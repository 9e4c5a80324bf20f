package cache_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

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
	lifetimes := 10 / proc.Slowdown()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		fetched := map[fetch.Origin][]time.Time{}
		load := func(ctx context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
			mu.Lock()
			fetched[o] = append(fetched[o], time.Now())
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			return rules("/private"), nil
		}
		c, start := new(cache.Cache), time.Now()
		var asking sync.WaitGroup
		for asker := range askers {
			asking.Go(func() {
				mine := make([]fetch.Origin, origins/askers)
				for i := range mine {
					mine[i] = origin(t, fmt.Sprintf("https://www%d.example", i*askers+asker))
				}
				time.Sleep(round / askers * time.Duration(asker)) // all of them at once would only see the bound on renewals
				for time.Since(start) < time.Duration(lifetimes)*lifetime {
					for _, o := range mine {
						before := time.Now()
						if _, _, err := c.Get(context.Background(), o, &cache.Source{Load: load}); err != nil {
							t.Error(err)
						}
						if waited := time.Since(before); waited > 0 && before.Sub(start) > 2*round {
							t.Errorf("a caller waited %v for a renewal", waited)
						}
					}
					time.Sleep(round)
				}
			})
		}
		asking.Wait()
		closeCache(t, c) // which ends what runs behind

		mu.Lock()
		defer mu.Unlock()
		var renewals []time.Duration
		shortest, longest := lifetime, time.Duration(0)
		for o, times := range fetched {
			for i := 1; i < len(times); i++ {
				renewals = append(renewals, times[i].Sub(start))
				gap := times[i].Sub(times[i-1])
				shortest, longest = min(shortest, gap), max(longest, gap)
				if gap < lifetime*72/100 || gap > lifetime {
					t.Errorf("%v: a copy was renewed after %v", o, gap)
				}
			}
		}
		slices.Sort(renewals)
		worst := 0
		for i, from := 0, 0; i < len(renewals); i++ {
			for renewals[i]-renewals[from] >= lifetime/100 {
				from++
			}
			worst = max(worst, i-from+1)
		}
		if worst > origins*18/100 {
			t.Errorf("%d of %d origins renewed within 1 %% of a lifetime, want 15 %% at most", worst, origins)
		}
		t.Logf("%d renewals of %d origins in %d lifetimes, after %v to %v; at most %d in any 1 %%", len(renewals), origins, lifetimes, shortest, longest, worst)
	})
}

func TestOneFetchServesAllWhoAskMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache), &site{serve: always(rules("/private")), delay: 500 * time.Millisecond}
		results := make(chan *fetch.Result, 1_000)
		for range cap(results) {
			go func() { results <- ask(t, c, &cache.Source{Load: s.load}, "https://a.example") }()
		}
		one := <-results
		for range cap(results) - 1 {
			if r := <-results; r != one {
				t.Fatalf("got %p, want %p, the Result of the one fetch", r, one)
			}
		}
		if s.count() != 1 {
			t.Errorf("%d fetches, want 1", s.count())
		}
	})
}

func TestOneFetchEvenIfItLandsAtOnce(t *testing.T) {
	for n := range 300 {
		var fetches atomic.Int32
		load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			fetches.Add(1)
			return rules("/private"), nil
		}
		c, o := new(cache.Cache), origin(t, fmt.Sprintf("https://www%d.example", n))
		var asking sync.WaitGroup
		for range 40 {
			asking.Go(func() {
				if _, _, err := c.Get(context.Background(), o, &cache.Source{Load: load}); err != nil {
					t.Error(err)
				}
			})
		}
		if asking.Wait(); fetches.Load() != 1 {
			t.Fatalf("round %d: %d fetches: a caller that saw nothing in memory fetched after one that did", n, fetches.Load())
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
			t.Fatal("setup", slow.count())
		}
		if fine.count() != 2 {
			t.Errorf("fine.example was not refreshed for 55 s after it was due: %d fetches", fine.count())
		}
		time.Sleep(200 * time.Second)
		closeCache(t, c)
	})
}
