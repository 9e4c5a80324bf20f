package cache_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func flip(data []byte, i int) []byte {
	data = bytes.Clone(data)
	data[i] ^= 4
	return data
}

// A storeTest is the life of an origin over one Store: each step finds what the one before it left.
type storeTest struct {
	name  string
	steps []storeStep
}

type storeStep struct {
	after   time.Duration // since the step before
	do      func(*life)   // then; nil: nothing
	site    *fetch.Result // the site's answer from now on; nil: as before
	verdict string        // of the Result that Get returns
	fetches int           // so far
	stored  int           // values in the Store
}

// life is what the steps of a storeTest have in common.
type life struct {
	t      *testing.T
	store  *lockStore
	locks  bool // whether the Cache may use them
	cache  *cache.Cache
	site   *site
	answer *fetch.Result
	origin string
	last   *fetch.Result
}

// open opens a Cache over the Store, in place of any that there is.
func (l *life) open(c *cache.Cache) {
	if l.cache != nil {
		closeCache(l.t, l.cache)
		l.store.misbehave(nil)
	}
	if c.Store = l.store; !l.locks {
		c.Store = &l.store.memStore
	}
	l.cache = c.WithoutSpread()
}

func restart(l *life) { l.open(new(cache.Cache)) }

// restartStrict keeps no copies for an outage, and takes what it reads for fresh.
func restartStrict(l *life) {
	l.open(&cache.Cache{MinTTL: day})
	l.cache.WithTerms(day, 0)
}

// restartUnread restarts over a Store that cannot be read until the next restart.
func restartUnread(l *life) {
	restart(l)
	l.store.misbehave(on("Get", fails))
}

func forget(l *life) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	clear(l.store.values)
}

func inGoogle(l *life) { l.site.dialect = policy.Google }

// becomes restarts over a Store in which the origin's value has changed.
func becomes(change func(value []byte) []byte) func(*life) {
	return func(l *life) {
		value := l.store.values["RGC5 "+l.origin+" "]
		restart(l)
		l.store.values["RGC5 "+l.origin+" "] = change(value)
	}
}

// moved restarts, and gives the value of the origin to another one, which is asked from now on.
func moved(l *life) {
	restart(l)
	l.store.values["RGC5 https://b.example "] = l.store.values["RGC5 "+l.origin+" "]
	l.origin, l.last = "https://b.example", nil
}

// seals puts a value as another process might; NOW and LATER in it are times.
func seals(meta, file string) func(*life) {
	return func(l *life) {
		now := time.Now()
		l.store.seal("RGC5 "+l.origin+" ", strings.NewReplacer("NOW", now.Format(time.RFC3339Nano),
			"LATER", now.Add(365*24*time.Hour).Format(time.RFC3339Nano)).Replace(meta), file)
	}
}

// renewed stands for a 304, which the site can answer only if it is asked to validate a file.
var renewed = new(fetch.Result)

func (l *life) serve(_ int, prev *fetch.Result) *fetch.Result {
	if l.answer != renewed {
		return l.answer
	}
	if prev == nil || prev.Body == nil {
		l.t.Errorf("%s to validate, want an answer with its file", brief(prev))
		return down()
	}
	return prev
}

// verdictOf says what a Result permits. "rules" are those of line 2 of the file.
func verdictOf(r *fetch.Result) string {
	if r == nil {
		return brief(r)
	}
	private, public := r.Policy.Decide("x", "/private/x"), r.Policy.Decide("x", "/public")
	switch {
	case private.Allowed && public.Allowed && r.Err == nil:
		return "allow"
	case !private.Allowed && private.Rule.Line == 2 && public.Allowed && r.Err == nil:
		return "rules"
	case !private.Allowed && !public.Allowed && r.Err != nil:
		return "disallow"
	}
	return brief(r)
}

// sameResult reports whether b is a, as far as a Store keeps it.
func sameResult(a, b *fetch.Result) bool {
	return a.StatusCode == b.StatusCode && a.Time.Equal(b.Time) && a.Dialect == b.Dialect &&
		fmt.Sprint(a.Err) == fmt.Sprint(b.Err) && a.Header.Get("ETag") == b.Header.Get("ETag") &&
		slices.Equal(a.Redirects, b.Redirects) && verdictOf(a) == verdictOf(b)
}

func (tt storeTest) run(t *testing.T, store *lockStore, locks bool) {
	l := &life{t: t, store: store, locks: locks, origin: "https://a.example"}
	l.site = &site{serve: l.serve}
	restart(l)
	for i, step := range tt.steps {
		time.Sleep(step.after)
		if step.do != nil {
			step.do(l)
		}
		l.answer = cmp.Or(step.site, l.answer)
		before := l.site.count()
		r := get(t, l.cache, l.site, l.origin)
		synctest.Wait()
		fetches, stored, value := l.site.count(), store.kept(), store.values["RGC5 "+l.origin+" "]
		if got := verdictOf(r); got != step.verdict || fetches != step.fetches || stored != step.stored {
			t.Errorf("step %d: got %s, %d fetches, %d stored; want %s, %d, %d",
				i, got, fetches, stored, step.verdict, step.fetches, step.stored)
		}
		if fetches == before && l.last != nil && !sameResult(r, l.last) {
			t.Errorf("step %d: got %s without a fetch, want %s as before", i, brief(r), brief(l.last))
		}
		if fetches > before && stored > 0 && !bytes.HasPrefix(value, []byte("RGC5")) {
			t.Errorf("step %d: %.20q is still in the Store, want what was fetched", i, value)
		}
		l.last = r
	}
	if closeCache(t, l.cache); store.held() > 0 {
		t.Errorf("%d locks are still held, want none", store.held())
	}
}

func TestStore(t *testing.T) {
	const (
		hour   = time.Hour
		later  = `{"key":"RGC5 https://a.example ","answer":{"file":true,"status":200,"received":"LATER"}}`
		outage = `{"key":"RGC5 https://a.example ","failure":{"error":"e","received":"NOW","since":"NOW","count":1,` +
			`"retry_ns":9223372036854775807}}`
	)
	minute := rules("/private", "Cache-Control", "max-age=60")
	tenMinutes := rules("/private", "ETag", `"v1"`, "Cache-Control", "max-age=600")
	twoHours := rules("/private", "ETag", `"v1"`, "Cache-Control", "max-age=7200")
	twoHours.Redirects = []string{"https://b.example/r.txt"}
	for _, tt := range []storeTest{
		{"a restart starts warm", []storeStep{
			{0, inGoogle, twoHours, "rules", 1, 1},
			{hour, restart, rules("/other"), "rules", 1, 1},
			{hour + time.Second, nil, nil, "allow", 2, 1},
		}},
		{"a 304 renews a file that only the Store has", []storeStep{
			{0, nil, tenMinutes, "rules", 1, 1},
			{hour, nil, renewed, "rules", 2, 1},
			{hour, nil, nil, "rules", 3, 1},
			{hour, nil, nil, "rules", 4, 1},
			{hour, nil, nil, "rules", 5, 1},
			{hour, restartStrict, nil, "rules", 5, 1},
		}},
		{"a Store that forgets a file in an outage has a mark of it", []storeStep{
			{0, nil, tenMinutes, "rules", 1, 1},
			{hour, forget, down(), "rules", 2, 0}, // memory has no file
			{0, restart, unavailable(429), "disallow", 3, 0},
			{hour, nil, tenMinutes, "rules", 4, 1},
		}},
		{"an outage is remembered across a restart", []storeStep{
			{0, nil, down(), "disallow", 1, 1},
			{20 * time.Second, restart, nil, "disallow", 1, 1},
			{20 * time.Second, restart, nil, "disallow", 2, 1}, // 30 s after the first failure
			{20 * time.Second, restart, nil, "disallow", 2, 1},
			{20 * time.Second, restart, nil, "disallow", 2, 1},
			{30 * time.Second, nil, nil, "disallow", 3, 1}, // 60 s after the second
			{100 * time.Second, restart, nil, "disallow", 3, 1},
			{30 * time.Second, nil, nil, "disallow", 4, 1}, // 120 s after the third
		}},
		{"an outage does not displace a copy that cannot be read", []storeStep{
			{0, nil, minute, "rules", 1, 1},
			{hour, restartUnread, down(), "disallow", 2, 1},
			{0, restart, nil, "rules", 3, 1},
		}},
		{"an answer is put", []storeStep{{0, nil, minute, "rules", 1, 1}}},
		{"one with private is put", []storeStep{{0, nil, rules("/private", "Cache-Control", "private"), "rules", 1, 1}}},
		{"one with no-store is not", []storeStep{{0, nil, rules("/private", "Cache-Control", "no-store"), "rules", 1, 0}}},
		{"a damaged value is a miss", []storeStep{
			{0, nil, rules("/private"), "rules", 1, 1},
			{0, becomes(func([]byte) []byte { return []byte{} }), nil, "rules", 2, 1},
			{0, becomes(func(good []byte) []byte { return good[:len(good)-1] }), nil, "rules", 3, 1},
			{0, becomes(func(good []byte) []byte { return good[:12] }), nil, "rules", 4, 1},
			{0, becomes(func([]byte) []byte { return bytes.Repeat([]byte("x"), 10<<20) }), nil, "rules", 5, 1},
			{0, becomes(func(good []byte) []byte { return flip(good, len(good)/2) }), nil, "rules", 6, 1},
			{0, becomes(func(good []byte) []byte { return flip(good, 3) }), nil, "rules", 7, 1}, // another version
			{0, becomes(func([]byte) []byte { return []byte("User-agent: *\nAllow: /\n") }), nil, "rules", 8, 1},
			{0, becomes(bytes.Clone), nil, "rules", 8, 1},
			{0, moved, nil, "rules", 9, 2},
		}},
		{"a copy from the future is not fresh, and is replaced", []storeStep{
			{0, seals(later, ""), rules("/private"), "rules", 1, 1},
			{0, restart, nil, "rules", 1, 1},
		}},
		{"a record from the future does not displace a good copy", []storeStep{
			{0, nil, minute, "rules", 1, 1},
			{hour, seals(later, ""), down(), "rules", 2, 1},
		}},
		{"a record of an outage cannot lock an origin out", []storeStep{
			{0, seals(outage, ""), rules("/private"), "disallow", 0, 1},
			{25 * hour, nil, nil, "rules", 1, 1},
		}},
	} {
		for _, locks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, locks %v", tt.name, locks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { tt.run(t, new(lockStore), locks) })
			})
		}
	}
}

// Between a look into the Store and the lock, its last holder may have put a result.
func TestTheStoreIsAskedAgainUnderTheLock(t *testing.T) {
	put := seals(`{"key":"RGC5 https://a.example ","answer":{"file":true,"status":200,"received":"NOW"}}`, "User-agent: *\n")
	synctest.Test(t, func(t *testing.T) {
		store := new(lockStore)
		store.before = on("Lock", func(context.Context) error {
			put(&life{store: store, origin: "https://a.example"})
			return nil
		})
		storeTest{steps: []storeStep{{0, nil, rules("/private"), "allow", 0, 1}}}.run(t, store, true)
	})
}

func TestAFailingStoreIsLeftAloneAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := &memStore{before: func(context.Context, string) error { return errors.New("READONLY") }}
		s := &site{serve: always(rules("/private"))}
		c := &cache.Cache{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		ask := func(from, to int) {
			for i := from; i < to; i++ {
				get(t, c, s, fmt.Sprintf("https://a%d.example", i))
				synctest.Wait()
			}
		}
		ask(0, 100)
		if got := store.count("Get"); got != 5 {
			t.Errorf("%d reads of a store that fails, want 5", got)
		}
		time.Sleep(5 * time.Second)
		ask(100, 200)
		if got := store.count("Get"); got != 6 {
			t.Errorf("%d reads after the first pause, want 6", got)
		}
		if got := strings.Count(log.String(), "\n"); got != 2 || strings.Count(log.String(), "READONLY") != 2 {
			t.Errorf("log of a failing store, want a line each for reading and writing:\n%s", &log)
		}
		store.misbehave(nil)
		time.Sleep(5 * time.Second)
		ask(200, 300)
		if closeCache(t, c); len(store.keys()) < 290 {
			t.Errorf("%d values in the store in the end, most of them queued while it failed; want 290 at least", len(store.keys()))
		}
		if got := strings.Count(log.String(), "works again"); got != 2 || strings.Count(log.String(), "\n") != 4 {
			t.Errorf("log after the recovery, want two lines more:\n%s", &log)
		}
		if got := c.Stats(); got.StoreErrors < 11 {
			t.Errorf("%+v, want 11 errors at least", got)
		}
	})
}
