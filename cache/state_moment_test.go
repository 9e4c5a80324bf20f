package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

func retryAfter(r *fetch.Result, d time.Duration) *fetch.Result {
	r.RetryAfter = d
	return r
}

// A status of the moment opens no site whose rules are known, and none for long.
func TestAStatusOfTheMomentHoldsForMinutes(t *testing.T) {
	const floor = time.Minute
	copied := rules("/secret", "Cache-Control", "max-age=1")
	lasting := header("Cache-Control", "max-age=86400")
	for _, tt := range []struct {
		name   string
		cache  *cache.Cache
		first  *fetch.Result   // nil: none
		moment []*fetch.Result // in turn, the last for ever
		open   bool            // whether /secret is allowed meanwhile
		asked  []time.Duration // after how long the origin is asked again, each time
	}{
		{"429 with a copy", &cache.Cache{}, copied, []*fetch.Result{retryAfter(unavailable(429), 5*time.Second)}, false, []time.Duration{floor, floor}},
		{"429 without one", &cache.Cache{}, nil, []*fetch.Result{unavailable(429)}, true,
			[]time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}},
		{"503 that allows", &cache.Cache{}, nil, []*fetch.Result{unavailable(503)}, true, []time.Duration{5 * time.Minute, 10 * time.Minute}},
		{"503 that would allow", &cache.Cache{}, copied, []*fetch.Result{unavailable(503)}, false, []time.Duration{5 * time.Minute, 10 * time.Minute}},
		{"Retry-After", &cache.Cache{}, nil, []*fetch.Result{retryAfter(unavailable(431), 2*time.Hour), unavailable(431)}, true, []time.Duration{2 * time.Hour, 10 * time.Minute}},
		{"Retry-After of two days", &cache.Cache{}, nil, []*fetch.Result{retryAfter(unavailable(425), 48*time.Hour)}, true, []time.Duration{day}},
		{"a long MinTTL", &cache.Cache{MinTTL: 2 * time.Hour}, nil, []*fetch.Result{unavailable(408)}, true, []time.Duration{2 * time.Hour, 2 * time.Hour}},
		{"a stated lifetime", &cache.Cache{}, nil, []*fetch.Result{{StatusCode: 421, Header: lasting, Policy: unavailable(421).Policy}}, true, []time.Duration{5 * time.Minute}},
		{"Strict", &cache.Cache{Outage: cache.Strict}, copied, []*fetch.Result{unavailable(428)}, true, []time.Duration{5 * time.Minute}},
		{"GoogleLadder", &cache.Cache{Outage: cache.GoogleLadder}, copied, []*fetch.Result{unavailable(408)}, false, []time.Duration{5 * time.Minute}},
		{"after a 404", &cache.Cache{}, unavailable(404, "Cache-Control", "max-age=1"), []*fetch.Result{unavailable(429)}, true, []time.Duration{5 * time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.cache.NoRefresh = true
				c, answers := tt.cache.WithoutSpread(), tt.moment
				if tt.first != nil {
					answers = append([]*fetch.Result{tt.first}, answers...)
				}
				s := &site{serve: inTurn(answers...)}
				if tt.first != nil {
					allowed(t, c, s, "/secret")
					time.Sleep(62 * time.Second)
				}
				for _, wait := range tt.asked {
					if open := allowed(t, c, s, "/secret"); open != tt.open {
						t.Errorf("/secret allowed: %v, want %v", open, tt.open)
					}
					n := s.count()
					time.Sleep(wait - time.Second)
					if open := allowed(t, c, s, "/secret"); open != tt.open || s.count() != n {
						t.Errorf("within %v: allowed %v, asked %d times; want %v, never", wait, open, s.count()-n, tt.open)
					}
					time.Sleep(time.Second)
					if allowed(t, c, s, "/secret"); s.count() != n+1 {
						t.Errorf("after %v: asked %d times, want once", wait, s.count()-n)
					}
				}
				closeCache(t, c)
			})
		})
	}
}

// The origin's own rules come back with its next answer, and a failure of the other kind
// begins with its own first pause.
func TestAfterAStatusOfTheMomentTheRulesHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&cache.Cache{NoRefresh: true}).WithoutSpread()
		s := &site{serve: inTurn(unavailable(429), unavailable(429), down(), down(), unavailable(429), rules("/secret"))}
		for i, step := range []struct {
			after time.Duration
			open  bool
		}{
			{0, true}, {5 * time.Minute, true}, {10 * time.Minute, false}, {30 * time.Second, false},
			{time.Minute, true}, {5 * time.Minute, false},
		} {
			time.Sleep(step.after)
			if open := allowed(t, c, s, "/secret"); open != step.open || s.count() != i+1 {
				t.Errorf("step %d: allowed %v, asked %d times in all; want %v, %d", i, open, s.count(), step.open, i+1)
			}
		}
		closeCache(t, c)
	})
}

// RFC 6585 §4: "Responses with the 429 status code MUST NOT be stored by a cache." What is
// in the Store stays there.
func TestAStatusOfTheMomentIsNotStored(t *testing.T) {
	for _, first := range []*fetch.Result{nil, rules("/secret", "Cache-Control", "max-age=60")} {
		synctest.Test(t, func(t *testing.T) {
			store := new(lockStore)
			s := &site{serve: always(unavailable(429))}
			if first != nil {
				s.serve = inTurn(first, unavailable(429))
			}
			c := &cache.Cache{Store: store, Logger: quiet}
			get(t, c, s, "https://a.example")
			time.Sleep(2 * time.Minute)
			before := store.count("Put")
			get(t, c, s, "https://a.example")
			closeCache(t, c)
			if n := store.count("Put"); n != before || first == nil && n != 0 {
				t.Errorf("%d values were put before the 429, %d with it", before, n)
			}
			// After a restart the copy holds again, and without one the origin is asked.
			n := s.count()
			c = &cache.Cache{Store: store, Logger: quiet}
			if open := allowed(t, c, s, "/secret"); open != (first == nil) || s.count() != n+1 {
				t.Errorf("after a restart /secret is allowed: %v, and the origin is asked %d times", open, s.count()-n)
			}
			closeCache(t, c)
		})
	}
}
