package cache_test

import (
	"strings"
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
		{"in the foreground there are no renewals", &cache.Cache{NoRefresh: true}, rules("/"), 20 * time.Hour, true, 0},
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
		{"not in the foreground", &cache.Cache{NoRefresh: true}, rules("/", "Cache-Control", "max-age=600, stale-while-revalidate=600"), 10 * time.Minute, false, 1},
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
	synctest.Test(t, func(t *testing.T) {
		c, s := new(cache.Cache), &site{serve: always(rules("/", "Cache-Control", "max-age=0"))}
		for range 50 {
			get(t, c, s, "https://a.example")
			n := s.count()
			time.Sleep(59 * time.Second)
			if get(t, c, s, "https://a.example"); s.count() != n {
				t.Fatal("asked twice in a minute")
			}
			time.Sleep(time.Second)
		}
		closeCache(t, c)
	})
}

func TestACopyIsKeptForAnOutageAsLongAsItShould(t *testing.T) {
	const month = 30 * day
	for _, tt := range []struct {
		name         string
		cache        *cache.Cache
		cacheControl string
		after        time.Duration
		kept         bool
	}{
		{"30 days", &cache.Cache{}, "max-age=3600", month, true},
		{"and no longer", &cache.Cache{}, "max-age=3600", month + time.Hour, false},
		{"not at all", (&cache.Cache{}).WithTerms(day, 0), "max-age=3600", time.Hour, false},
		{"stale-if-error does not shorten", &cache.Cache{}, "max-age=3600, stale-if-error=0", month, true},
		{"nor does must-revalidate", &cache.Cache{}, "max-age=3600, must-revalidate", month, true},
		{"nor no-store", &cache.Cache{}, "no-store", month, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := tt.cache.WithoutSpread(), &site{serve: inTurn(rules("/private", "Cache-Control", tt.cacheControl), down())}
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

// A reason that is not a status: what a status means depends on the dialect.
func TestACopyIsOneOfRulesNotOfA200(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := &fetch.Result{StatusCode: 200, Policy: policy.Unavailable(), Header: header("Cache-Control", "max-age=60")}
		c, s := new(cache.Cache), &site{serve: inTurn(open, down())}
		get(t, c, s, "https://a.example")
		time.Sleep(time.Hour)
		if r := get(t, c, s, "https://a.example"); r.Err == nil {
			t.Error("that a site was open without rules bridges an outage")
		}
		closeCache(t, c)
	})
}

// An outage enters its next stage when it is time, not when the origin is next asked.
func TestTheStagesOfAnOutageDoNotWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&cache.Cache{Outage: cache.GoogleLadder, MinRetry: 5 * time.Hour}).WithoutSpread()
		s := &site{serve: inTurn(rules("/private", "Cache-Control", "max-age=60"), down())}
		get(t, c, s, "https://a.example")
		time.Sleep(time.Minute)
		for _, step := range []struct {
			wait    time.Duration
			reached bool
		}{{0, false}, {6 * time.Hour, false}, {5 * time.Hour, false}, {time.Hour, true}, {time.Second, true}} {
			time.Sleep(step.wait)
			n := s.count()
			if r := get(t, c, s, "https://a.example"); (r.Err == nil) != step.reached {
				t.Errorf("%v later: %v, want the copy: %v", step.wait, r.Err, step.reached)
			}
			if step.reached && s.count() != n {
				t.Error("the origin was asked")
			}
		}
		closeCache(t, c)
	})
}

// What the ladder assumes is an answer in the dialect of the caller: to read it there changes nothing.
func TestWhatTheLadderAssumesHasItsDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := &cache.Cache{Outage: cache.GoogleLadder}, &site{serve: always(down()), dialect: policy.Google}
		get(t, c, s, "https://a.example")
		time.Sleep(13 * time.Hour)
		if r := get(t, c, s, "https://a.example"); r.Err != nil || r.In(s.dialect) != r {
			t.Errorf("%v, read again %v", r, r.In(s.dialect))
		}
		closeCache(t, c)
	})
}

// What is dropped of a header for its length must not have been what made the answer stale.
func TestAFieldTooLongToKeepMakesNothingLast(t *testing.T) {
	for name, fields := range map[string][]string{
		"Expires":  {"Expires", strings.Repeat("0", 9000)},
		"Age":      {"Cache-Control", "max-age=86400", "Age", strings.Repeat("0", 9000) + "86400"},
		"Vary":     {"Cache-Control", "max-age=86400", "Vary", "*, " + strings.Repeat("x", 9000)},
		"no-store": {"Cache-Control", "no-store, x=" + strings.Repeat("x", 9000)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(memStore)
				c := &cache.Cache{Store: store, Logger: quiet}
				r := rules("/p", fields...)
				r.Time = time.Now()
				want, _ := cache.Lifetime(r)
				s := &site{serve: always(r)}
				get(t, c, s, "https://a.example")
				time.Sleep(want + 2*time.Minute)
				get(t, c, s, "https://a.example")
				if s.count() != 2 {
					t.Errorf("FreshnessLifetime is %v, yet it holds after %v", want, want+2*time.Minute)
				}
				closeCache(t, c)
				time.Sleep(want + 2*time.Minute)
				c = &cache.Cache{Store: store, Logger: quiet}
				if get(t, c, s, "https://a.example"); s.count() != 3 {
					t.Errorf("FreshnessLifetime is %v, yet as stored it holds after %v", want, want+2*time.Minute)
				}
				closeCache(t, c)
			})
		})
	}
}

// Get says until when its answer holds: the end of a lifetime, or the next attempt after a failure.
func TestGetSaysWhenTheOriginIsAskedNext(t *testing.T) {
	for _, tt := range []struct {
		name   string
		outage cache.Outage
		serve  []*fetch.Result
		after  time.Duration // from the first answer to the question
		want   time.Duration // from the question on
	}{
		{"rules", cache.LastGood, []*fetch.Result{rules("/")}, time.Hour, 23 * time.Hour},
		{"a lifetime that is stated", cache.LastGood, []*fetch.Result{rules("/", "Cache-Control", "max-age=600")}, time.Minute, 9 * time.Minute},
		{"no file", cache.LastGood, []*fetch.Result{unavailable(404)}, time.Hour, 23 * time.Hour},
		{"a 403", cache.LastGood, []*fetch.Result{unavailable(403)}, 0, time.Hour},
		{"a status of the moment", cache.LastGood, []*fetch.Result{unavailable(429)}, time.Minute, 4 * time.Minute},
		{"unreachable", cache.LastGood, []*fetch.Result{down()}, 10 * time.Second, 20 * time.Second},
		{"unreachable, strictly", cache.Strict, []*fetch.Result{rules("/", "Cache-Control", "max-age=600"), down()}, 10 * time.Minute, 30 * time.Second},
		{"a copy that bridges an outage", cache.LastGood, []*fetch.Result{rules("/", "Cache-Control", "max-age=600"), down()}, 10 * time.Minute, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := (&cache.Cache{Outage: tt.outage, NoRefresh: true}).WithoutSpread()
			s := &site{serve: inTurn(tt.serve...)}
			o, src := origin(t, "https://a.example"), &cache.Source{Load: s.load}
			get(t, c, s, "https://a.example")
			time.Sleep(tt.after)
			_, until, err := c.Get(t.Context(), o, src)
			if got := time.Until(until); got != tt.want || err != nil {
				t.Errorf("%s: in %v, want %v", tt.name, got, tt.want)
			}
			fetches := s.count()
			if time.Sleep(tt.want - time.Second); s.count() != fetches {
				t.Errorf("%s: asked before", tt.name)
			}
			if get(t, c, s, "https://a.example"); s.count() != fetches {
				t.Errorf("%s: asked before", tt.name)
			}
			time.Sleep(time.Second)
			if get(t, c, s, "https://a.example"); s.count() != fetches+1 {
				t.Errorf("%s: not asked then", tt.name)
			}
			closeCache(t, c)
		})
	}
}

// A negative field stands for none: no limit, no least time, no default.
func TestNegativeFieldsStandForNone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cache *cache.Cache
		r     *fetch.Result
		after time.Duration
		want  int // fetches
	}{
		{"MinTTL", &cache.Cache{MinTTL: -1}, rules("/", "Cache-Control", "max-age=0"), time.Nanosecond, 2},
		{"MaxTTL", &cache.Cache{MaxTTL: -1, NoRefresh: true}, rules("/", "Cache-Control", "max-age=31536000"), 364 * 24 * time.Hour, 1},
		{"MaxTTL, and no header", &cache.Cache{MaxTTL: -1}, rules("/"), 24 * time.Hour, 2},
		{"MinRetry", &cache.Cache{MinRetry: -1}, down(), time.Nanosecond, 2},
		{"MaxOrigins", &cache.Cache{MaxOrigins: -1}, rules("/"), time.Hour, 1},
		{"MaxBytes", &cache.Cache{MaxBytes: -1}, rules("/"), time.Hour, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := tt.cache.WithoutSpread(), &site{serve: always(tt.r)}
			get(t, c, s, "https://a.example")
			time.Sleep(tt.after)
			if get(t, c, s, "https://a.example"); s.count() != tt.want {
				t.Errorf("%s: %d fetches, want %d", tt.name, s.count(), tt.want)
			}
			closeCache(t, c)
		})
	}
}
