package cache_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// A situation is what a process that has just begun finds in its Store.
type situation struct {
	name   string
	before *fetch.Result // what the site said to the last process; nil: it was never asked
	age    time.Duration // of that
	fault  func(s *lockStore)
}

var situations = []situation{
	{"no Store", nil, 0, nil},
	{"nothing in it", nil, 0, nil},
	{"a fresh copy", rules("/private"), time.Hour, nil},
	{"a stale copy", rules("/private"), 25 * time.Hour, nil},
	{"a mark", rules("/private", "Cache-Control", "no-store"), time.Hour, nil},
	{"fails", rules("/private"), time.Hour, func(s *lockStore) { s.misbehave(on("Get", fails)) }},
	{"late", rules("/private"), time.Hour, func(s *lockStore) { s.misbehave(on("Get", late)) }},
	{"damaged", rules("/private"), time.Hour, func(s *lockStore) { s.damage() }},
	{"empty values", rules("/private"), time.Hour, func(s *lockStore) {
		for k := range s.values {
			s.values[k] = nil
		}
	}},
}

// unasked is in place of an answer: an error of Load.
var unasked = new(fetch.Result)

// What holds, by the answer of the site and the situation: at once, and 13 hours later if nothing changes. A word in
// brackets is that of Strict, one in braces that of GoogleLadder, where they differ.
var unknownTable = []struct {
	answers []*fetch.Result
	none    string // no Store, or nothing in it
	fresh   string
	stale   string
	mark    string
	unknown string
	none13  string
	mark13  string
}{
	{answers: []*fetch.Result{rules("/private")}, none: "rules", fresh: "rules", stale: "rules", mark: "rules", unknown: "rules", none13: "rules", mark13: "rules"},
	{answers: []*fetch.Result{unavailable(404), unavailable(410)}, none: "allow", fresh: "rules", stale: "allow", mark: "allow", unknown: "allow", none13: "allow", mark13: "allow"},
	{answers: []*fetch.Result{unavailable(401), unavailable(403)}, none: "allow", fresh: "rules", stale: "allow", mark: "allow", unknown: "allow", none13: "allow", mark13: "allow"},
	{answers: []*fetch.Result{
		unavailable(408), unavailable(421), unavailable(425), unavailable(428), unavailable(429), unavailable(431), unavailable(503), // to Yandex
		retryAfter(unavailable(429), 20*time.Hour),
	}, none: "allow", fresh: "rules", stale: "rules [allow]", mark: "disallow [allow]", unknown: "disallow", none13: "allow", mark13: "disallow [allow]"},
	{answers: []*fetch.Result{down(), outage(503), outage(500)}, none: "disallow", fresh: "rules", stale: "rules [disallow] {disallow}",
		mark: "disallow", unknown: "disallow", none13: "disallow {allow}", mark13: "disallow"},
	{answers: []*fetch.Result{unasked}, none: "error", fresh: "rules", stale: "rules [error] {error}", mark: "error", unknown: "error",
		none13: "error", mark13: "error"},
}

func outage(status int) *fetch.Result {
	r := down()
	r.StatusCode = status
	return r
}

// "No copy" and "not known whether there is a copy" are two things.
func TestWhatHoldsWhereTheStoreSaysMoreOrLess(t *testing.T) {
	for _, row := range unknownTable {
		for _, s := range situations {
			want, want13 := row.none, row.none13
			switch {
			case s.fault != nil:
				want, want13 = row.unknown, row.unknown
			case s.name == "a mark":
				want, want13 = row.mark, row.mark13
			case s.name == "a fresh copy":
				want, want13 = row.fresh, row.fresh
			case s.name == "a stale copy":
				want, want13 = row.stale, row.stale
				if row.none13 == "disallow {allow}" {
					want13 = "rules [disallow]"
				}
			}
			for _, answer := range row.answers {
				for outage, name := range []string{"LastGood", "Strict", "GoogleLadder"} {
					for _, locks := range []bool{false, true} {
						t.Run(fmt.Sprintf("%d %v, %s, %s, locks %t", answer.StatusCode, answer.Err, s.name, name, locks), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								s.run(t, answer, cache.Outage(outage), locks, in(want, outage), in(want13, outage))
							})
						})
					}
				}
			}
		}
	}
}

// in picks the word for a setting of Outage.
func in(words string, outage int) (word string) {
	for i, w := range strings.Fields(words) {
		switch bare := strings.Trim(w, "[]{}"); {
		case i == 0, w[0] == '[' && outage == int(cache.Strict), w[0] == '{' && outage == int(cache.GoogleLadder):
			word = bare
		}
	}
	return word
}

func (s situation) run(t *testing.T, answer *fetch.Result, outage cache.Outage, locks bool, want, want13 string) {
	store := new(lockStore)
	var backing cache.Store = &store.memStore
	if locks {
		backing = store
	}
	open := func() *cache.Cache {
		c := (&cache.Cache{Store: backing, Outage: outage, Logger: quiet}).WithoutSpread()
		if s.name == "no Store" {
			c.Store = nil
		}
		return c
	}
	if s.before != nil {
		then(t, backing, s.before)
		time.Sleep(s.age)
	}
	if s.fault != nil {
		s.fault(store)
	}
	c, fetches := open(), 0
	src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		if fetches++; answer == unasked {
			return nil, errDown
		}
		r := *answer
		r.Time = time.Now()
		return &r, nil
	}}
	check := func(when, want string) {
		got := "error"
		if r, until, err := c.Get(t.Context(), origin(t, "https://a.example"), src); err == nil {
			if got = verdictOf(r); until.Before(time.Now()) && answer != unasked {
				t.Errorf("%s: it holds until %v, want longer than now, %v", when, until, time.Now())
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	start := time.Now()
	check("at once", want)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("at once took %v, want 2s at most", took)
	}
	for time.Since(start) < 13*time.Hour-time.Minute {
		time.Sleep(10 * time.Second)
		if time.Since(start) > time.Minute {
			time.Sleep(19*time.Minute + 50*time.Second)
		}
		if want == want13 {
			check(time.Since(start).String(), want)
		} else {
			_, _, _ = c.Get(t.Context(), origin(t, "https://a.example"), src)
		}
	}
	time.Sleep(time.Hour)
	if check("13 hours later", want13); answer.RetryAfter > 13*time.Hour && fetches > 1 {
		t.Errorf("%d fetches of a site that asked for 20 hours, want 1", fetches)
	}
	store.misbehave(nil)
	closeCache(t, c)
}

// What the Store says holds once it says something: the copy without a fetch, or that there is none, with what the
// status of the moment permits for the rest of its time.
func TestWhatTheStoreSaysInTheEndHolds(t *testing.T) {
	for _, s := range situations {
		for _, answer := range []*fetch.Result{unavailable(429), outage(503)} {
			for _, lost := range []bool{false, true} {
				for set := range cache.GoogleLadder {
					if s.fault == nil || s.name == "empty values" || s.name == "damaged" && lost {
						continue
					}
					t.Run(fmt.Sprintf("%s, %d, lost %t, outage %d", s.name, answer.StatusCode, lost, set), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { s.recovers(t, answer, lost, set) })
					})
				}
			}
		}
	}
}

func (s situation) recovers(t *testing.T, answer *fetch.Result, lost bool, set cache.Outage) {
	store := new(lockStore)
	then(t, store, rules("/private"))
	s.fault(store)
	c := (&cache.Cache{Store: store, Outage: set, Logger: quiet}).WithoutSpread()
	live := &site{serve: always(retryAfter(answer, 2*time.Hour))}
	for range 4 { // the last one asks the Store, and not the site
		if got := verdictOf(get(t, c, live, "https://a.example")); got != "disallow" || live.count() != 1 {
			t.Fatalf("%s after %d fetches, while nothing is known; want disallow after 1", got, live.count())
		}
		time.Sleep(6 * time.Second)
	}
	if store.misbehave(nil); s.name == "damaged" {
		s.fault(store)
	}
	want := "rules"
	if lost {
		store.lose(store.keys()[0])
		want = map[int]string{429: "allow", 503: "disallow"}[answer.StatusCode]
	}
	r := get(t, c, live, "https://a.example")
	if got := verdictOf(r); got != want || live.count() != 1 || answer.StatusCode == 503 && lost && r.StatusCode != 503 {
		t.Errorf("%s after %d fetches, want %s after one", got, live.count(), want)
	}
	closeCache(t, c)
}

// Rules that no Store may have leave a mark in it, which holds as long as they would, is written once a day, and gives
// way to what the site says next.
func TestRulesThatAreNotStoredLeaveAMark(t *testing.T) {
	for _, locks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := new(lockStore)
			var backing cache.Store = &store.memStore
			if locks {
				backing = store
			}
			c, s := &cache.Cache{Store: backing, Logger: quiet}, &site{serve: always(rules("/", "Cache-Control", "no-store"))}
			for range 3 * 24 * 12 {
				get(t, c, s, "https://a.example")
				time.Sleep(5 * time.Minute)
			}
			closeCache(t, c)
			if n := store.count("Put"); store.kept() > 0 || len(store.keys()) != 1 || n < 3 || n > 4 {
				t.Fatalf("%d values and %d answers are stored after %d puts, want a mark and a put a day", len(store.keys()), store.kept(), n)
			}
			for _, age := range []time.Duration{0, 28 * day, 5 * day} { // after each other
				time.Sleep(age)
				r := then(t, backing, unavailable(429))
				if got := r.Policy.Decide("a", "/x").Allowed; got != (age == 5*day) {
					t.Errorf("after %v: got %s, want it allowed after five more days", age, brief(r))
				}
			}
		})
	}
}

func TestA404ReplacesTheMark(t *testing.T) {
	for _, field := range []string{"max-age=60", "no-store"} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			for i, answer := range []*fetch.Result{rules("/", "Cache-Control", "no-store"), unavailable(404, "Cache-Control", field), unavailable(429)} {
				r := then(t, store, answer)
				if allowed := r.Policy.Decide("a", "/x").Allowed; allowed != (i > 0) {
					t.Errorf("%s: step %d: got %s, want all allowed: %t", field, i, brief(r), i > 0)
				}
				time.Sleep(time.Hour)
			}
		})
	}
}

// Rules in memory hold, whatever the Store does; a 404 in memory is no rules, and none are assumed.
func TestWhatMemoryHasHoldsWhileTheStoreIsSilent(t *testing.T) {
	for want, first := range map[string]*fetch.Result{
		"rules": rules("/private", "Cache-Control", "max-age=60"), "disallow": unavailable(404, "Cache-Control", "max-age=60"),
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			c, s := &cache.Cache{Store: store, Logger: quiet}, &site{serve: inTurn(first, unavailable(429))}
			get(t, c, s, "https://a.example")
			synctest.Wait()
			store.misbehave(on("Get", fails))
			time.Sleep(2 * time.Minute)
			if got := verdictOf(get(t, c, s, "https://a.example")); got != want {
				t.Errorf("%s, then 429: got %s, want %s", brief(first), got, want)
			}
			closeCache(t, c)
		})
	}
}

// Rules that the Store did not take are owed as a mark, which is written once it takes values again, or by Close.
// Meanwhile it stands for them in this process.
func TestALostPutIsOwedAsAMark(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before *fetch.Result // in the Store; nil: nothing
		answer *fetch.Result // what is lost
		put    func(context.Context) error
		closes bool // or another value is written
		marks  int
		want   string // of the next process, which meets a 429
	}{
		{"paid by Close", nil, rules("/private"), fails, true, 1, "disallow"},
		{"paid with another value", nil, rules("/private"), fails, false, 1, "disallow"},
		{"after a Put that is late", nil, rules("/private"), late, false, 1, "disallow"},
		{"in place of a 404", unavailable(404, "Cache-Control", "max-age=60"), rules("/private"), fails, false, 1, "disallow"},
		{"rules are better than none", rules("/private", "Cache-Control", "max-age=60"), unavailable(404), fails, false, 0, "rules"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			if tt.before != nil {
				then(t, store, tt.before)
				time.Sleep(time.Hour)
			}
			store.misbehave(on("Put", tt.put))
			c := &cache.Cache{Store: store, MaxBytes: 1 << 10, Logger: quiet}
			get(t, c, &site{serve: always(tt.answer)}, "https://a.example")
			time.Sleep(10 * time.Second)
			if tt.before == nil { // of another origin, which displaces it in memory
				get(t, c, &site{serve: always(down())}, "https://b.example")
				if got := verdictOf(get(t, c, &site{serve: always(unavailable(429))}, "https://a.example")); got != tt.want {
					t.Errorf("%s: %s in the same process, want %s", tt.name, got, tt.want)
				}
			}
			store.misbehave(nil)
			if !tt.closes {
				get(t, c, &site{serve: always(unavailable(404))}, "https://c.example")
				synctest.Wait()
				if got := len(store.keys()) - store.kept(); got != tt.marks {
					t.Errorf("%s: %d marks after the next value, want %d", tt.name, got, tt.marks)
				}
			}
			closeCache(t, c)
			if got := verdictOf(then(t, store, unavailable(429))); got != tt.want {
				t.Errorf("%s: then %s, want %s", tt.name, got, tt.want)
			}
		})
	}
}

// What is owed is not taken for what the Store has, however often the rules are read before it takes a value.
func TestADebtOutlastsTheRulesBeingReadAgain(t *testing.T) {
	for reads := 1; reads <= 3; reads++ {
		synctest.Test(t, func(t *testing.T) {
			store := new(memStore)
			store.misbehave(on("Put", func(ctx context.Context) error {
				store.misbehave(nil) // the first fails
				return fails(ctx)
			}))
			c := &cache.Cache{Store: store, Logger: quiet}
			for range reads {
				get(t, c, &site{serve: always(rules("/private", "Cache-Control", "no-store, max-age=60"))}, "https://a.example")
				time.Sleep(2 * time.Minute)
			}
			closeCache(t, c)
			if got := verdictOf(then(t, store, unavailable(429))); got != "disallow" {
				t.Errorf("after %d reads: %s, want disallow", reads, got)
			}
		})
	}
}

// What the Store has that is newer is not displaced by a mark, and what is owed is bounded.
func TestAMarkGivesWayToWhatIsNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memStore)
		store.misbehave(on("Put", fails))
		c := &cache.Cache{Store: store, MaxBytes: 16 << 10, Logger: quiet}
		for i := range 10_100 {
			get(t, c, &site{serve: always(rules("/private"))}, "https://a"+strconv.Itoa(i)+".example")
		}
		time.Sleep(time.Hour)
		store.misbehave(nil)
		other := &cache.Cache{Store: store, Logger: quiet}
		get(t, other, &site{serve: always(unavailable(404))}, "https://a0.example")
		closeCache(t, other)
		closeCache(t, c)
		if n := len(store.keys()); n != 10_000 || store.kept() != 1 {
			t.Errorf("%d values, %d of them answers; want 10,000 and the 404", n, store.kept())
		}
	})
}
