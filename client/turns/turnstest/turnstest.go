// Package turnstest tests implementations of turns.Store, with which several processes keep one
// pace at each origin. It does for them what testing/fstest does for file systems.
package turnstest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// TestStore tests what turns.Store promises. It calls open for each of its tests, for the Stores of two
// processes of one fleet that have not asked for any turns yet; open may register a cleanup. Then the tests run
// side by side, each at sites of its own, for some seconds. A busy machine may be late: what fails is tried
// again, twice, with longer times. Run them with -race.
func TestStore(t *testing.T, open func(t *testing.T) (a, b turns.Store)) {
	all := claims()
	said := make([][]string, len(all)) // what was wrong, by try
	for try := range 3 {
		var tests sync.WaitGroup
		start := make(chan struct{})
		for i, c := range all {
			if len(said[i]) < try {
				continue
			}
			a, b := open(t)
			tests.Go(func() {
				<-start
				if wrong := c.try(try, try*len(all)+i, a, b); wrong != "" {
					said[i] = append(said[i], wrong)
				}
			})
		}
		close(start)
		tests.Wait()
	}
	for i, c := range all {
		t.Run(c.name, func(t *testing.T) {
			for try, wrong := range said[i] {
				t.Log(wrong)
				if try == 2 {
					t.Fail()
				}
			}
		})
	}
}

// try returns what is wrong with the Stores a and b, at the n-th site.
func (c claim) try(try, n int, a, b turns.Store) (wrong string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second<<try)
	defer cancel()
	fail := func(format string, args ...any) {
		wrong = fmt.Sprintf(format, args...)
		runtime.Goexit()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.test(fleet{fail, ctx, n, fmt.Sprintf("https://a%d.example", n), a, b, timesOf(try)})
	}()
	<-done
	return wrong
}

// fleet is two processes.
type fleet struct {
	fatalf func(format string, args ...any) // ends the test
	ctx    context.Context
	n      int // of the site
	site   string
	a, b   turns.Store
	times
}

type claim struct {
	name string
	test func(fleet)
}

func claims() []claim {
	return []claim{
		{"the delay runs from start to start", fleet.startToStart},
		{"the delay runs from end to start", fleet.endToStart},
		{"places are bounded, and those who wait hear of one", fleet.places},
		{"a place that is not renewed lapses", fleet.lapse},
		{"the delay runs from the end of a lease", fleet.lapsed},
		{"a place that is renewed lasts", fleet.renewed},
		{"asking again takes no second place", fleet.again},
		{"a question that comes late takes no place away", fleet.late},
		{"a turn whose answer was lost waits for the robots.txt that came between", fleet.between},
		{"the state lasts for the longest delay", fleet.longest},
		{"robots.txt is remembered for the delay that it asks for", fleet.keep},
		{"robots.txt ends again with the delay that was learned", fleet.learned},
		{"a turn can be given back", fleet.dropped},
		{"those who wait go in order", fleet.order},
		{"who does not come back does not hold the others up for long", fleet.absent},
		{"a visit keeps its turn for the visitor", fleet.visitor},
		{"robots.txt goes before a visitor, and a visitor before all others", fleet.rank},
		{"robots.txt waits for no place and takes one", fleet.robots},
		{"a pause holds for all", fleet.pause},
		{"pauses grow, and are halved by good answers", fleet.strain},
		{"origins are apart", fleet.apart},
		{"of many who ask at once, one gets the turn", fleet.crowd},
		{"calls end with their context", fleet.end},
	}
}

// times are those of a claim. They double with each try, so that a busy machine's lateness is less beside them.
type times struct{ delay, lease, slack time.Duration }

func timesOf(try int) times {
	return times{300 * time.Millisecond << try, 1200 * time.Millisecond << try, 250 * time.Millisecond << try}
}

func (f fleet) page(turn string) turns.Ask { return f.kind(turns.Page, turn) }

func (f fleet) kind(k turns.Kind, turn string) turns.Ask {
	return turns.Ask{Turn: turn, Kind: k, Delay: f.delay, Places: 1, Lease: f.lease}
}

// take asks, and fails unless that gives what is wanted.
func (f fleet) take(s turns.Store, a turns.Ask, want bool) turns.Reply {
	got, err := s.Take(f.ctx, f.site, a)
	if err != nil || got.Taken != want {
		f.fatalf("Take of %q at %s: given: %v, want %v; %+v, %v", a.Turn, f.site, got.Taken, want, got, err)
	}
	return got
}

// waits is take of a turn that comes after wait, and no sooner than that after begin.
func (f fleet) waits(s turns.Store, a turns.Ask, wait time.Duration, begin time.Time) {
	got := f.take(s, a, false)
	if got.Wait > wait || got.Wait < wait-f.slack {
		f.fatalf("Take of %q: told to ask again in %v, want %v", a.Turn, got.Wait, wait)
	}
	if got.Least > got.Wait {
		f.fatalf("Take of %q: told to ask again in %v, and that it cannot come before %v", a.Turn, got.Wait, got.Least)
	}
	time.Sleep(got.Wait)
	f.take(s, a, true)
	if took := time.Since(begin); took < wait {
		f.fatalf("Take of %q: given after %v, want %v at least", a.Turn, took, wait)
	}
}

func (f fleet) tell(s turns.Store, e turns.Event, a turns.Ask, pause time.Duration) {
	if err := s.Tell(f.ctx, f.site, turns.Report{Ask: a, Event: e, Pause: pause}); err != nil {
		f.fatalf("Tell of %q: %v", a.Turn, err)
	}
}

func (f fleet) startToStart() {
	begin, first := time.Now(), f.kind(turns.Visit, "first")
	f.take(f.a, first, true)
	f.waits(f.b, f.kind(turns.Visit, "second"), f.delay, begin)
}

func (f fleet) endToStart() {
	f.take(f.a, f.page("first"), true)
	time.Sleep(2 * f.delay)
	begin := time.Now()
	f.tell(f.a, turns.Ended, f.page("first"), 0)
	f.waits(f.b, f.page("second"), f.delay, begin)
}

func (f fleet) places() {
	two := func(turn string) turns.Ask {
		a := f.page(turn)
		a.Delay, a.Places, a.Lease = 0, 2, time.Hour
		return a
	}
	for _, turn := range []string{"first", "second"} {
		f.take(f.a, two(turn), true)
	}
	got := f.take(f.b, two("third"), false)
	f.tell(f.a, turns.Ended, two("first"), 0)
	select {
	case <-got.Wake:
	case <-time.After(got.Wait):
	case <-time.After(10 * time.Second):
		f.fatalf("a place was given back, and who waited for it was not told")
	}
	f.take(f.b, two("third"), true)
}

func (f fleet) lapse() {
	begin := time.Now()
	f.take(f.a, f.page("first"), true)
	f.waits(f.b, f.page("second"), f.lease+f.delay, begin)
}

// lapsed asks for the first time when the lease has ended, and the delay has not: the request may
// have gone on until then. At another origin others have asked meanwhile.
func (f fleet) lapsed() {
	long := f.page("first")
	long.Delay = f.lease
	f.take(f.a, long, true)
	time.Sleep(f.lease + f.lease/4)
	long.Turn = "second"
	if got := f.take(f.b, long, false); got.Wait < f.lease/4 {
		f.fatalf("a delay after a lease that lapsed: told to ask again in %v", got.Wait)
	}
}

func (f fleet) renewed() {
	f.take(f.a, f.page("first"), true)
	for range 8 {
		time.Sleep(f.lease / 4)
		f.tell(f.a, turns.Renewed, f.page("first"), 0)
		f.take(f.b, f.page("second"), false)
	}
}

func (f fleet) again() {
	long := f.page("first")
	long.Lease = time.Hour
	f.take(f.a, long, true)
	time.Sleep(f.delay / 2)
	for got, err := f.a.Take(f.ctx, f.site, long); !got.Taken; got, err = f.a.Take(f.ctx, f.site, long) {
		if err != nil || got.Wait > f.delay {
			f.fatalf("Take of a turn whose answer was lost: %+v, %v", got, err)
		}
		time.Sleep(got.Wait)
	}
	f.take(f.b, f.page("second"), false)
	begin := time.Now()
	f.tell(f.a, turns.Ended, long, 0)
	f.waits(f.b, f.page("second"), f.delay, begin)
}

// late asks for a place that is in use, after robots.txt has been read beside it.
func (f fleet) late() {
	begin := time.Now()
	f.take(f.a, f.page("first"), true)
	f.waits(f.b, f.kind(turns.Robots, "robots"), f.delay, begin)
	f.tell(f.b, turns.Ended, f.kind(turns.Robots, "robots"), 0)
	f.take(f.a, f.page("first"), false)
	time.Sleep(f.delay + f.slack + f.delay/2) // until the question is forgotten
	f.take(f.b, f.page("second"), false)
}

// between asks again for a place, after robots.txt has begun to be read beside it.
func (f fleet) between() {
	begin := time.Now()
	f.take(f.a, f.page("first"), true)
	f.waits(f.b, f.kind(turns.Robots, "robots"), f.delay, begin)
	time.Sleep(f.delay + f.slack/2)
	f.take(f.a, f.page("first"), false)
	begin = time.Now()
	f.tell(f.b, turns.Ended, f.kind(turns.Robots, "robots"), 0)
	f.waits(f.a, f.page("first"), f.delay, begin)
}

// longest has two processes that keep different delays.
func (f fleet) longest() {
	short := f.kind(turns.Visit, "short")
	short.Delay = f.delay / 10
	f.take(f.a, f.kind(turns.Visit, "first"), true)
	time.Sleep(f.delay / 2)
	f.take(f.b, short, true)
	time.Sleep(f.delay / 3) // the short delay has passed
	f.take(f.a, f.kind(turns.Visit, "second"), false)
}

func (f fleet) dropped() {
	begin := time.Now()
	f.take(f.a, f.page("first"), true)
	waits := f.take(f.a, f.page("second"), false)
	f.tell(f.a, turns.Dropped, f.page("second"), 0)
	f.tell(f.a, turns.Dropped, f.page("first"), 0)
	if waits.Wait < 0 {
		f.fatalf("told to ask again in %v", waits.Wait)
	}
	f.waits(f.b, f.page("third"), f.delay, begin)
}

func (f fleet) order() {
	f.take(f.a, f.kind(turns.Visit, "first"), true)
	second := f.take(f.b, f.kind(turns.Visit, "second"), false)
	third := f.take(f.a, f.kind(turns.Visit, "third"), false)
	if third.Wait < second.Wait+f.delay/2 {
		f.fatalf("the second is told to ask in %v, the third in %v", second.Wait, third.Wait)
	}
	time.Sleep(second.Wait)
	f.take(f.a, f.kind(turns.Visit, "third"), false) // before the second
	f.take(f.b, f.kind(turns.Visit, "second"), true)
}

func (f fleet) absent() {
	f.take(f.a, f.kind(turns.Visit, "first"), true)
	f.take(f.b, f.kind(turns.Visit, "second"), false) // and is never seen again
	for begin := time.Now(); ; {
		got, err := f.a.Take(f.ctx, f.site, f.kind(turns.Visit, "third"))
		if err == nil && got.Taken {
			return
		}
		if err != nil || time.Since(begin) > 10*time.Second {
			f.fatalf("who has not come back still holds the others up after %v: %v", time.Since(begin), err)
		}
		time.Sleep(min(got.Wait, time.Second))
	}
}

func (f fleet) visitor() {
	f.take(f.a, f.kind(turns.Visit, "visit"), true)
	f.take(f.b, f.page("other"), false)
	f.take(f.a, f.kind(turns.Visitor, "visitor"), true)
}

// rank has a reader of robots.txt wait, who keeps the delay to a visit, and then the visitor come, who does not.
func (f fleet) rank() {
	visitor, robots, next := f.kind(turns.Visitor, "visitor"), f.kind(turns.Robots, "robots"), f.kind(turns.Robots, "next")
	f.take(f.a, f.kind(turns.Visit, "visit"), true)
	f.take(f.b, f.page("other"), false)
	got := f.take(f.b, robots, false)
	f.take(f.a, visitor, false)
	f.take(f.a, next, false)
	time.Sleep(got.Wait)
	f.take(f.a, next, false)
	f.take(f.a, visitor, false)
	f.take(f.b, robots, true)
	begin := time.Now()
	f.tell(f.b, turns.Ended, robots, 0)
	f.tell(f.a, turns.Dropped, next, 0)
	f.take(f.b, f.page("other"), false)
	f.waits(f.a, visitor, f.delay, begin)
}

func (f fleet) robots() {
	begin := time.Now()
	f.take(f.a, f.page("page"), true)
	f.waits(f.b, f.kind(turns.Robots, "robots"), f.delay, begin)
	f.tell(f.a, turns.Dropped, f.page("page"), 0)
	got := f.take(f.a, f.page("next"), false)
	if got.Wait <= f.delay {
		f.fatalf("told to ask in %v, while robots.txt is being read", got.Wait)
	}
}

func (f fleet) pause() {
	f.take(f.a, f.page("first"), true)
	pause := 3 * f.delay
	begin := time.Now()
	for _, asked := range []time.Duration{pause, f.delay} { // a shorter one takes nothing from a longer
		f.tell(f.a, turns.Failed, f.page("first"), asked)
	}
	f.tell(f.a, turns.Ended, f.page("first"), 0)
	got := f.take(f.b, f.page("second"), false)
	if got.Pause > pause || got.Pause < pause-f.slack {
		f.fatalf("a pause of %v, want %v", got.Pause, pause)
	}
	f.waits(f.b, f.page("second"), got.Wait, begin)
	if took := time.Since(begin); took < pause {
		f.fatalf("a turn after %v, and a pause of %v", took, pause)
	}
}

func (f fleet) strain() {
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		f.tell(f.a, turns.Failed, f.page("first"), 0)
		got := f.take(f.b, f.page("second"), false)
		if got.Strain != i+1 || got.Pause < want*4/5-f.slack || got.Pause > want*6/5 {
			f.fatalf("after %d failures: strain %d and a pause of %v, want %v give or take a fifth",
				i+1, got.Strain, got.Pause, want)
		}
	}
	f.remembers()
	for want := 2; want >= 0; want-- {
		f.tell(f.a, turns.Answered, f.page("first"), 0)
		got := f.take(f.b, f.page("second"), false)
		if got.Strain != want {
			f.fatalf("strain %d after a good answer, want %d", got.Strain, want)
		}
	}
}

// remembers waits for the end of a pause: the next failure then counts more than the first.
func (f fleet) remembers() {
	f.site = "https://other.example"
	f.tell(f.a, turns.Failed, f.page("first"), 0)
	got := f.take(f.b, f.page("second"), false)
	f.tell(f.b, turns.Dropped, f.page("second"), 0)
	time.Sleep(got.Pause + f.delay)
	if got = f.take(f.b, f.page("third"), true); got.Strain != 1 {
		f.fatalf("strain %d when the pause is over, want 1", got.Strain)
	}
}

// keep reads robots.txt without knowing what it asks for: the state lasts until those who know come.
func (f fleet) keep() {
	first := f.kind(turns.Robots, "robots")
	first.Delay, first.Keep = 0, time.Hour
	begin := time.Now()
	f.take(f.a, first, true)
	f.tell(f.a, turns.Ended, first, 0)
	time.Sleep(f.delay)
	long := f.page("page")
	long.Delay = 4 * f.delay
	f.take(f.b, long, false) // robots.txt has just been read
	f.tell(f.b, turns.Dropped, long, 0)
	first.Turn = "again" // by a process that does not know the delay either
	got := f.take(f.a, first, false)
	time.Sleep(got.Wait)
	f.take(f.a, first, true)
	if took := time.Since(begin); took < 4*f.delay {
		f.fatalf("robots.txt read again after %v, and its delay is %v", took, 4*f.delay)
	}
}

// learned reads robots.txt twice: who reads it again knows no delay, but it was told when the first had been read.
func (f fleet) learned() {
	first := f.kind(turns.Robots, "robots")
	first.Delay = 0
	f.take(f.a, first, true)
	begin := time.Now()
	f.tell(f.a, turns.Ended, first, 0)
	first.Delay = 2 * f.delay
	f.tell(f.a, turns.Ended, first, 0)
	again := f.kind(turns.Robots, "again")
	again.Delay = 0
	got := f.take(f.b, again, false)
	time.Sleep(got.Wait)
	f.take(f.b, again, true)
	if took := time.Since(begin); took < 2*f.delay {
		f.fatalf("robots.txt read again after %v, and its delay is %v", took, 2*f.delay)
	}
}

func (f fleet) apart() {
	for i, origin := range []string{
		"https://a%d.example", "http://a%d.example", "https://a%d.example:8443", "https://b%d.example",
		"https://[2001:db8::%d]:8443", "https://[fe80::%d%%25eth0]",
	} {
		f.site = fmt.Sprintf(origin, f.n)
		f.take(f.a, f.page(fmt.Sprint("turn", i)), true)
	}
}

func (f fleet) crowd() {
	var given, failed atomic.Int64
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			s, a := f.a, f.page(fmt.Sprint("turn", i))
			if i%2 == 1 {
				s = f.b
			}
			switch got, err := s.Take(f.ctx, f.site, a); {
			case err != nil:
				failed.Add(1)
			case got.Taken:
				given.Add(1)
			}
		})
	}
	calls.Wait()
	if given.Load() != 1 || failed.Load() != 0 {
		f.fatalf("%d turns given and %d errors, want 1 turn", given.Load(), failed.Load())
	}
}

func (f fleet) end() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = f.a.Take(ended, f.site, f.page("first"))
		_ = f.a.Tell(ended, f.site, turns.Report{Ask: f.page("first")})
	}()
	select {
	case <-returned:
	case <-time.After(5 * time.Second):
		f.fatalf("a call goes on for seconds after its context has ended")
	}
}
