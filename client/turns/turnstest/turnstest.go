// Package turnstest tests implementations of turns.Store, with which several processes keep one pace at each origin. It
// does for them what testing/fstest does for file systems.
package turnstest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// Test tests what turns.Store promises, but for what it may forget. It calls open for each of its tests, for the Stores
// of two processes of one fleet; open may register a cleanup. The tests run side by side, each with its own keys, and
// take two seconds. A busy machine changes no result. Run them with -race.
func Test(t *testing.T, open func(t *testing.T) (a, b turns.Store)) {
	for i, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := c.holds(ctx, fmt.Sprintf("https://www%d.example", i), a, b); err != nil {
				t.Error(err)
			}
		})
	}
}

// claim is something that a Store promises: with its steps, or with a function.
type claim struct {
	name  string
	steps []step
	test  func(ctx context.Context, key string, a, b turns.Store) error
}

// step is a call, and what it must say. Times lie in the steps' order, seconds or more apart, so it is known what a
// right Store says however long the calls take.
type step struct {
	by     int // process 0 or 1
	call   kind
	d      time.Duration // delay, pause, or how long to sleep
	late   time.Duration // of a reservation
	within time.Duration
	refuse bool          // nothing is reserved
	want   time.Duration // the start, or the end of the pause
	from   int           // after that of this step, counted from 1; zero: after the call itself
	key    string        // goes behind the claim's key
}

type kind int

const (
	reserve kind = iota
	pause
	sleep
)

const (
	ms, s, day = time.Millisecond, time.Second, 24 * time.Hour

	// rounding is what a Store, and two clocks, may add.
	rounding = 5 * ms
)

var claims = []claim{
	{name: "a key that is new is free", steps: []step{{d: 10 * s}, {by: 1, d: 10 * s, key: "/other"}, {call: pause, key: "/third"}}},
	{name: "starts of all processes are a delay apart", steps: []step{
		{d: 10 * s, within: day}, {by: 1, d: 10 * s, within: day, want: 10 * s, from: 1}, {d: 10 * s, within: day, want: 20 * s, from: 1}}},
	{name: "a delay that has grown holds from the latest start on", steps: []step{
		{d: s, within: day}, {by: 1, d: 10 * s, within: day, want: 10 * s, from: 1}, {d: s, within: day, want: 20 * s, from: 1}}},
	{name: "a delay that has shrunk holds after the longer one", steps: []step{
		{d: 10 * s, within: day}, {by: 1, d: s, within: day, want: 10 * s, from: 1}, {d: s, within: day, want: 11 * s, from: 1}}},
	{name: "what is free too late is not reserved", steps: []step{
		{d: 10 * s, within: day}, {by: 1, d: 60 * s, within: 5 * s, refuse: true, want: 60 * s, from: 1},
		{d: 10 * s, within: 5 * s, refuse: true, want: 10 * s, from: 1}, {by: 1, d: 10 * s, within: 11 * s, want: 10 * s, from: 1}}},
	{name: "within zero takes what is free", steps: []step{{d: 10 * s}, {by: 1, d: 10 * s, refuse: true, want: 10 * s, from: 1}}},
	{name: "what is negative is zero", steps: []step{{d: -10 * s, late: -s, within: -s}, {by: 1, d: -10 * s, within: -s}, {call: pause, d: -s}}},
	{name: "the delay runs from when a start may be made at the latest", steps: []step{
		{d: s, late: 5 * s}, {by: 1, d: 10 * s, late: 2 * s, within: day, want: 15 * s, from: 1}, {d: s, within: day, want: 27 * s, from: 1}}},
	{name: "a start that may be made late is not late itself", steps: []step{{d: 10 * s, late: 5 * s}, {by: 1, d: 10 * s, late: 9 * s, within: 16 * s, want: 15 * s, from: 1}}},
	{name: "without a delay all start at once", steps: []step{{}, {by: 1}, {}}},
	{name: "a day is no limit", steps: []step{
		{d: day, within: 3 * day}, {by: 1, d: day, within: 3 * day, want: day, from: 1}, {d: day, within: 3 * day, want: 2 * day, from: 1}}},
	{name: "time that passed unused is gone", steps: []step{
		{d: 50 * ms}, {call: sleep, d: 400 * ms}, {by: 1, d: 50 * ms}, {d: 50 * ms, within: day, want: 50 * ms, from: 3}}},
	{name: "the latest start is remembered beyond its delay", steps: []step{
		{d: 50 * ms}, {call: sleep, d: 400 * ms}, {by: 1, d: 10 * s, within: day, want: 10 * s, from: 1}}},
	{name: "a delay is kept as long as it lasts", steps: []step{
		{d: 2500 * ms}, {call: sleep, d: 1500 * ms}, {by: 1, d: 2500 * ms, within: day, want: 2500 * ms, from: 1}}},
	{name: "a pause holds for all", steps: []step{
		{call: pause, d: 10 * s, want: 10 * s}, {by: 1, call: pause, from: 1},
		{by: 1, d: s, within: day, from: 1}, {d: s, within: day, want: s, from: 1}}},
	{name: "a pause that begins later holds from then on", steps: []step{
		{d: s}, {call: pause, d: 10 * s, want: 10 * s}, {by: 1, d: s, within: 5 * s, refuse: true, from: 2}, {d: s, within: day, from: 2}}},
	{name: "a pause shortens no other", steps: []step{
		{call: pause, d: 20 * s, want: 20 * s}, {by: 1, call: pause, d: 10 * s, from: 1}, {d: s, within: day, from: 1}}},
	{name: "a longer pause goes on", steps: []step{
		{call: pause, d: 10 * s, want: 10 * s}, {by: 1, call: pause, d: 20 * s, want: 20 * s}, {call: pause, from: 2}, {d: s, within: day, from: 2}}},
	{name: "a pause moves no start that was reserved", steps: []step{
		{d: 10 * s, within: day}, {d: 10 * s, within: day, want: 10 * s, from: 1}, {call: pause, d: 5 * s, want: 5 * s}, {by: 1, d: 10 * s, within: day, want: 20 * s, from: 1}}},
	{name: "a pause is kept as long as it lasts, and ends", steps: []step{
		{call: pause, d: 2500 * ms, want: 2500 * ms}, {call: sleep, d: 1500 * ms}, {by: 1, call: pause, from: 1},
		{call: pause, d: 50 * ms, want: 50 * ms, key: "/2"}, {call: sleep, d: 400 * ms}, {by: 1, call: pause, key: "/2"}, {d: s, key: "/2"}}},
	{name: "keys of any bytes are apart", test: keysApart},
	{name: "of many who ask at once, each gets a start of its own", test: manyAtOnce},
	{name: "calls end with their context", test: callsEnd},
}

// holds returns what is wrong with the Stores a and b.
func (c claim) holds(ctx context.Context, key string, a, b turns.Store) error {
	if c.test != nil {
		return c.test(ctx, key, a, b)
	}
	told := make([]span, len(c.steps)+1)
	for i, st := range c.steps {
		if st.call == sleep {
			time.Sleep(st.d)
			continue
		}
		got, wait, ok, err := st.ask(ctx, key+st.key, [...]turns.Store{a, b}[st.by])
		told[i+1] = got
		at := fmt.Sprintf("step %d, %+v", i+1, st)
		switch low, high := got.after(told[st.from]); {
		case err != nil:
			return fmt.Errorf("%s: %w", at, err)
		case ok == st.refuse:
			return fmt.Errorf("%s: reserved %t, with %v to wait", at, ok, wait)
		case st.from == 0 && (wait > st.want || wait < st.want-rounding):
			return fmt.Errorf("%s: %v to wait", at, wait)
		case st.from > 0 && (low > st.want+rounding && wait > 0 || high < st.want-rounding): // what is over is now
			return fmt.Errorf("%s: %v to wait, which is %v to %v after that of step %d", at, wait, low, high, st.from)
		}
	}
	return nil
}

// span is when a moment of the Store's clock is at the earliest and at the latest.
type span struct{ early, late time.Time }

// after is how long after b the moment is, at the least and at the most.
func (a span) after(b span) (low, high time.Duration) {
	return a.early.Sub(b.late), a.late.Sub(b.early)
}

func (st step) ask(ctx context.Context, key string, store turns.Store) (at span, wait time.Duration, ok bool, err error) {
	asked := time.Now()
	if st.call == pause {
		wait, err = store.Pause(ctx, key, st.d)
		ok = true
	} else {
		wait, ok, err = store.Reserve(ctx, key, st.d, st.late, st.within)
	}
	return span{asked.Add(wait), time.Now().Add(wait)}, wait, ok, err
}

func keysApart(ctx context.Context, key string, a, b turns.Store) error {
	for i, more := range []string{"", "/", "{", "}", "{}", "}{", "{a}", " ", "\r\n", "\x00", "\xff", "ä", strings.Repeat("x", 2000), strings.Repeat("x", 2000) + "y"} {
		if wait, ok, err := a.Reserve(ctx, key+more, 10*s, 0, 0); !ok || wait != 0 || err != nil {
			return fmt.Errorf("key %d, %q: %v, %t, %w; want a start at once", i, more, wait, ok, err)
		}
		if _, ok, err := b.Reserve(ctx, key+more, 10*s, 0, 0); ok || err != nil {
			return fmt.Errorf("key %d, %q: a second start: %t, %w", i, more, ok, err)
		}
	}
	return nil
}

func manyAtOnce(ctx context.Context, key string, a, b turns.Store) error {
	const n, delay = 40, 100 * s
	var all sync.WaitGroup
	var mu sync.Mutex
	starts, begin := map[time.Duration]int{}, time.Now()
	var failed error
	for i := range n {
		all.Go(func() {
			wait, ok, err := [...]turns.Store{a, b}[i%2].Reserve(ctx, key, delay, 0, day)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || !ok {
				failed = fmt.Errorf("%t, %w", ok, err)
			}
			starts[(wait+time.Since(begin)/2+delay/4).Truncate(delay)]++
		})
	}
	all.Wait()
	for i := range n {
		if got := starts[time.Duration(i)*delay]; got != 1 && failed == nil {
			failed = fmt.Errorf("%d of %d starts some %v from now, want one", got, n, time.Duration(i)*delay)
		}
	}
	return failed
}

func callsEnd(ctx context.Context, key string, a, _ turns.Store) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	failed := make(chan bool, 1)
	go func() {
		_, _, err := a.Reserve(ended, key, s, 0, 0)
		_, errPause := a.Pause(ended, key, 0)
		failed <- err != nil && errPause != nil
	}()
	select {
	case ok := <-failed:
		if !ok {
			return fmt.Errorf("a context that had ended was no error")
		}
	case <-time.After(5 * s):
		return fmt.Errorf("a call goes on, its context has ended 5 s ago")
	}
	return nil
}
