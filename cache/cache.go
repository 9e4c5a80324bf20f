// Package cache keeps the robots.txt result of each origin and decides how long it holds (RFC 9309 §2.4, RFC 9111).
//
// A result is fresh for the lifetime that its header states, within bounds. From then on it holds only until the next
// one is fetched. One fetch runs per origin, however many callers wait. It belongs to none of them: a caller that gives
// up fails no other. While an origin is unreachable, its last good copy still holds (see [Outage]), and the origin is
// asked again after 30 seconds, then less and less often. A good copy also holds after an answer whose status is of the
// moment; see [Cache] for when the origin is then asked again.
//
// Results in use are fetched again behind their callers after 80 % of their lifetime, in an origin's
// stale-while-revalidate window (RFC 5861 §3), and as retries in an outage that a copy bridges: 32 at a time at most.
//
// Results are kept for an origin and its reader (see Source.Reader): two crawlers fetch each file once each.
//
// Behind the memory there can be a Store, for a warm restart or for several processes. "There is no copy" and "it is
// not known whether there is one" differ: after a Store failed, was late or returned a damaged value, a status of the
// moment permits nothing, and the Store is asked again within five seconds. Rules with no-store leave a mark there,
// which says that there were rules, and until when, without the file. Writes happen in the background. Where one fails,
// the Store gets a mark once it takes values again, or at Close. A Store that fails is bypassed until it recovers.
//
// Processes that share a Store with locks, such as that of package redisstore, fetch each robots.txt once for all of
// them. While another process fetches, a miss may wait up to 15 seconds for its result.
//
// What goes in and comes out is a fetch.Result, without its file unless the Cache has KeepBody.
package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
)

// Cache keeps results in memory and, if it has a Store, behind it. The zero value is ready: it keeps 64 MiB in memory
// and has no Store. A Cache is safe for concurrent use. After the first use its fields must not change, and it must not
// be copied. Make one for the life of the program.
//
// Some statuses are of the moment: 408, 421, 425, 428, 429 and 431, and a 5xx where the dialect reads it as
// unavailable. They say nothing about the file, so a good copy stays in use, as in an outage. Without a copy, or if
// Outage is Strict, such a status permits everything, as a 404 does, until its Retry-After has passed, at most 24
// hours; but nothing while a Store cannot say whether there are rules. If it states none, that is 5 minutes, doubling
// to an hour if it comes again. It is never less than MinTTL, and no Store gets it.
type Cache struct {
	// MaxBytes bounds the memory that results take, by an estimate within 20 % of the heap; an origin counts once for each
	// reader and dialect. The least recently used gives way, and a result that would not fit by itself is not kept. If
	// zero, 64 MiB: some 50,000 origins. If negative, there is none.
	MaxBytes int64

	// MinTTL is the shortest time a result holds, whatever its header says. Without it, some robots.txt would be fetched
	// for every request. After a failure, the origin is asked again after 30 seconds, or MinTTL if that is set and longer;
	// this doubles with each further failure, up to an hour, ± 20 %, but never below a MinTTL that is set. A longer
	// Retry-After is honoured up to 24 hours. If zero, 1 minute. If negative, there is none: the 30 seconds stay.
	MinTTL time.Duration

	// MaxTTL is the longest time a result holds while the origin can be reached, except for a status of the moment. A
	// 401 or 403 holds for an hour at most. All hold for up to a tenth less, so that what was read together does not
	// expire together. If zero, 24 hours, the most that RFC 9309 §2.4 recommends. If negative, there is none.
	MaxTTL time.Duration

	// Outage says what holds while an origin is unreachable. If zero, LastGood.
	Outage Outage

	// KeepBody keeps each file with its rules, for programs that show it or read it in another dialect: a Result has its
	// Body then, after a 304 too, and Content-Type and Retry-After in its Header. MaxBytes counts both. If false, memory
	// has the rules without the file, and a Store the file without these two fields.
	KeepBody bool

	// Store is a second level behind the memory. If nil, there is none.
	Store Store

	// Logger gets a line when a Store has failed five times in a row, and when it works again. Stats counts all failures.
	// If nil, slog.Default.
	Logger *slog.Logger

	once    sync.Once // sets up what follows
	terms   terms
	start   time.Time      // entry.look counts from here: a hit need read the monotonic clock only
	backing *backing.Guard // nil: no Store

	closing chan struct{}      // holds one element while Shutdown runs
	ctx     context.Context    // of all flights
	end     context.CancelFunc // ends it
	running tasks              // flights, and what they leave to be written

	mu       sync.Mutex // guards what follows; no Load, Store or Logger is called under it
	memory   memory
	group    singleflight.Group
	flights  map[key]*flight // those in group
	renewals int             // flights that began behind their callers
}

// ErrClosed is what Get returns after Close. errors.Is finds it in the errors of a closed client.Transport, too.
var ErrClosed = errors.New("cache: Get after Close")

// Get returns the result that holds for the origin o, from memory, the Store or src, and until when it holds.
// An origin that has failed is asked again then, unless a copy still holds for longer. If that time has passed, the
// result is for this call only.
//
// Get waits no longer than ctx. The error is ctx.Err(), ErrClosed, that of Load, or ErrMiss (without a Load). If Load
// fails and the last copy would serve in an outage, Get returns that without an error, and Load is called again five
// seconds later. What goes wrong with the origin is a Result with Err set.
//
// With LastGood, if the last copy would serve in an outage, Get waits 3 seconds at most for a newer one, even if the
// copy says must-revalidate. The Load goes on, and until it is done all callers get the copy at once.
//
// With a ctx that has ended, Get returns what holds at present. If nothing does, Get starts a fetch, unless 1,000 are
// under way, and returns ctx.Err().
//
// The Result is shared and must not be modified. Unless KeepBody is set, its Body is nil, and its Header has only the
// fields that this package needs (validators, dates, Cache-Control, Vary, Crawler-Price).
func (c *Cache) Get(ctx context.Context, o fetch.Origin, src *Source) (r *fetch.Result, until time.Time, err error) {
	c.once.Do(c.init)
	k, passed := key{o, src.Reader, src.Dialect}, time.Since(c.start)
	c.mu.Lock()
	e, ok := c.memory.recent.Get(k)
	if ok && passed < e.look && e.result != nil { // nil if another call has looked since, and nothing holds
		r, until = e.result, e.until
		c.mu.Unlock()
		return r, until, nil
	}
	l, flying, err := c.look(ctx, k, e, src)
	c.mu.Unlock()
	if flying != nil {
		return c.wait(ctx, k, flying)
	}
	return l.result, l.until, err
}

// look answers from an entry that may have expired, and starts a fetch if one is due. If that has to be waited for, it
// returns the flight instead. With ErrMiss, it returns the newest result there is. c.mu is held.
func (c *Cache) look(ctx context.Context, k key, e *entry, src *Source) (landed, <-chan singleflight.Result, error) {
	now, due := time.Now(), awaited
	var known *state
	if e != nil {
		known = e.state
		due = c.settle(e, now)
	}
	f := c.flights[k]
	switch {
	case c.ctx.Err() != nil:
		return landed{}, nil, ErrClosed
	case due == awaited && f != nil && now.Sub(f.began) >= maxBridged && c.terms.bridge(known, now) != nil:
		return landed{known.answer, c.terms.until(known, now)}, nil, nil
	case due == awaited && src.Load != nil && ctx.Err() != nil && (f != nil || len(c.flights) >= maxUnawaited):
		return landed{}, nil, ctx.Err()
	case due == awaited && src.Load != nil:
		return landed{}, c.fly(k, known, now, src, false), nil
	case due == awaited && known == nil:
		return landed{}, nil, ErrMiss
	case due == awaited:
		return landed{result: c.terms.newest(known, now)}, nil, ErrMiss
	case due == inBackground && src.Load != nil && f == nil && c.renewals < maxRenewals:
		c.fly(k, known, now, src, true)
	}
	return e.landed, nil, nil
}

// settle makes an entry answer with what holds now, for a minute at most, because the wall clock may be set, and less
// while a refresh may be under way or an outage may enter its next stage. c.mu is held.
func (c *Cache) settle(e *entry, now time.Time) refresh {
	r, period, due := c.terms.at(e.state, now)
	switch {
	case due == awaited:
		period = 0
	case due == inBackground || e.state.failure != nil:
		period = min(period, time.Second)
	default:
		period = min(period, time.Minute)
	}
	e.landed, e.look = landed{r, c.terms.until(e.state, now)}, now.Sub(c.start)+period
	return due
}

// publish puts a state into memory. It returns what is known now, fresh or not, and until when that holds.
func (c *Cache) publish(k key, s *state, now time.Time) landed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.memory.put(k, s); e != nil {
		c.settle(e, now)
	}
	return landed{c.terms.newest(s, now), c.terms.until(s, now)}
}

// Lifetime returns how long c uses r without validation, counted from r.Time, and what that comes from: it is for
// programs that print it. Get may use r up to a tenth shorter. A stated lifetime is read as a private cache does (RFC
// 9111 §4.2.1), and the age on arrival (§4.2.3) is taken off. If none is stated, it is 24 hours, the most that RFC 9309
// §2.4 recommends. Then MaxTTL and MinTTL bound it. It is zero if r is unreachable. The source is, whatever the bounds,
//
//   - "Cache-Control", "Expires" or "Retry-After", if that field of r states it,
//   - "Vary", if that is "*", which makes it zero,
//   - "redirect", if a redirect to r states it,
//   - "status", if a status of the moment (see [Cache]) comes without a Retry-After: 5 minutes,
//   - "" if nothing states it, or r is unreachable.
func (c *Cache) Lifetime(r *fetch.Result) (d time.Duration, source string) {
	var t terms
	t.init(c)
	switch {
	case r == nil || r.Err != nil:
		return 0, ""
	case r.OfTheMoment() && r.RetryAfter > 0:
		d, source = min(r.RetryAfter, maxRetryAfter), "Retry-After"
	case r.OfTheMoment():
		d, source = momentTTL, "status"
	default:
		s := t.stated(r, r.Time)
		d, source = s.Lifetime, s.Source
	}
	return max(t.minTTL, d), source
}

func (c *Cache) init() {
	c.start = time.Now()
	c.terms.init(c)
	c.memory.init(orDefault(c.MaxBytes, defaultMaxBytes, math.MaxInt64))
	c.closing = make(chan struct{}, 1)
	c.ctx, c.end = context.WithCancel(context.Background())
	c.flights = make(map[key]*flight)
	if c.Store != nil {
		c.backing = backing.New(c.Store, cmp.Or(c.Logger, slog.Default()), c.running.Go)
	}
}

func (t *terms) init(c *Cache) {
	*t = terms{
		minTTL:     min(century, orDefault(c.MinTTL, defaultMinTTL, 0)),
		maxTTL:     min(century, orDefault(c.MaxTTL, defaultTTL, century)),
		minRetry:   min(century, orDefault(c.MinTTL, 0, 0)),
		defaultTTL: defaultTTL, maxStale: defaultMaxStale, maxRetry: maxRetry,
		outage: c.Outage, keepBody: c.KeepBody,
		draw: t.draw, // of a test
	}
	if t.draw == nil {
		t.draw = func(lo, hi float64) float64 { return lo + (hi-lo)*rand.Float64() }
	}
}

const century = 100 * 365 * 24 * time.Hour // stands for "no limit", because sums with it do not overflow

// orDefault returns the value of a field: its default if zero, none if negative.
func orDefault[T int64 | time.Duration](v, zero, none T) T {
	if v < 0 {
		return none
	}
	return cmp.Or(v, zero)
}

// Close is Shutdown for five seconds at most.
func (c *Cache) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // as long as one Put
	defer cancel()
	return c.Shutdown(ctx)
}

// Shutdown ends all fetches, forgets everything in memory, and makes Get return ErrClosed. It waits for each Load to
// end and for what is being written, and writes the marks that the Store is owed. If the Store then has all of them and
// is an io.Closer, Shutdown closes it. ctx bounds these waits, also that for another Shutdown, but not that Close.
//
// The error says what is left: a Load that still runs, or marks that the Store did not take. Call Shutdown again then.
// If it returns nil, no call of a Load or of the Store is under way. If several Caches share a Store, only the last one
// may close it: hide its Close from the others, as in struct{ cache.Store; cache.Locker }{store, store}.
func (c *Cache) Shutdown(ctx context.Context) error {
	c.once.Do(c.init)
	select {
	case c.closing <- struct{}{}:
	default: // even if ctx has ended, there is no wait where no other Shutdown runs
		select {
		case c.closing <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-c.closing }()
	c.mu.Lock()
	c.end()
	c.memory.recent.Purge()
	c.memory.limit = 0
	c.mu.Unlock()
	waitErr := c.running.wait(ctx)
	if c.backing == nil {
		return waitErr
	}
	payErr := c.backing.Pay(ctx)
	if waitErr != nil || payErr != nil {
		return errors.Join(payErr, waitErr)
	}
	return c.backing.Close()
}

// tasks counts goroutines, to wait for all of them within a context. After Close, only a task begins another one.
type tasks struct {
	mu   sync.Mutex // guards what follows
	n    int
	none chan struct{} // closed when n is zero again
}

func (t *tasks) Go(f func()) {
	t.begin()
	go func() {
		defer t.end()
		f()
	}()
}

func (t *tasks) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if t.n == 1 {
		t.none = make(chan struct{})
	}
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 {
		close(t.none)
	}
}

// wait waits for all of them, no longer than ctx.
func (t *tasks) wait(ctx context.Context) error {
	t.mu.Lock()
	n, none := t.n, t.none
	t.mu.Unlock()
	if n == 0 {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cache: %d files are still being read or written: %w", n, ctx.Err())
	}
}

// Stats is a snapshot of the counters of a Cache.
type Stats struct {
	Origins     int    // in memory; one for each reader and dialect
	Bytes       int64  // that they take there, as counted against MaxBytes
	StoreErrors uint64 // calls of the Store that failed or took too long, and damaged values
}

// Stats returns a snapshot of the counters of c.
func (c *Cache) Stats() (s Stats) {
	c.once.Do(c.init)
	if c.backing != nil {
		s.StoreErrors = c.backing.Errors.Load()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Origins, s.Bytes = c.memory.recent.Len(), c.memory.bytes
	return s
}
