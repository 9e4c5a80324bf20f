package cache_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// What a first answer means for a second lookup: whether it is answered from the first
// answer, and whether the origin is asked again (behind the caller, if it is answered).
func TestLifetimesAreBounded(t *testing.T) {
	const week = 7 * day
	for _, tt := range []struct {
		name   string
		cache  *cache.Cache
		answer *fetch.Result
		after  time.Duration
		same   bool
		asked  int
	}{
		{"nothing stated", &cache.Cache{}, rules("/"), 19 * time.Hour, true, 0},
		{"nothing stated, four fifths gone", &cache.Cache{}, rules("/"), 20 * time.Hour, true, 1},
		{"nothing stated, a day gone", &cache.Cache{}, rules("/"), day, false, 1},
		{"an hour at most for a 403", &cache.Cache{}, unavailable(403), 47 * time.Minute, true, 0},
		{"an hour at most for a 403, gone", &cache.Cache{}, unavailable(403), time.Hour, false, 1},
		{"and for a 401 that says a day", &cache.Cache{}, unavailable(401, "Cache-Control", "max-age=86400"), time.Hour, false, 1},
		{"a day for a 404", &cache.Cache{}, unavailable(404), 19 * time.Hour, true, 0},
		{"a week is a day", &cache.Cache{}, rules("/", "Cache-Control", "max-age=604800"), day, false, 1},
		{"unless more is wanted", &cache.Cache{MaxTTL: week}, rules("/", "Cache-Control", "max-age=604800"), 5 * day, true, 0},
		{"nothing is a minute, and no renewal before", &cache.Cache{}, rules("/", "Cache-Control", "no-store"), 59 * time.Second, true, 0},
		{"a minute is a minute, and no renewal before", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60"), 59 * time.Second, true, 0},
		{"a minute gone", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60"), time.Minute, false, 1},

		{"stale-while-revalidate", &cache.Cache{}, rules("/", "Cache-Control", "max-age=600, stale-while-revalidate=600"), 19 * time.Minute, true, 1},
		{"its end", &cache.Cache{}, rules("/", "Cache-Control", "max-age=600, stale-while-revalidate=600"), 20 * time.Minute, false, 1},
		{"not with must-revalidate", &cache.Cache{}, rules("/", "Cache-Control", "max-age=600, must-revalidate, stale-while-revalidate=600"), 10 * time.Minute, false, 1},
		{"not with no-cache", &cache.Cache{}, rules("/", "Cache-Control", "no-cache, stale-while-revalidate=600"), time.Minute, false, 1},
		{"not beyond a day", &cache.Cache{}, rules("/", "Cache-Control", "max-age=80000, stale-while-revalidate=86400"), day, false, 1},
		{"for a 403, within the hour", &cache.Cache{}, unavailable(403, "Cache-Control", "max-age=60, stale-while-revalidate=86400"), 59 * time.Minute, true, 1},
		{"for a 403, beyond it", &cache.Cache{}, unavailable(403, "Cache-Control", "max-age=60, stale-while-revalidate=86400"), time.Hour, false, 1},
		{"it begins by the age", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60, stale-while-revalidate=300", "Age", "100"), 259 * time.Second, true, 1},
		{"its end by the age", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60, stale-while-revalidate=300", "Age", "100"), 260 * time.Second, false, 1},
		{"over before it came", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60, stale-while-revalidate=300", "Age", "600"), time.Minute, false, 1},
		{"it begins where freshness ends, not the minute", &cache.Cache{}, rules("/", "Cache-Control", "stale-while-revalidate=30", "Expires", "0"), time.Minute, false, 1},
		{"not with Vary: *", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60, stale-while-revalidate=600", "Vary", "*"), time.Minute, false, 1},
		{"the least of two", &cache.Cache{}, rules("/", "Cache-Control", "max-age=60, stale-while-revalidate=5, stale-while-revalidate=8000"), 65 * time.Second, false, 1},
		{"a redirect's, by its age", &cache.Cache{}, over(rules("/", "Cache-Control", "max-age=60, stale-while-revalidate=300"),
			header("Cache-Control", "max-age=60, stale-while-revalidate=300", "Age", "600")), time.Minute, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := tt.cache.WithoutSpread(), &site{serve: inTurn(tt.answer, unavailable(410))}
			get(t, c, s, "https://a.example")
			time.Sleep(tt.after)
			r := get(t, c, s, "https://a.example")
			synctest.Wait()
			if same := r.StatusCode == tt.answer.StatusCode; same != tt.same || s.count()-1 != tt.asked {
				t.Errorf("%s: same answer %v, asked %d times; want %v, %d", tt.name, same, s.count()-1, tt.same, tt.asked)
			}
			closeCache(t, c)
		})
	}
}

// The floor stands under the jitter, so that no origin is asked twice in a minute.
func TestJitterNeverGoesBelowTheFloor(t *testing.T) {
	for _, tt := range []struct {
		cache  *cache.Cache
		answer *fetch.Result
	}{
		{&cache.Cache{}, rules("/", "Cache-Control", "max-age=0")},
		{&cache.Cache{MinTTL: time.Minute}, down()},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := tt.cache, &site{serve: always(tt.answer)}
			for i := range 50 {
				o := fmt.Sprintf("https://a%d.example", i)
				get(t, c, s, o)
				time.Sleep(59 * time.Second)
				if get(t, c, s, o); s.count() != i+1 {
					t.Fatalf("%s: asked %d times in a minute, want once", brief(tt.answer), s.count()-i)
				}
			}
			closeCache(t, c)
		})
	}
}

func TestACopyIsKeptForAnOutageAsLongAsItShould(t *testing.T) {
	const month = 30 * day
	for _, tt := range []struct {
		name   string
		cache  *cache.Cache
		answer *fetch.Result
		after  time.Duration
		kept   bool
	}{
		{"30 days", &cache.Cache{}, rules("/private", "Cache-Control", "max-age=3600"), month, true},
		{"and no longer", &cache.Cache{}, rules("/private", "Cache-Control", "max-age=3600"), month + time.Hour, false},
		{"not at all", (&cache.Cache{}).WithTerms(day, 0), rules("/private", "Cache-Control", "max-age=3600"), time.Hour, false},
		{"stale-if-error does not shorten", &cache.Cache{}, rules("/private", "Cache-Control", "max-age=3600, stale-if-error=0"), month, true},
		{"nor does must-revalidate", &cache.Cache{}, rules("/private", "Cache-Control", "max-age=3600, must-revalidate"), month, true},
		// What a status means depends on the dialect: that a site was open without rules bridges no outage.
		{"of rules, not of a 200", &cache.Cache{}, unavailable(200, "Cache-Control", "max-age=60"), time.Hour, false},
		{"nor no-cache", &cache.Cache{}, rules("/private", "Cache-Control", "no-cache"), month, true},
		{"nor no-store", &cache.Cache{}, rules("/private", "Cache-Control", "no-store"), month, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := tt.cache.WithoutSpread(), &site{serve: inTurn(tt.answer, down())}
			get(t, c, s, "https://a.example")
			time.Sleep(tt.after)
			if kept := get(t, c, s, "https://a.example").Err == nil; kept != tt.kept {
				t.Errorf("%s: kept %v after %v, want %v", tt.name, kept, tt.after, tt.kept)
			}
			closeCache(t, c)
		})
	}
}

// no-store asks for nothing to be kept, so there is nothing that could be validated.
func TestOnlyWhatMayBeStoredIsValidated(t *testing.T) {
	for _, tt := range []struct {
		answer *fetch.Result
		want   bool
	}{
		{rules("/", "ETag", `"v1"`, "Cache-Control", "max-age=60"), true},
		{rules("/", "ETag", `"v1"`, "Cache-Control", "no-cache"), true},
		{rules("/", "ETag", `"v1"`, "Cache-Control", "no-store"), false},
		{unavailable(404, "ETag", `"v1"`, "Cache-Control", "max-age=60"), false},
		{down(), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var last *fetch.Result
			c, s := new(cache.Cache), &site{serve: func(n int, prev *fetch.Result) *fetch.Result {
				last = prev
				return tt.answer
			}}
			get(t, c, s, "https://a.example")
			time.Sleep(2 * time.Minute)
			if get(t, c, s, "https://a.example"); s.count() != 2 || (last != nil) != tt.want {
				t.Errorf("%d %v: %d fetches, validated %v, want %v", tt.answer.StatusCode, tt.answer.Header, s.count(), last != nil, tt.want)
			}
			closeCache(t, c)
		})
	}
}

// What the ladder assumes is an answer in the dialect of the caller: to read it there changes nothing.
func TestWhatTheLadderAssumesHasItsDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := &cache.Cache{Outage: cache.GoogleLadder}, &site{serve: always(down()), dialect: policy.Google}
		get(t, c, s, "https://a.example")
		time.Sleep(13 * time.Hour)
		if r := get(t, c, s, "https://a.example"); r.Err != nil || r.In(s.dialect) != r {
			t.Errorf("%v, read again %v, want the same", r, r.In(s.dialect))
		}
		closeCache(t, c)
	})
}

// Get says until when its answer holds: the end of a lifetime, or the next attempt after a failure.
func TestGetSaysWhenTheOriginIsAskedNext(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cache *cache.Cache
		serve []*fetch.Result
		after time.Duration // from the first answer to the question
		want  time.Duration // from the question on
	}{
		{"rules", &cache.Cache{}, []*fetch.Result{rules("/")}, time.Hour, 23 * time.Hour},
		{"a lifetime that is stated", &cache.Cache{}, []*fetch.Result{rules("/", "Cache-Control", "max-age=600")}, time.Minute, 9 * time.Minute},
		{"no file", &cache.Cache{}, []*fetch.Result{unavailable(404)}, time.Hour, 23 * time.Hour},
		{"a 403", &cache.Cache{}, []*fetch.Result{unavailable(403)}, 0, time.Hour},
		{"a status of the moment", &cache.Cache{}, []*fetch.Result{unavailable(429)}, time.Minute, 4 * time.Minute},
		{"no-store", &cache.Cache{}, []*fetch.Result{rules("/", "Cache-Control", "no-store")}, 0, time.Minute},
		{"more than a day", &cache.Cache{}, []*fetch.Result{rules("/", "Cache-Control", "max-age=864000")}, 0, day},
		{"of the moment, a second", &cache.Cache{}, []*fetch.Result{retryAfter(unavailable(429), time.Second)}, 0, time.Minute},
		{"of the moment, two days", &cache.Cache{}, []*fetch.Result{retryAfter(unavailable(425), 48*time.Hour)}, 0, day},
		{"of the moment, a second time", &cache.Cache{}, []*fetch.Result{unavailable(429)}, 5 * time.Minute, 10 * time.Minute},
		{"of the moment, a time after that asked for two hours", &cache.Cache{}, []*fetch.Result{retryAfter(unavailable(431), 2*time.Hour), unavailable(431)}, 2 * time.Hour, 10 * time.Minute},
		{"of the moment, with a stated lifetime", &cache.Cache{}, []*fetch.Result{unavailable(421, "Cache-Control", "max-age=86400")}, 0, 5 * time.Minute},
		{"of the moment, a long MinTTL", &cache.Cache{MinTTL: 2 * time.Hour}, []*fetch.Result{unavailable(408)}, 0, 2 * time.Hour},
		{"of the moment, with a copy", &cache.Cache{}, []*fetch.Result{rules("/", "Cache-Control", "max-age=1"), retryAfter(unavailable(429), 5*time.Second)}, 62 * time.Second, time.Minute},
		{"of the moment, strictly", &cache.Cache{Outage: cache.Strict}, []*fetch.Result{rules("/", "Cache-Control", "max-age=1"), unavailable(428)}, 62 * time.Second, 5 * time.Minute},
		{"of the moment, up the ladder", &cache.Cache{Outage: cache.GoogleLadder}, []*fetch.Result{rules("/", "Cache-Control", "max-age=1"), unavailable(408)}, 62 * time.Second, 5 * time.Minute},
		{"a 503 that allows, as to Yandex", &cache.Cache{}, []*fetch.Result{unavailable(503)}, 0, 5 * time.Minute},
		{"unreachable", &cache.Cache{}, []*fetch.Result{down()}, 10 * time.Second, 20 * time.Second},
		{"unreachable, without a floor", &cache.Cache{MinTTL: -1}, []*fetch.Result{down()}, 0, 30 * time.Second},
		{"unreachable, a short MinTTL", &cache.Cache{MinTTL: time.Second}, []*fetch.Result{down()}, 0, 30 * time.Second},
		{"unreachable, a second time", &cache.Cache{}, []*fetch.Result{down()}, 30 * time.Second, time.Minute},
		{"unreachable, a longer MinTTL", &cache.Cache{MinTTL: 45 * time.Minute}, []*fetch.Result{down()}, 0, 45 * time.Minute},
		{"unreachable, a second time", &cache.Cache{MinTTL: 45 * time.Minute}, []*fetch.Result{down()}, 45 * time.Minute, time.Hour},
		{"unreachable, a MinTTL beyond an hour", &cache.Cache{MinTTL: 2 * time.Hour}, []*fetch.Result{down()}, 2 * time.Hour, 2 * time.Hour},
		{"a Retry-After of a second", &cache.Cache{}, []*fetch.Result{retryAfter(down(), time.Second)}, 0, 30 * time.Second},
		{"one before now", &cache.Cache{}, []*fetch.Result{retryAfter(down(), -time.Hour)}, 0, 30 * time.Second},
		{"of an hour", &cache.Cache{}, []*fetch.Result{retryAfter(outage(503), time.Hour)}, 0, time.Hour},
		{"of 292 years", &cache.Cache{}, []*fetch.Result{retryAfter(down(), 1<<63-1)}, 0, day},
		{"unreachable, strictly", &cache.Cache{Outage: cache.Strict}, []*fetch.Result{rules("/", "Cache-Control", "max-age=600"), down()}, 10 * time.Minute, 30 * time.Second},
		{"a copy that bridges an outage", &cache.Cache{}, []*fetch.Result{rules("/", "Cache-Control", "max-age=600"), down()}, 10 * time.Minute, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := tt.cache.WithoutSpread()
			s := &site{serve: inTurn(tt.serve...)}
			o, src := origin(t, "https://a.example"), &cache.Source{Load: s.load}
			get(t, c, s, "https://a.example")
			time.Sleep(tt.after)
			_, until, err := c.Get(t.Context(), o, src)
			if got := time.Until(until); got != tt.want || err != nil {
				t.Errorf("%s: in %v, want %v", tt.name, got, tt.want)
			}
			fetches, before := s.count(), new(cache.Source)
			if last := tt.serve[len(tt.serve)-1]; last.Err != nil || last.OfTheMoment() {
				before = src // other answers are renewed before they expire
			}
			time.Sleep(tt.want - time.Second)
			if _, _, err := c.Get(t.Context(), o, before); err != nil || s.count() != fetches {
				t.Errorf("%s: a second before, %d fetches, %v, want %d", tt.name, s.count(), err, fetches)
			}
			time.Sleep(time.Second)
			get(t, c, s, "https://a.example")
			if synctest.Wait(); s.count() != fetches+1 {
				t.Errorf("%s: then %d fetches, want %d", tt.name, s.count(), fetches+1)
			}
			closeCache(t, c)
		})
	}
}

func retryAfter(r *fetch.Result, d time.Duration) *fetch.Result {
	r.RetryAfter = d
	return r
}

// The origin's own rules come back with its next answer, and a failure of the other kind
// begins with its own first pause.
func TestAfterAStatusOfTheMomentTheRulesHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cache.Cache).WithoutSpread()
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
// in the Store stays there: after a restart the copy holds again, and without one the origin is asked.
func TestAStatusOfTheMomentIsNotStored(t *testing.T) {
	for before, first := range []*fetch.Result{unavailable(429), rules("/private", "Cache-Control", "max-age=60")} {
		synctest.Test(t, func(t *testing.T) {
			store, s := new(lockStore), &site{serve: inTurn(first, unavailable(429))}
			c := &cache.Cache{Store: store, Logger: quiet}
			get(t, c, s, "https://a.example")
			time.Sleep(6 * time.Minute)
			get(t, c, s, "https://a.example")
			if closeCache(t, c); store.count("Put") != before || s.count() != 2 {
				t.Errorf("%d values were put, want %d, after %d fetches", store.count("Put"), before, s.count())
			}
			if got, want := verdictOf(then(t, store, unavailable(429))), []string{"allow", "rules"}[before]; got != want {
				t.Errorf("after a restart: %s, want %s", got, want)
			}
		})
	}
}
