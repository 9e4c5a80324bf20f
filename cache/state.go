package cache

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/cache/internal/freshness"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// state is all that is known about one origin: its latest answer, and the outage it is in, if any. A state is
// immutable. The functions in this file have no side effects: the time comes in as an argument, and chance from terms.
//
// All periods count from one of three moments: at, failed and since. Either clock can end them, see elapsed.
type state struct {
	answered
	outage
}

// answered is the latest answer that was not unreachable. The zero value is none.
type answered struct {
	answer   *fetch.Result
	at       time.Time     // when it arrived
	lifetime time.Duration // how long it is fresh
	ahead    time.Duration // from this age on, it is refreshed in the background when used
	revising time.Duration // up to this age it serves while it is refreshed (RFC 5861 §3)
	kept     time.Duration // up to this age it serves while the origin is unreachable (RFC 9309 §2.4)
	volatile bool          // no-store: neither validated nor written to a Store
}

// outage is how an origin has failed since its latest answer. The zero value is no outage.
type outage struct {
	failure  *fetch.Result // the latest: unreachable, or of the moment
	failed   time.Time     // when it arrived
	retry    time.Duration // how long to wait before the next attempt
	failures int           // in a row, of the same kind
	since    time.Time     // when the first of them arrived
	assumed  *fetch.Result // what holds if the outage counts as unavailable (§2.3.1.4)

	// While there may be rules that are not known, failure permits nothing, and retry is when to ask the Store: see
	// withheld. What follows is what they were before, and will be once there is no doubt; if nil, nothing is withheld.
	moment *fetch.Result // of failure
	asks   time.Duration // of retry: how long the site is left alone
}

// terms are the fields of a Cache, zero values resolved, and for tests defaultTTL, maxStale, maxRetry, draw.
type terms struct {
	minTTL, maxTTL, defaultTTL, maxStale time.Duration
	minRetry, maxRetry                   time.Duration
	outage                               Outage
	keepBody                             bool
	draw                                 func(lo, hi float64) float64 // a random number between lo and hi
}

const (
	defaultMinTTL = time.Minute
	defaultTTL    = 24 * time.Hour // RFC 9309 §2.4
	maxRefusedTTL = time.Hour
	momentTTL     = 5 * time.Minute  // of the first status of the moment,
	maxMomentTTL  = time.Hour        // and of one after many
	firstRetry    = 30 * time.Second // after a failure
	maxRetryAfter = 24 * time.Hour

	defaultMaxStale = 30 * 24 * time.Hour // the RFC's "reasonably long period" (§2.3.1.4)
	maxRetry        = time.Hour

	ladderStop = 12 * time.Hour      // Google: no crawling at first,
	ladderEnd  = 30 * 24 * time.Hour // then the last good copy up to here
)

// age returns how old the answer is, by the faster clock.
func (s *state) age(now time.Time) time.Duration {
	_, most := elapsed(now, s.at)
	return most
}

// wait returns how long the origin is left alone after a failure.
func (s *state) wait(now time.Time) time.Duration {
	_, since := elapsed(now, s.failed)
	return max(0, s.retry-since)
}

// answeredWith returns the state after an answer other than unreachable. The past does not matter: rules replace rules,
// and a 404 drops them (RFC 9309 §2.3.1.3).
func (t *terms) answeredWith(r *fetch.Result, at time.Time) *state {
	f := t.stated(r, at)
	s := &state{answered: answered{answer: r, at: at, volatile: f.NoStore}}
	// The floor comes last: a max-age=0, an Age above max-age or a date in the past would otherwise mean one fetch for
	// every request. The spread keeps origins first met together from expiring together.
	s.lifetime = max(t.minTTL, time.Duration(float64(f.Lifetime)*t.draw(0.9, 1)))
	s.ahead = max(t.minTTL, s.lifetime/5*4)
	s.revising = s.lifetime
	s.kept = s.lifetime
	if !f.MustRevalidate {
		s.revising = max(s.lifetime, min(f.Lifetime+f.WhileRevalidate, f.RedirectStale, t.longest(r)))
	}
	// Only a copy of a file outlives its freshness (RFC 9309 §2.4). That there was none is no copy, and would turn an
	// outage into permission.
	if isRules(r) {
		s.kept += t.maxStale
	}
	return s
}

// stated returns what a result states, with the default for a lifetime and within all bounds but minTTL.
func (t *terms) stated(r *fetch.Result, received time.Time) freshness.Statement {
	s := freshness.Read(r.Header, trimRedirects(r.RedirectHeaders), received) // as a Store will have them
	if s.Source == "" {
		s.Lifetime = t.defaultTTL
	}
	s.Lifetime = min(s.Lifetime, t.longest(r))
	if s.Redirect < s.Lifetime {
		s.Source, s.Lifetime = "redirect", s.Redirect
	}
	return s
}

// longest returns how long a result may hold, whatever it states. A 401 and a 403 are statuses of firewalls, whose
// verdicts come and go.
func (t *terms) longest(r *fetch.Result) time.Duration {
	if r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden {
		return min(t.maxTTL, maxRefusedTTL)
	}
	return t.maxTTL
}

// failed reports whether r says nothing about the file. Such a result displaces no answer, in memory or in a Store.
func failed(r *fetch.Result) bool { return r.Err != nil || r.OfTheMoment() }

// failedWith returns the state after a failed result. The answer before it stays.
func (s *state) failedWith(t *terms, r *fetch.Result, at time.Time) *state {
	n := new(state)
	if s != nil {
		*n = *s
	}
	if last := cmp.Or(n.moment, n.failure); last == nil || (last.Err == nil) != (r.Err == nil) {
		n.since, n.failures = at, 0 // there was no failure before, or one of the other kind
	}
	n.outage = outage{failure: r, failed: at, failures: n.failures, since: n.since}
	switch {
	case r.Err != nil: // a Retry-After (RFC 9110 §10.2.3) counts up to a day: no server locks itself out for years
		wait := doubled(max(firstRetry, t.minRetry), t.maxRetry, n.failures, t.draw(0.8, 1.2))
		n.retry = max(t.minRetry, wait, min(r.RetryAfter, maxRetryAfter))
		n.assume(t)
	case r.RetryAfter > 0:
		n.retry = max(t.minTTL, min(r.RetryAfter, maxRetryAfter))
	default:
		n.retry = max(t.minTTL, doubled(momentTTL, maxMomentTTL, n.failures, t.draw(0.9, 1)))
	}
	n.failures++
	return n
}

// hasRules reports whether there are rules that hold in an outage.
func (s *state) hasRules(now time.Time) bool {
	return s != nil && s.answer != nil && isRules(s.answer) && s.age(now) < s.kept
}

// mark returns a mark of the rules of the state, or the zero mark if it has none.
func (s *state) mark() backing.Mark {
	if s.answer == nil || !isRules(s.answer) {
		return backing.Mark{}
	}
	return backing.Mark{Received: s.at.Round(0), Until: s.at.Round(0).Add(s.kept)}
}

// replaces reports whether the site has answered without rules since it had those of a mark.
func (s *state) replaces(m *backing.Mark) bool {
	return s != nil && s.answer != nil && !isRules(s.answer) && !m.Received.After(s.at.Round(0))
}

// withheld returns a state with a failure in which nothing is permitted, because there may be a copy. After again, the
// next caller asks the Store, long before the site.
func (s *state) withheld(again time.Duration) *state {
	n := *s
	n.moment = s.failure
	n.asks = s.retry
	n.retry = min(s.retry, again)
	n.assumed = nil
	if s.failure.Err == nil {
		n.failure = unreachable(s.failure.Dialect, s.failed, fmt.Sprintf(
			"cache: status %d says nothing, and the Store does not say whether there are rules", s.failure.StatusCode))
		n.failure.StatusCode, n.failure.RetryAfter = s.failure.StatusCode, s.failure.RetryAfter
	}
	return &n
}

// reviewed returns s after the Store was asked again. As long as there is doubt, what was withheld stays withheld.
func (s *state) reviewed(t *terms, doubt bool, again time.Duration, now time.Time) *state {
	if s == nil || s.moment == nil {
		return s
	}
	n := *s
	if !doubt {
		n.failure, n.retry, n.moment = s.moment, s.asks, nil
		n.assume(t)
	} else if _, since := elapsed(now, s.failed); since < s.asks {
		n.retry = min(since+again, s.asks)
	}
	return &n
}

// merged returns the newer answer of two states of one origin, and the newer outage unless the answer came after it.
// Wall clocks are compared, because one of the states comes from a Store.
func (s *state) merged(other *state) *state {
	if s == nil || other == nil {
		return cmp.Or(s, other)
	}
	m := *s
	if after(other.at, m.at) {
		m.answered = other.answered
	}
	if after(other.failed, m.failed) {
		m.outage = other.outage
	}
	if m.answer != nil && !after(m.failed, m.at) {
		m.outage = outage{} // the origin has answered since
	}
	return &m
}

// after compares wall clocks.
func after(a, b time.Time) bool { return a.Round(0).After(b.Round(0)) }

// assume prepares the result for when the outage has lasted long enough to count as unavailable.
func (s *state) assume(t *terms) {
	if f := s.failure; t.outage == GoogleLadder && f.Err != nil {
		s.assumed = &fetch.Result{Policy: policy.Unavailable(), Dialect: f.Dialect, StatusCode: f.StatusCode, Time: f.Time}
	}
}

// doubled returns wait doubled so many times, up to most, and multiplied by spread.
func doubled(wait, most time.Duration, times int, spread float64) time.Duration {
	for ; times > 0 && wait > 0 && wait < most; times-- {
		wait *= 2
	}
	return time.Duration(float64(min(wait, most)) * spread)
}

// refresh is whether a fetch is due, and whether callers wait for it.
type refresh uint8

const (
	notDue       refresh = iota
	inBackground         // a fetch is due; the result at hand serves meanwhile
	awaited              // a fetch is due, and there is nothing to use before it is done
)

// at returns what holds for the origin at a time, for how long, and whether to fetch.
func (t *terms) at(s *state, now time.Time) (r *fetch.Result, until time.Duration, due refresh) {
	wait, age := s.wait(now), s.age(now)
	switch {
	case s.answer != nil && age < s.lifetime: // fresh, even if a refresh ahead of expiry has failed
		until = s.lifetime - age
		if next := max(s.ahead-age, wait); next > 0 {
			return s.answer, min(until, next), notDue
		}
		return s.answer, until, inBackground
	case wait > 0:
		return t.during(s, now), wait, notDue
	case s.failure == nil && s.answer != nil && age < s.revising:
		return s.answer, s.revising - age, inBackground
	case s.failure != nil:
		// As long as the copy serves the callers, none of them need wait for a retry.
		if r = t.during(s, now); r == s.answer {
			return r, max(s.kept-age, time.Second), inBackground
		}
	}
	return nil, 0, awaited
}

// until returns when what holds may end: with the lifetime of the answer, or at the next attempt after a failure.
func (t *terms) until(s *state, now time.Time) time.Time {
	if fresh := s.lifetime - s.age(now); fresh > 0 {
		return now.Add(fresh)
	}
	return now.Add(s.wait(now))
}

// newest returns what was found out last, fresh or not.
func (t *terms) newest(s *state, now time.Time) *fetch.Result {
	if s.failure == nil || s.answer != nil && s.age(now) < s.lifetime {
		return s.answer
	}
	return t.during(s, now)
}

// during returns what holds while the origin fails, once the answer is no longer fresh. A status of the moment allows
// everything (RFC 9309 §2.3.1.3), but not where the origin's own rules are known.
func (t *terms) during(s *state, now time.Time) *fetch.Result {
	if t.outage == GoogleLadder {
		return s.onLadder(now)
	}
	least, age := elapsed(now, s.at)
	if s.failure.Err == nil {
		age = least // to give the copy up grants a permission
	}
	if s.answer != nil && age < s.kept && t.outage == LastGood {
		return s.answer
	}
	return s.failure
}

// onLadder is during for GoogleLadder. It counts from when the outage began, however old the copy was then.
func (s *state) onLadder(now time.Time) *fetch.Result {
	lasted, _ := elapsed(now, s.since)
	copied := s.answer != nil && isRules(s.answer) && lasted < ladderEnd
	switch ofTheMoment := s.failure.Err == nil; {
	case copied && (ofTheMoment || lasted >= ladderStop):
		return s.answer
	case ofTheMoment, lasted < ladderStop:
		return s.failure
	case s.assumed == nil, lasted >= ladderEnd && s.failure.StatusCode == 0: // without any HTTP answer, the site is down
		return s.failure
	}
	return s.assumed
}

// bridge returns the copy that stands in for a refresh that takes too long: it would serve if that failed. Or nil.
func (t *terms) bridge(s *state, now time.Time) *fetch.Result {
	if s == nil || s.answer == nil || t.outage != LastGood || s.age(now) >= s.kept {
		return nil
	}
	return s.answer
}

// isRules reports whether r is a successful access (RFC 9309 §2.3.1.1), which depends on the dialect.
func isRules(r *fetch.Result) bool {
	return r.Err == nil && r.Policy.Reason() == 0
}

// validatable returns the answer whose validators may be sent (RFC 9111 §4.3.1), or nil.
func (s *state) validatable() *fetch.Result {
	if s == nil || s.answer == nil || !isRules(s.answer) || s.volatile {
		return nil
	}
	return s.answer
}

// retention returns how long a stored state can be of use: that of an outage, as long as its length matters.
func (s *state) retention(now time.Time) time.Duration {
	keep := time.Duration(0)
	if s.answer != nil {
		keep = s.kept - s.age(now)
	}
	if s.failure != nil {
		keep = max(keep, ladderEnd+maxRetryAfter)
	}
	return max(keep, time.Minute)
}

// Outage is what holds for an origin that is unreachable: it answered 5xx, or not at all (RFC 9309 §2.3.1.4).
type Outage uint8

const (
	// LastGood uses the last copy of its rules for up to 30 days, as RFC 9309 §2.4 permits. If there is a copy, no
	// caller waits longer than 3 seconds for a newer one. If there is none, everything is disallowed.
	LastGood Outage = iota

	// Strict disallows everything as soon as the last result is no longer fresh: RFC 9309 §2.3.1.4 to the letter.
	// Stale-while-revalidate (RFC 5861 §3) counts as fresh until the refresh has failed.
	Strict

	// GoogleLadder disallows everything for 12 hours, then uses the last copy (or, if there is none, allows everything)
	// up to 30 days after the outage began, and then allows everything if the origin answers at all.
	GoogleLadder
)

// elapsed returns the time since t by the slower and by the faster of the two clocks. The wall clock jumps when it is
// set, and the monotonic one stands still while a machine sleeps. So what ends a permission is measured by the faster,
// and what grants one by the slower. If t is in the future, by a foreign or a turned-back clock, it counts as long ago.
func elapsed(now, t time.Time) (least, most time.Duration) {
	mono, wall := now.Sub(t), now.Round(0).Sub(t.Round(0))
	if mono < -clockSlack {
		return 0, 1<<63 - 1
	}
	return max(0, min(mono, wall)), max(0, mono, wall)
}

// clockSlack is how far two machines' clocks may differ without harm.
const clockSlack = time.Minute

func unreachable(d policy.Dialect, now time.Time, why string) *fetch.Result {
	return &fetch.Result{Policy: policy.Unreachable(), Dialect: d, Err: &fetch.Failure{Text: why}, Time: now}
}
