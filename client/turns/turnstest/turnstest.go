// Package turnstest tests implementations of turns.Store, with which several processes keep one
// pace at each origin. It does for them what testing/fstest does for file systems.
package turnstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
)

// TestStore tests what turns.Store promises. Each test calls open for the Stores of two
// processes of one fleet that have not asked for any turns yet; open may register a cleanup. The
// tests take some seconds. Run them with -race.
func TestStore(t *testing.T, open func(t *testing.T) (a, b turns.Store)) {
	for _, c := range claims() {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := c.test(fleet{ctx, a, b}); err != nil {
				t.Error(err)
			}
		})
	}
}

// fleet is two processes.
type fleet struct {
	ctx  context.Context
	a, b turns.Store
}

type claim struct {
	name string
	test func(fleet) error
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
		{"the state lasts for the longest delay", fleet.longest},
		{"robots.txt is remembered for the delay that it asks for", fleet.keep},
		{"a turn can be given back", fleet.dropped},
		{"those who wait go in order", fleet.order},
		{"who does not come back does not hold the others up for long", fleet.absent},
		{"a visit keeps its turn for the visitor", fleet.visitor},
		{"robots.txt waits for no place and takes one", fleet.robots},
		{"a pause holds for all", fleet.pause},
		{"pauses grow, and are halved by good answers", fleet.strain},
		{"origins are apart", fleet.apart},
		{"of many who ask at once, one gets the turn", fleet.crowd},
		{"calls end with their context", fleet.end},
	}
}

const (
	delay = 300 * time.Millisecond
	lease = 1200 * time.Millisecond
	slack = 250 * time.Millisecond // for a busy machine
)

const site = "https://a.example"

func page(turn string) turns.Ask { return turns.Ask{Turn: turn, Delay: delay, Places: 1, Lease: lease} }

func kind(k turns.Kind, turn string) turns.Ask {
	a := page(turn)
	a.Kind = k
	return a
}

// take asks, and returns an error unless that gives what is wanted.
func (f fleet) take(s turns.Store, a turns.Ask, want bool) (turns.Answer, error) {
	got, err := s.Take(f.ctx, site, a)
	switch {
	case err != nil:
		return got, fmt.Errorf("store: Take of %q: %w", a.Turn, err)
	case got.Taken != want:
		return got, fmt.Errorf("store: Take of %q: given: %v, want %v; %+v", a.Turn, got.Taken, want, got)
	}
	return got, nil
}

// waits is take of a turn that comes after wait, and no sooner than that after begin.
func (f fleet) waits(s turns.Store, a turns.Ask, wait time.Duration, begin time.Time) error {
	got, err := f.take(s, a, false)
	if err != nil {
		return err
	}
	if got.Wait > wait || got.Wait < wait-slack {
		return fmt.Errorf("store: Take of %q: told to ask again in %v, want %v", a.Turn, got.Wait, wait)
	}
	if got.Least > got.Wait {
		return fmt.Errorf("store: Take of %q: told to ask again in %v, and that it cannot come before %v", a.Turn, got.Wait, got.Least)
	}
	time.Sleep(got.Wait)
	if _, err = f.take(s, a, true); err != nil {
		return err
	}
	if took := time.Since(begin); took < wait {
		return fmt.Errorf("store: Take of %q: given after %v, want %v at least", a.Turn, took, wait)
	}
	return nil
}

func (f fleet) tell(s turns.Store, e turns.Event, a turns.Ask, pause time.Duration) error {
	if err := s.Tell(f.ctx, site, turns.News{Ask: a, Event: e, Pause: pause}); err != nil {
		return fmt.Errorf("store: Tell of %q: %w", a.Turn, err)
	}
	return nil
}

func (f fleet) startToStart() error {
	begin, first := time.Now(), kind(turns.Visit, "first")
	if _, err := f.take(f.a, first, true); err != nil {
		return err
	}
	return f.waits(f.b, kind(turns.Visit, "second"), delay, begin)
}

func (f fleet) endToStart() error {
	if _, err := f.take(f.a, page("first"), true); err != nil {
		return err
	}
	time.Sleep(2 * delay)
	begin := time.Now()
	if err := f.tell(f.a, turns.Ended, page("first"), 0); err != nil {
		return err
	}
	return f.waits(f.b, page("second"), delay, begin)
}

func (f fleet) places() error {
	two := func(turn string) turns.Ask {
		a := page(turn)
		a.Delay, a.Places, a.Lease = 0, 2, time.Hour
		return a
	}
	for _, turn := range []string{"first", "second"} {
		if _, err := f.take(f.a, two(turn), true); err != nil {
			return err
		}
	}
	got, err := f.take(f.b, two("third"), false)
	if err != nil {
		return err
	}
	if err := f.tell(f.a, turns.Ended, two("first"), 0); err != nil {
		return err
	}
	if err := f.awake(got); err != nil {
		return err
	}
	_, err = f.take(f.b, two("third"), true)
	return err
}

// awake waits until it is time to ask again.
func (f fleet) awake(got turns.Answer) error {
	select {
	case <-got.Wake:
	case <-time.After(got.Wait):
	case <-time.After(10 * time.Second):
		return errors.New("store: a place was given back, and who waited for it was not told")
	}
	return nil
}

func (f fleet) lapse() error {
	begin := time.Now()
	if _, err := f.take(f.a, page("first"), true); err != nil {
		return err
	}
	return f.waits(f.b, page("second"), lease+delay, begin)
}

// lapsed asks for the first time when the lease has ended, and the delay has not: the request may
// have gone on until then. At another origin others have asked meanwhile.
func (f fleet) lapsed() error {
	long := page("first")
	long.Delay = lease
	if _, err := f.take(f.a, long, true); err != nil {
		return err
	}
	time.Sleep(lease + lease/4)
	long.Turn = "second"
	got, err := f.take(f.b, long, false)
	if err == nil && got.Wait < lease/4 {
		err = fmt.Errorf("store: a delay after a lease that lapsed: told to ask again in %v", got.Wait)
	}
	return err
}

func (f fleet) renewed() error {
	if _, err := f.take(f.a, page("first"), true); err != nil {
		return err
	}
	for range 8 {
		time.Sleep(lease / 4)
		if err := f.tell(f.a, turns.Renewed, page("first"), 0); err != nil {
			return err
		}
		if _, err := f.take(f.b, page("second"), false); err != nil {
			return err
		}
	}
	return nil
}

func (f fleet) again() error {
	long := page("first")
	long.Lease = time.Hour
	if _, err := f.take(f.a, long, true); err != nil {
		return err
	}
	time.Sleep(delay / 2)
	for got, err := f.a.Take(f.ctx, site, long); !got.Taken; got, err = f.a.Take(f.ctx, site, long) {
		if err != nil || got.Wait > delay {
			return fmt.Errorf("store: Take of a turn whose answer was lost: %+v, %w", got, err)
		}
		time.Sleep(got.Wait)
	}
	if _, err := f.take(f.b, page("second"), false); err != nil {
		return err
	}
	begin := time.Now()
	if err := f.tell(f.a, turns.Ended, long, 0); err != nil {
		return err
	}
	return f.waits(f.b, page("second"), delay, begin)
}

// late asks for a place that is in use, after robots.txt has been read beside it.
func (f fleet) late() error {
	begin := time.Now()
	if _, err := f.take(f.a, page("first"), true); err != nil {
		return err
	}
	if err := f.waits(f.b, kind(turns.Robots, "robots"), delay, begin); err != nil {
		return err
	}
	if err := f.tell(f.b, turns.Ended, kind(turns.Robots, "robots"), 0); err != nil {
		return err
	}
	if _, err := f.take(f.a, page("first"), false); err != nil {
		return err
	}
	time.Sleep(delay + slack + delay/2) // until the question is forgotten
	_, err := f.take(f.b, page("second"), false)
	return err
}

// longest has two processes that keep different delays.
func (f fleet) longest() error {
	short := kind(turns.Visit, "short")
	short.Delay = delay / 10
	if _, err := f.take(f.a, kind(turns.Visit, "first"), true); err != nil {
		return err
	}
	time.Sleep(delay / 2)
	if _, err := f.take(f.b, short, true); err != nil {
		return err
	}
	time.Sleep(delay / 3) // the short delay has passed
	_, err := f.take(f.a, kind(turns.Visit, "second"), false)
	return err
}

func (f fleet) dropped() error {
	begin := time.Now()
	if _, err := f.take(f.a, page("first"), true); err != nil {
		return err
	}
	waits, err := f.take(f.a, page("second"), false)
	if err != nil {
		return err
	}
	if err := f.tell(f.a, turns.Dropped, page("second"), 0); err != nil {
		return err
	}
	if err := f.tell(f.a, turns.Dropped, page("first"), 0); err != nil {
		return err
	}
	if waits.Wait < 0 {
		return fmt.Errorf("store: told to ask again in %v", waits.Wait)
	}
	return f.waits(f.b, page("third"), delay, begin)
}

func (f fleet) order() error {
	if _, err := f.take(f.a, kind(turns.Visit, "first"), true); err != nil {
		return err
	}
	second, err := f.take(f.b, kind(turns.Visit, "second"), false)
	if err != nil {
		return err
	}
	third, err := f.take(f.a, kind(turns.Visit, "third"), false)
	if err != nil {
		return err
	}
	if third.Wait < second.Wait+delay/2 {
		return fmt.Errorf("store: the second is told to ask in %v, the third in %v", second.Wait, third.Wait)
	}
	time.Sleep(second.Wait)
	if _, err := f.take(f.a, kind(turns.Visit, "third"), false); err != nil {
		return fmt.Errorf("before the second: %w", err)
	}
	_, err = f.take(f.b, kind(turns.Visit, "second"), true)
	return err
}

func (f fleet) absent() error {
	if _, err := f.take(f.a, kind(turns.Visit, "first"), true); err != nil {
		return err
	}
	if _, err := f.take(f.b, kind(turns.Visit, "second"), false); err != nil { // and is never seen again
		return err
	}
	for begin := time.Now(); ; {
		got, err := f.a.Take(f.ctx, site, kind(turns.Visit, "third"))
		if err != nil || got.Taken {
			return err
		}
		if time.Since(begin) > 10*time.Second {
			return errors.New("store: who has not come back still holds the others up after ten seconds")
		}
		time.Sleep(min(got.Wait, time.Second))
	}
}

func (f fleet) visitor() error {
	if _, err := f.take(f.a, kind(turns.Visit, "visit"), true); err != nil {
		return err
	}
	if _, err := f.take(f.b, page("other"), false); err != nil {
		return err
	}
	_, err := f.take(f.a, kind(turns.Visitor, "visitor"), true)
	return err
}

func (f fleet) robots() error {
	begin := time.Now()
	if _, err := f.take(f.a, page("page"), true); err != nil {
		return err
	}
	if err := f.waits(f.b, kind(turns.Robots, "robots"), delay, begin); err != nil {
		return err
	}
	if err := f.tell(f.a, turns.Dropped, page("page"), 0); err != nil {
		return err
	}
	got, err := f.take(f.a, page("next"), false)
	if err != nil {
		return err
	}
	if got.Wait <= delay {
		return fmt.Errorf("store: told to ask in %v, while robots.txt is being read", got.Wait)
	}
	return nil
}

func (f fleet) pause() error {
	if _, err := f.take(f.a, page("first"), true); err != nil {
		return err
	}
	const pause = 3 * delay
	begin := time.Now()
	for _, asked := range []time.Duration{pause, delay} { // a shorter one takes nothing from a longer
		if err := f.tell(f.a, turns.Failed, page("first"), asked); err != nil {
			return err
		}
	}
	if err := f.tell(f.a, turns.Ended, page("first"), 0); err != nil {
		return err
	}
	got, err := f.take(f.b, page("second"), false)
	if err != nil {
		return err
	}
	if got.Pause > pause || got.Pause < pause-slack {
		return fmt.Errorf("store: a pause of %v, want %v", got.Pause, pause)
	}
	if err := f.waits(f.b, page("second"), got.Wait, begin); err != nil {
		return err
	}
	if took := time.Since(begin); took < pause {
		return fmt.Errorf("store: a turn after %v, and a pause of %v", took, pause)
	}
	return nil
}

func (f fleet) strain() error {
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		if err := f.tell(f.a, turns.Failed, page("first"), 0); err != nil {
			return err
		}
		got, err := f.take(f.b, page("second"), false)
		if err != nil {
			return err
		}
		if got.Strain != i+1 || got.Pause < want*4/5-slack || got.Pause > want*6/5 {
			return fmt.Errorf("store: after %d failures: strain %d and a pause of %v, want %v give or take a fifth",
				i+1, got.Strain, got.Pause, want)
		}
	}
	if err := f.remembers(); err != nil {
		return err
	}
	for want := 2; want >= 0; want-- {
		if err := f.tell(f.a, turns.Answered, page("first"), 0); err != nil {
			return err
		}
		got, err := f.take(f.b, page("second"), false)
		if err != nil {
			return err
		}
		if got.Strain != want {
			return fmt.Errorf("store: strain %d after a good answer, want %d", got.Strain, want)
		}
	}
	return nil
}

// remembers waits for the end of a pause: the next failure then counts more than the first.
func (f fleet) remembers() error {
	const other = "https://other.example"
	if err := f.a.Tell(f.ctx, other, turns.News{Ask: page("first"), Event: turns.Failed}); err != nil {
		return err
	}
	got, err := f.b.Take(f.ctx, other, page("second"))
	if err != nil {
		return err
	}
	if err := f.b.Tell(f.ctx, other, turns.News{Ask: page("second"), Event: turns.Dropped}); err != nil {
		return err
	}
	time.Sleep(got.Pause + delay)
	if got, err = f.b.Take(f.ctx, other, page("third")); err != nil || got.Strain != 1 {
		return fmt.Errorf("store: strain %d when the pause is over, want 1; %w", got.Strain, err)
	}
	return nil
}

// keep reads robots.txt without knowing what it asks for: the state lasts until those who know come.
func (f fleet) keep() error {
	first := kind(turns.Robots, "robots")
	first.Delay, first.Keep = 0, time.Hour
	begin := time.Now()
	if _, err := f.take(f.a, first, true); err != nil {
		return err
	}
	if err := f.tell(f.a, turns.Ended, first, 0); err != nil {
		return err
	}
	time.Sleep(delay)
	long := page("page")
	long.Delay = 4 * delay
	if _, err := f.take(f.b, long, false); err != nil {
		return fmt.Errorf("after robots.txt has been read: %w", err)
	}
	if err := f.tell(f.b, turns.Dropped, long, 0); err != nil {
		return err
	}
	first.Turn = "again" // by a process that does not know the delay either
	got, err := f.take(f.a, first, false)
	if err != nil {
		return err
	}
	time.Sleep(got.Wait)
	if _, err := f.take(f.a, first, true); err != nil {
		return err
	}
	if took := time.Since(begin); took < 4*delay {
		return fmt.Errorf("store: robots.txt read again after %v, and its delay is %v", took, 4*delay)
	}
	return nil
}

func (f fleet) apart() error {
	for i, origin := range []string{
		"https://a.example", "http://a.example", "https://a.example:8443", "https://b.example",
		"https://[2001:db8::1]:8443", "https://[fe80::1%25eth0]",
	} {
		if got, err := f.a.Take(f.ctx, origin, page(fmt.Sprint("turn", i))); err != nil || !got.Taken {
			return fmt.Errorf("store: Take at %s: %+v, %w", origin, got, err)
		}
	}
	return nil
}

func (f fleet) crowd() error {
	given := make(chan string, 40)
	errs := make(chan error, 40)
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			s, a := f.a, page(fmt.Sprint("turn", i))
			if i%2 == 1 {
				s = f.b
			}
			got, err := s.Take(f.ctx, site, a)
			if err != nil {
				errs <- err
			}
			if got.Taken {
				given <- a.Turn
			}
		})
	}
	calls.Wait()
	close(errs)
	if n := len(given); n != 1 {
		return fmt.Errorf("store: %d turns given, want 1", n)
	}
	return <-errs
}

func (f fleet) end() error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = f.a.Take(ended, site, page("first"))
		_ = f.a.Tell(ended, site, turns.News{Ask: page("first")})
	}()
	select {
	case <-returned:
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("store: a call goes on for seconds after its context has ended")
	}
}
