package pace

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// scripted is one request of a random script. Its times are drawn to the nanosecond, so that no two things happen at once.
type scripted struct {
	arrives, patience time.Duration // of who asks: until it gives up
	header, body      time.Duration
	robots            bool
	retry             time.Duration // zero: a good answer

	// of the model
	start, due time.Duration // negative: not yet
	state      int
}

const (
	coming = iota
	waiting
	silent
	speaking
	gone
)

func draw(r *rand.Rand, delay time.Duration, n int) []scripted {
	all := make([]scripted, n)
	for i := range all {
		s := &all[i]
		upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) + 1 }
		s.arrives = upTo(time.Duration(n) * time.Second)
		s.patience = upTo(time.Minute)
		s.header = upTo([...]time.Duration{100 * time.Millisecond, max(delay, time.Second), 8 * time.Second}[r.IntN(3)])
		s.body = upTo([...]time.Duration{time.Millisecond, 3 * time.Second}[r.IntN(2)])
		s.robots = r.IntN(4) == 0
		if r.IntN(10) == 0 {
			s.retry = upTo(10 * time.Second)
		}
		s.start, s.due = -1, -1
	}
	slices.SortFunc(all, func(a, b scripted) int { return cmp.Compare(a.arrives, b.arrives) })
	return all
}

const never = time.Duration(1<<63 - 1)

// model says when each request starts, by the rules in words: it goes from one event to the next, and looks at all
// requests each time.
func model(all []scripted, delay time.Duration, most int) {
	last, header, resume := -delay, -delay, time.Duration(0)
	for now := time.Duration(0); ; {
		underway, quiet, first := 0, 0, -1
		for i, s := range all {
			switch {
			case s.state == silent:
				underway, quiet = underway+1, quiet+1
			case s.state == speaking:
				underway++
			case s.state == waiting && (first < 0 || s.robots && !all[first].robots):
				first = i
			}
		}
		next, which := never, -1
		see := func(at time.Duration, i int) {
			if at < next {
				next, which = at, i
			}
		}
		if first >= 0 {
			f := &all[first]
			at := max(now, last+delay, resume)
			if f.robots {
				at = max(at, header+delay)
				if quiet > 0 && f.due >= 0 {
					at = max(at, f.due+headerPatience)
				}
			} else if most > 0 && underway >= most {
				at = never
			}
			see(at, first)
		}
		starts := which >= 0
		for i, s := range all {
			switch at := [...]time.Duration{s.arrives, s.arrives + s.patience, s.start + s.header, s.start + s.header + s.body, never}[s.state]; {
			case at < next:
				next, which, starts = at, i, false
			}
		}
		if which < 0 {
			return
		}
		now = next
		switch s := &all[which]; {
		case starts && s.robots && quiet > 0 && s.due < 0:
			s.due = now
		case starts:
			s.start, s.state, last = now, silent, now
		case s.state == waiting:
			s.state = gone
		case s.state == silent:
			s.state, header, resume = speaking, now, max(resume, min(s.retry, 1)*now+s.retry)
		case s.state == speaking:
			s.state, last = gone, max(last, now)
		default:
			s.state++
		}
	}
}

// run has a Keeper give the turns, and returns when each came.
func run(t *testing.T, k *Keeper, all []scripted) []time.Duration {
	starts := make([]time.Duration, len(all))
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var done sync.WaitGroup
		for i, s := range all {
			starts[i] = -1
			done.Go(func() {
				time.Sleep(s.arrives)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				defer time.AfterFunc(s.patience, cancel).Stop()
				p, err := k.Take(ctx, Ask{Origin: site, Robots: s.robots})
				if err != nil {
					return
				}
				p.Start()
				starts[i] = time.Since(begin)
				time.Sleep(s.header)
				p.Answered(map[bool]int{false: 200, true: 503}[s.retry > 0], s.retry)
				time.Sleep(s.body)
				p.End()
			})
		}
		done.Wait()
	})
	return starts
}

// Random scripts, each with an origin, a delay and a bound: every turn comes when the model says, to the nanosecond.
func TestTurnsComeWhenTheModelSays(t *testing.T) {
	scripts := 300
	if tier.AtNight() {
		scripts = 200_000
	}
	for range scripts {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		delay := [...]time.Duration{0, time.Second, 2300 * time.Millisecond, 5 * time.Second}[r.IntN(4)]
		k := &Keeper{Delay: delay, MaxDelay: Day, MaxUnderway: r.IntN(4)}
		all := draw(r, delay, 5+r.IntN(30))
		got := run(t, k, all)
		model(all, delay, k.MaxUnderway)
		for i, s := range all {
			if got[i] != s.start {
				t.Fatalf("seed %d, delay %v, %d at most: request %d, %+v, started at %v, want %v", seed, delay, k.MaxUnderway, i, s, got[i], s.start)
			}
		}
	}
}
