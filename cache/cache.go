// Package cache keeps the robots.txt result of each origin and decides how long it
// holds (RFC 9309 §2.4, RFC 9111).
//
// A result is fresh for the lifetime that its header states, within bounds. From then on it holds
// only until the next one is fetched. One fetch runs per origin, however many callers wait. It
// belongs to none of them: a caller that gives up fails no other. While an origin is unreachable,
// its last good copy goes on to hold (see [Outage]), and the origin is asked again after 30
// seconds, then less and less often. The same holds after an answer whose status is of the moment
// (see [Cache]).
//
// A hit takes no lock and allocates nothing. Results in use are fetched again behind their
// callers, before they expire: no caller waits for that. Each origin has its own moment for
// it, a little earlier or later, and so they do not expire together.
//
// An answer that varies by User-Agent holds only for callers with that User-Agent. For them it
// takes precedence over an answer for all. Sources of different fetch.Kinds share no answers.
//
// Behind the memory there can be a Store, for a restart that starts warm or for several processes.
// A Store adds at most 2 seconds to a call (with locks, at a time; see Cache.StoreTimeout). Whether it has rules that it
// cannot give is not taken for "none": a status of the moment permits nothing then, and the Store is asked again within
// five seconds. Rules with no-store leave a mark there, without the file. Writes happen in the background, and are not repeated: what could not be
// written is written with its next refresh, and once more at Close. A Store that fails is bypassed until it
// recovers. Package boltstore keeps a file, for one process.
//
// Processes that share a Store with locks, such as that of package redisstore, fetch each
// robots.txt once for all of them. While another process fetches, a miss may wait up to 15
// seconds for its result. A program that can write the Store can write rules.
//
// This package knows no product tokens and matches no rules: what goes in and comes out is a
// fetch.Result, without its file unless the Cache has KeepBody. A Cache is safe for concurrent use.
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
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
)

// Cache keeps results in memory and, if it has a Store, behind it. The zero value is ready
// to use. Fields must not be changed once Get has been called. Make one for the life of the program:
// one that is made for a request has nothing to remember.
//
// Some statuses are of the moment: 408, 421, 425, 428, 429 and 431, and a 5xx where the dialect
// reads it as unavailable. They say nothing about the file, so a good copy stays in use, as in an
// outage. Without a copy, or if Outage is Strict, such a status has its usual effect for its
// Retry-After, at most 24 hours. If it states none, the effect lasts 5 minutes, doubling to an hour.
// It never lasts less than MinTTL, and no Store gets it.
type Cache struct {
	// Size bounds the number of origins in memory. The origin that has not been asked for
	// the longest gives way. If zero, 50,000. If negative, there is none.
	Size int

	// MaxBytes bounds the memory that they take, by an estimate within 20 % of the heap. No origin
	// takes more than 2 MiB (2.5 MiB with KeepBody), or has more than 256 results, all User-Agents
	// and dialects together: the result that has been unused the longest gives way. A result that would
	// not fit by itself is not kept. If zero, 64 MiB. If negative, there is none.
	MaxBytes int64

	// MinTTL is the shortest time a result holds, whatever its header says. Without it, some
	// robots.txt would be fetched for every request. If zero, 1 minute. If negative, there is
	// none.
	MinTTL time.Duration

	// MaxTTL is the longest time a result holds while the origin can be reached, but for a status of the
	// moment. A 401 or 403 holds for an hour at most. If zero, 24 hours, the most that RFC 9309 §2.4
	// recommends. If negative, there is none.
	MaxTTL time.Duration

	// DefaultTTL is the lifetime of a result whose header states none. If zero, 24 hours. If
	// negative, there is none: MinTTL counts.
	DefaultTTL time.Duration

	// MaxStale is how long past its lifetime a copy is kept for an outage. A stale-if-error
	// of the origin (RFC 5861 §4) can lengthen it, to 30 days at most. GoogleLadder has its
	// own rule. If zero, 30 days. If negative, there is none.
	MaxStale time.Duration

	// MinRetry is the time between a failure and the next attempt to fetch. It doubles with each
	// further failure, up to an hour, or to MinRetry if that is longer, ± 20 %. A longer
	// Retry-After is honoured up to 24 hours. If zero, 30 seconds. If negative, there is none.
	MinRetry time.Duration

	// Outage says what holds while an origin is unreachable. If zero, LastGood.
	Outage Outage

	// NoRefresh switches off all fetches that no caller waits for: those after 80 % of the
	// lifetime, those in an origin's stale-while-revalidate window (RFC 5861 §3), and
	// retries in an outage that is bridged by a copy. If false, they go on behind the callers.
	NoRefresh bool

	// KeepBody keeps each file with its rules, for programs that show it or read it in another dialect:
	// a Result has its Body then, after a 304 too, and Content-Type and Retry-After in its Header.
	// MaxBytes counts both. If false, memory has rules alone, which take far less than with their file.
	//
	// A Store gets the file in either case, and these two fields with KeepBody only. A Result may
	// have rules and no Body: if Load gave none, or if a Cache without KeepBody wrote again what the
	// Store had lost. The next fetch then asks for the whole file.
	KeepBody bool

	// Store is a second level behind the memory. If nil, there is none.
	Store Store

	// StoreTimeout bounds what the Store may cost a caller whose origin is not in memory, all calls
	// together. A call that takes longer is a failure of the Store, and robots.txt is fetched. If
	// too many values wait to be written, the caller waits for what is left of this time. Set more
	// if you would rather wait for the Store than ask a site twice. If zero, 2 seconds: a machine that is busy must
	// not make a crawler ask a site twice. If negative, there is none.
	//
	// With a Locker, the time starts again if the Store has answered any caller meanwhile: it is then
	// slow, not dead. It also starts again if this process noticed its end late, by more than an eighth of
	// StoreTimeout: then the process was slow, not the Store. All of that takes 15 seconds at most, or StoreTimeout if
	// that is longer.
	StoreTimeout time.Duration

	// Logger is told when a Store fails and when it works again. Stats counts the failures.
	// If nil, slog.Default.
	Logger *slog.Logger

	once     sync.Once // sets up what follows
	terms    terms
	clock    stopwatch
	patience time.Duration    // StoreTimeout
	backing  *backing.Backing // nil: no Store
	draws    atomic.Uint64
	noSpread bool // for tests that count seconds

	closing chan struct{} // holds one element while Close runs
	flights flights
	memory  memory
}

// ErrClosed is what Get returns after Close.
var ErrClosed = errors.New("cache: Get after Close")

// Get returns the result that holds for the origin o: from memory, from the Store, or from
// src. It waits no longer than ctx. The result is kept for all callers, unless it is a
// proxy's 407. The error is ctx.Err(), ErrClosed, or one of Load that wraps fetch.ErrSign; what
// goes wrong with the origin is a Result with Err set. After a fetch.ErrBusy nothing is kept, and five seconds later Load
// is called again for the callers who still wait.
//
// With LastGood, if the last copy would serve in an outage, Get waits 3 seconds at most for a newer
// one, even if the copy says must-revalidate. Then it returns the copy. The Load goes on,
// and until it is done all callers get the copy at once.
//
// With a ctx that has ended, Get returns what holds at present, and ctx.Err() if there is
// nothing that may be used before it is fetched.
//
// The Result is shared and must not be modified. Unless KeepBody is set, its Body is nil, and its
// Header has only the fields that this package needs (validators, dates, Cache-Control, Vary) or
// that fetch.Result.Wall looks for. Its Err has the text of the original error but
// wraps nothing.
func (c *Cache) Get(ctx context.Context, o fetch.Origin, src *Source) (*fetch.Result, error) {
	c.once.Do(c.init)
	all := c.memory.lookup(o, src)
	e := all
	if e == nil || e.is(apart) {
		e = c.memory.own(o, src, all)
	}
	if e != nil && c.clock.now() < time.Duration(e.until.Load()) {
		c.memory.used(e)
		return e.result.Load(), nil
	}
	now := time.Now()
	if e == nil {
		return c.wait(ctx, src.place(o), all.seen(), now, src)
	}
	return c.look(ctx, e, now, src)
}

// look answers from an entry whose time may be up, and sends for something newer if it is.
func (c *Cache) look(ctx context.Context, e *entry, now time.Time, src *Source) (*fetch.Result, error) {
	s := e.state.Load()
	r, period, due := c.terms.at(s, now)
	if due == awaited {
		if r = c.terms.bridge(s, now); r == nil || !c.flights.isOverdue(e.place(), now) {
			return c.wait(ctx, e.place(), s, now, src)
		}
		c.memory.extend(e, s, r, c.clock.at(now)+min(time.Second, s.kept-s.age(now)))
		return r, nil
	}
	c.memory.extend(e, s, r, c.until(s, now, period, due))
	if due == inBackground {
		c.renew(e, s, now, src)
	}
	return r, nil
}

// until is when to look at an entry again: soon, while a refresh may be under way or an
// outage may enter its next stage.
func (c *Cache) until(s *state, now time.Time, period time.Duration, due refresh) time.Duration {
	if due != notDue || s.failure != nil {
		period = min(period, time.Second)
	}
	return c.clock.at(now) + period
}

func (c *Cache) init() {
	c.clock.start = time.Now()
	c.draws.Store(rand.Uint64())
	c.terms = terms{
		minTTL:     orDefault(c.MinTTL, defaultMinTTL, 0),
		maxTTL:     orDefault(c.MaxTTL, defaultTTL, century),
		defaultTTL: orDefault(c.DefaultTTL, defaultTTL, 0),
		maxStale:   orDefault(c.MaxStale, defaultMaxStale, 0),
		minRetry:   orDefault(c.MinRetry, defaultMinRetry, 0),
		outage:     c.Outage,
		noRefresh:  c.NoRefresh,
		keepBody:   c.KeepBody,
	}
	c.terms.maxRetry = max(c.terms.minRetry, maxRetry)
	c.memory.stored = c.Store != nil
	c.memory.init(orDefault(c.Size, defaultSize, math.MaxInt), orDefault(c.MaxBytes, defaultMaxBytes, math.MaxInt64))
	c.closing = make(chan struct{}, 1)
	c.flights.init()
	c.patience = orDefault(c.StoreTimeout, storeTimeout, flightTimeout)
	if c.Store != nil {
		c.backing = backing.New(c.Store, ErrMiss, c.patience, c.Logger)
	}
}

// century is as good as for ever, and sums with it do not overflow.
const century = 100 * 365 * 24 * time.Hour

// orDefault gives a field its meaning: if zero, its default; if negative, none.
func orDefault[T int | int64 | time.Duration](v, zero, none T) T {
	switch {
	case v == 0:
		return zero
	case v < 0:
		return none
	}
	if d, ok := any(v).(time.Duration); ok {
		return T(min(d, century))
	}
	return v
}

// draw returns a number in [lo, hi). The draws follow a Weyl sequence (multiples of the
// golden ratio modulo 1, from a random start): unlike random numbers, any run of them
// is spread evenly, so a thousand origins met at one moment cannot crowd by bad luck.
func (c *Cache) draw(lo, hi float64) float64 {
	if c.noSpread {
		return 1
	}
	const golden = 0x9E3779B97F4A7C15 // 2^64 / φ
	return lo + (hi-lo)*float64(c.draws.Add(golden)>>11)/(1<<53)
}

// Until returns the time until which the result in memory for o and src holds. An origin that
// has failed is asked again then, unless a copy still holds for longer. The time is not in
// the past: a result whose time is over holds no longer than now. If memory has no result,
// Until returns the zero Time.
func (c *Cache) Until(o fetch.Origin, src *Source) time.Time {
	c.once.Do(c.init)
	e := c.memory.own(o, src, c.memory.lookup(o, src))
	if e == nil {
		return time.Time{}
	}
	now := time.Now()
	if left := time.Duration(e.ends.Load()) - c.clock.at(now); left > 0 {
		return now.Add(left) // nearly always: the state is mostly in no cache of the processor, see entry
	}
	return c.terms.until(e.state.Load(), now)
}

// Close is Shutdown for five seconds at most, with its error. Without a Store it waits for nothing, and
// returns nil.
func (c *Cache) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if c.Store != nil {
		return c.Shutdown(ctx)
	}
	cancel()
	_ = c.Shutdown(ctx) // a Load that still runs is kept nowhere
	return nil
}

// closeTimeout is what a Store has to take what it has not yet got: as long as one Put.
const closeTimeout = 5 * time.Second

// Shutdown ends all fetches, forgets everything in memory, and makes Get return ErrClosed. It
// tries once to write each value that the Store has not yet got. If the Store then has all
// of them and is an io.Closer, Shutdown closes it. It also waits for each Load to end. It
// waits no longer than ctx.
//
// The error says what is left: a Load that still runs, whose answer will not be kept; values
// that the Store did not take; a Store that is not closed yet. Shutdown may then be called
// again, and goes on with what is left. What is left after the last call is lost. If Shutdown
// returns nil, no call of a Load or of the Store is under way.
//
// A Cache without a Store need not be closed. If several Caches share a Store, only the last
// of them may close it: hide its Close method from the others, as in
// struct{ cache.Store; cache.Locker }{store, store}.
func (c *Cache) Shutdown(ctx context.Context) error {
	c.once.Do(c.init)
	select {
	case c.closing <- struct{}{}:
	default:
		select {
		case c.closing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("cache: another Shutdown is under way: %w", ctx.Err())
		}
	}
	defer func() { <-c.closing }()
	c.flights.end()
	c.memory.clear()
	left := c.flights.wait(ctx, func() int { return len(c.flights.running) }) // what they bring is to be written, too
	var lost error
	switch {
	case c.backing == nil:
	case left != nil: // they may still use the Store
		lost = c.backing.Flush(ctx)
	default:
		lost = c.backing.Close(ctx)
	}
	return errors.Join(lost, cmp.Or(left, c.flights.wait(ctx, func() int { return c.flights.loads })))
}

// Stats is a snapshot of the counters of a Cache.
type Stats struct {
	Origins     int    // in memory
	Bytes       int64  // that they take there, as counted against MaxBytes
	StoreErrors uint64 // calls of the Store that failed or took too long
	StoreDrops  uint64 // values given up, because too many waited to be written: 1,024, or 32 MiB
}

// Stats returns a snapshot.
func (c *Cache) Stats() Stats {
	c.once.Do(c.init)
	var s Stats
	if c.backing != nil {
		s.StoreErrors, s.StoreDrops = c.backing.Failures(), c.backing.Drops()
	}
	s.Origins, s.Bytes = c.memory.size()
	return s
}
