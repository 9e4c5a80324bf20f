package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// said is what a site of the model says, for a while.
type said struct {
	until time.Time
	*fetch.Result
	what string // "nothing", "allow", or the path of its rules
	lifetime
}

// lifetime is a Cache-Control, as RFC 9111 and RFC 5861 read it.
type lifetime struct {
	field             string
	stated, revalid   time.Duration
	must, none, store bool // must-revalidate; states no lifetime; may be stored
}

var lifetimes = []lifetime{
	{"", 0, 0, false, true, true}, {"max-age=60", time.Minute, 0, false, false, true}, {"max-age=3600", time.Hour, 0, false, false, true},
	{"max-age=604800", 7 * day, 0, false, false, true}, {"max-age=0", 0, 0, false, false, true}, {"no-cache", 0, 0, true, false, true},
	{"no-store", 0, 0, true, false, false}, {"no-store, max-age=7200", 0, 0, true, false, false},
	{"max-age=600, stale-while-revalidate=3600", 10 * time.Minute, time.Hour, false, false, true},
	{"private, must-revalidate, max-age=7200", 2 * time.Hour, 0, true, false, true},
}

// origins of the model have a past and a future: what they say, and until when.
func future(random *rand.Rand, i int, now, end time.Time) (all []said) {
	for v := 0; now.Before(end); v++ {
		l := lifetimes[random.IntN(len(lifetimes))]
		s := said{lifetime: l, what: "nothing"}
		switch random.IntN(12) {
		case 0, 1:
			s.Result, s.what = unavailable(404, "Cache-Control", l.field), "allow"
		case 2:
			s.Result, s.what = unavailable(403, "Cache-Control", l.field), "allow"
		case 3:
			s.Result = retryAfter(unavailable(429), time.Duration(random.IntN(2)*7200)*time.Second)
		case 4:
			s.Result = retryAfter(outage(503), time.Duration(random.IntN(2)*10800)*time.Second)
		case 5, 6:
			s.Result = down()
		default:
			s.what = fmt.Sprintf("/%d/%d", i, v)
			s.Result = rules(s.what, "Cache-Control", l.field, "ETag", fmt.Sprintf(`"%d"`, v))
		}
		if l.field == "" {
			s.Header.Del("Cache-Control")
		}
		longest := []time.Duration{time.Hour, 12 * time.Hour, 5 * day}[random.IntN(3)]
		now = now.Add(time.Duration(random.Int64N(int64(longest))))
		s.until = now
		all = append(all, s)
	}
	return all
}

// answered and failing are what a process knows of an origin, and what a Store has of it.
type answered struct {
	said
	at              time.Time
	fresh, revising time.Duration
}

type failing struct {
	said
	at, since time.Time
	retry     time.Duration
	times     int
	barred    bool          // of the moment, and a mark says that there were rules
	asks      time.Duration // then: when the site is asked again
	noLadder  bool
}

// model is one origin, the memory of one process, and a Store that works. It is written from the documentation.
type model struct {
	outage  cache.Outage
	future  []said
	answer  *answered
	failure *failing
	stored  struct {
		answer  *answered
		failure *failing
		mark    time.Time // until when there were rules
		any     bool
	}
	asked int
}

func (m *model) says(now time.Time) said {
	for _, s := range m.future {
		if now.Before(s.until) {
			return s
		}
	}
	return m.future[len(m.future)-1]
}

func (a *answered) isRules() bool { return a != nil && a.what[0] == '/' }

// holds is what serves now, and whether to ask: not at all, behind the caller, or before there is an answer.
func (m *model) holds(now time.Time) (what, ask string) {
	a, f := m.answer, m.failure
	fresh := a != nil && now.Sub(a.at) < a.fresh
	pause := f != nil && now.Sub(f.at) < f.retry
	during, byCopy := "", false
	if f != nil {
		during, byCopy = m.during(now)
	}
	switch {
	case fresh && (pause || now.Sub(a.at) < max(time.Minute, a.fresh*4/5)):
		return a.what, ""
	case fresh:
		return a.what, "behind"
	case pause:
		return during, ""
	case f == nil && a != nil && now.Sub(a.at) < a.revising, byCopy:
		return a.what, "behind"
	}
	return "", "before"
}

// during is what holds in an outage, and whether that is the copy.
func (m *model) during(now time.Time) (what string, byCopy bool) {
	a, f := m.answer, m.failure
	own := "nothing"
	if f.OfTheMoment() && !f.barred {
		own = "allow"
	}
	lasted := now.Sub(f.since)
	switch {
	case m.outage == cache.LastGood && a.isRules() && now.Sub(a.at) < a.fresh+30*day:
		return a.what, true
	case m.outage != cache.GoogleLadder:
		return own, false
	case f.OfTheMoment() && !f.barred && a.isRules() && lasted < 30*day:
		return a.what, true
	case f.OfTheMoment() && !f.barred, lasted < 12*time.Hour, f.barred:
		return own, false
	case lasted >= 30*day && f.StatusCode == 0:
		return "nothing", false
	case a.isRules() && lasted < 30*day:
		return a.what, true
	case f.noLadder:
		return "nothing", false
	}
	return "allow", false
}

// ask is a call of Get.
func (m *model) ask(now time.Time) (what string) {
	what, ask := m.holds(now)
	if ask == "" {
		return what
	}
	m.refresh(now)
	if ask == "before" {
		what = m.newest(now)
	}
	return what
}

func (m *model) newest(now time.Time) (what string) {
	if m.failure == nil || m.answer != nil && now.Sub(m.answer.at) < m.answer.fresh {
		return m.answer.what
	}
	what, _ = m.during(now)
	return what
}

func (m *model) refresh(now time.Time) {
	if m.answer == nil && m.failure == nil {
		m.answer, m.failure = m.stored.answer, m.stored.failure
	}
	marked := now.Before(m.stored.mark)
	if f := m.failure; f != nil && f.barred {
		g := *f
		if m.failure = &g; !marked {
			g.barred, g.retry = false, f.asks
		} else if since := now.Sub(f.at); since < f.asks {
			g.retry = min(since+m.stored.mark.Sub(now), f.asks)
		}
	}
	if m.answer != nil || m.failure != nil {
		if _, ask := m.holds(now); ask == "" {
			return
		}
	}
	m.asked++
	if s := m.says(now); s.Err != nil || s.OfTheMoment() {
		m.fail(s, now, marked)
	} else {
		m.take(s, now)
	}
}

func (m *model) take(s said, now time.Time) {
	longest := day
	if s.StatusCode == 403 {
		longest = time.Hour
	}
	stated := min(s.stated, longest)
	if s.none {
		stated = longest
	}
	a := &answered{said: s, at: now, fresh: max(time.Minute, stated)}
	if a.revising = a.fresh; !s.must {
		a.revising = max(a.fresh, min(stated+s.revalid, longest))
	}
	m.answer, m.failure = a, nil
	if a.store {
		m.put(a, nil, time.Time{})
	} else {
		m.putMark(now)
	}
}

func (m *model) fail(s said, now time.Time, marked bool) {
	f := &failing{said: s, at: now, since: now}
	if old := m.failure; old != nil && old.OfTheMoment() == s.OfTheMoment() {
		f.since, f.times = old.since, old.times+1
	}
	first, floor := 30*time.Second, time.Duration(0)
	if s.OfTheMoment() {
		first, floor = 5*time.Minute, time.Minute
	}
	f.retry = min(first<<min(f.times, 20), time.Hour)
	if s.RetryAfter > 0 && (s.OfTheMoment() || s.RetryAfter > f.retry) {
		f.retry = s.RetryAfter
	}
	f.retry = max(f.retry, floor)
	m.failure = f
	if a := m.answer; marked && !(a.isRules() && now.Sub(a.at) < a.fresh+30*day) {
		f.noLadder = true
		if f.OfTheMoment() && m.outage != cache.Strict {
			f.barred, f.asks, f.retry = true, f.retry, min(f.retry, m.stored.mark.Sub(now))
		}
	}
	switch {
	case s.OfTheMoment() || marked:
	case m.answer == nil || m.answer.store:
		m.put(m.answer, f, time.Time{})
	default:
		m.putMark(now)
	}
}

// putMark is for an answer with no-store.
func (m *model) putMark(now time.Time) {
	ends := m.answer.at
	if m.answer.isRules() {
		if ends = ends.Add(m.answer.fresh + 30*day); m.stored.mark.After(ends.Add(-day)) {
			return
		}
	} else if !m.stored.any {
		return
	}
	m.put(nil, nil, ends)
}

func (m *model) put(a *answered, f *failing, mark time.Time) {
	m.stored.answer, m.stored.failure, m.stored.mark, m.stored.any = a, f, mark, true
}

// A month of eighty origins that change and fail, with a restart each five days: each call permits what the model says,
// and each site is asked as often.
func TestAMonthAgainstAModel(t *testing.T) {
	seeds, origins, lookups := 2, 20, 4000
	if tier.AtGate() {
		seeds, origins, lookups = 4, 80, 12_000
	}
	if tier.AtNight() {
		seeds = 25
	}
	for seed := range seeds {
		for outage := range cache.GoogleLadder + 1 {
			t.Run(fmt.Sprintf("seed %d, outage %d", seed, outage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					month(t, rand.New(rand.NewPCG(uint64(seed), 9309)), outage, origins, lookups)
				})
			})
		}
	}
}

func month(t *testing.T, random *rand.Rand, outage cache.Outage, origins, lookups int) {
	const length = 34 * day
	start := time.Now()
	all, fetches := make([]*model, origins), make([]int, origins)
	for i := range all {
		all[i] = &model{outage: outage, future: future(random, i, start, start.Add(length))}
	}
	store, c := new(memStore), (*cache.Cache)(nil)
	for n, which := 0, 0; n < lookups; n++ {
		if n%(lookups*5/34) == 0 { // each five days
			if c != nil {
				closeCache(t, c)
			}
			c = (&cache.Cache{Store: store, Outage: outage}).WithoutSpread()
			for _, m := range all {
				m.answer, m.failure = nil, nil
			}
		}
		if random.IntN(3) > 0 { // else the same one again
			which = random.IntN(origins)
		}
		m := all[which]
		src := &cache.Source{Load: func(_ context.Context, _ fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
			fetches[which]++
			r := *m.says(time.Now()).Result
			if tag := r.Header.Get("ETag"); prev != nil && tag != "" && prev.Header.Get("ETag") == tag {
				r = *prev // a 304
			}
			r.Time = time.Now()
			return &r, nil
		}}
		r := ask(t, c, src, fmt.Sprintf("https://a%d.example", which))
		synctest.Wait()
		got := "nothing"
		switch {
		case r.Err == nil && r.Policy.Reason() != 0:
			got = "allow"
		case r.Err == nil:
			got = string(r.Policy.String())
		}
		want := m.ask(time.Now())
		if want[0] == '/' {
			want = rules(want).Policy.String()
		}
		if got != want || fetches[which] != m.asked {
			t.Fatalf("origin %d after %v: %q and %d fetches, want %q and %d; answer %+v, failure %+v, mark %v, site %v",
				which, time.Since(start), got, fetches[which], want, m.asked, m.answer, m.failure, m.stored.mark, m.says(time.Now()))
		}
		time.Sleep(time.Duration(random.Int64N(2 * int64(length) / int64(lookups))))
	}
	closeCache(t, c)
}
