package pace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/turnstest"
)

const ms = time.Millisecond

// away is the line of one process to a store: so far away, and it may fail.
type away struct {
	turns.Store
	far    func() time.Duration // a way, there or back
	mu     sync.Mutex
	fails  error
	silent bool
	asked  []string
}

func (a *away) travel(ctx context.Context) error {
	a.mu.Lock()
	fails, silent := a.fails, a.silent
	a.mu.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	if a.far != nil {
		select {
		case <-time.After(a.far()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fails
}

func (a *away) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprintf(format, args...))
}

func (a *away) store() turns.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Store
}

func (a *away) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *away) set(fails error, silent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails, a.silent = fails, silent
}

func (a *away) Reserve(ctx context.Context, key string, delay, late, within time.Duration) (time.Duration, bool, error) {
	a.note("reserve %v", (delay + late).Round(10*ms))
	if err := a.travel(ctx); err != nil {
		return 0, false, err
	}
	wait, ok, err := a.store().Reserve(ctx, key, delay, late, within)
	return wait, ok, errors.Join(err, a.travel(ctx))
}

func (a *away) Pause(ctx context.Context, key string, d time.Duration) (time.Duration, error) {
	a.note("pause %v", d)
	if err := a.travel(ctx); err != nil {
		return 0, err
	}
	rest, err := a.store().Pause(ctx, key, d)
	return rest, errors.Join(err, a.travel(ctx))
}

func fixed(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// Several processes at one site: no two starts are closer than the delay, whatever the line to the store is like, and
// most starts that are possible are made.
func TestAFleetKeepsOnePace(t *testing.T) {
	upTo := func(d time.Duration) func() time.Duration {
		return func() time.Duration { return rand.N(d) }
	}
	stalls := func() time.Duration { // now and then, as while a cluster moves its slots
		if rand.N(10) == 0 {
			return rand.N(2 * s)
		}
		return rand.N(2 * ms)
	}
	mixed := []func() time.Duration{fixed(0), fixed(5 * ms), fixed(150 * ms), upTo(50 * ms)}
	for _, tt := range []struct {
		name  string
		delay time.Duration
		far   []func() time.Duration // for each process
		try   bool
		part  float64       // of the possible starts, at least
		more  time.Duration // that each process keeps besides what the one before it keeps
	}{
		{"one second, near", s, []func() time.Duration{fixed(0), fixed(0), fixed(0), fixed(0)}, false, 0.95, 0},
		{"50 ms there and back", s, []func() time.Duration{fixed(25 * ms), fixed(25 * ms), fixed(25 * ms), fixed(25 * ms)}, false, 0.85, 0},
		{"each another way", s, mixed, false, 0.6, 0},
		{"a line that shakes", s, []func() time.Duration{upTo(100 * ms), upTo(100 * ms), upTo(100 * ms)}, false, 0.4, 0},
		{"a line that stalls", s, []func() time.Duration{stalls, stalls, stalls}, false, 0.2, 0},
		{"the nearer, the longer the delay", s, []func() time.Duration{fixed(150 * ms), fixed(5 * ms), fixed(0)}, false, 0.3, s},
		{"100 ms, near", 100 * ms, []func() time.Duration{fixed(0), fixed(1 * ms), fixed(2 * ms)}, false, 0.7, 0},
		{"with Try", s, []func() time.Duration{fixed(0), fixed(5 * ms)}, true, 0.7, 0},
		{"one process", s, []func() time.Duration{fixed(5 * ms)}, false, 0.9, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(turnstest.Memory)
				var all sync.WaitGroup
				var mu sync.Mutex
				type start struct {
					time.Time
					delay time.Duration
				}
				var starts []start
				const lasts = 10 * time.Minute
				end := time.Now().Add(lasts)
				for i, far := range tt.far {
					k := keeper()
					k.Delay, k.Turns = tt.delay+time.Duration(i)*tt.more, &away{Store: store, far: far}
					for worker := range 3 {
						all.Go(func() {
							for time.Now().Before(end) {
								take := k.Take
								if tt.try && worker > 0 {
									take = k.Try
								}
								p, err := take(t.Context(), Ask{Origin: site, Robots: worker == 2 && rand.N(20) == 0})
								if late := new(LateError); errors.As(err, &late) {
									time.Sleep(max(time.Until(late.At), ms))
									continue
								} else if err != nil {
									t.Error(err)
									return
								}
								mu.Lock()
								starts = append(starts, start{time.Now(), k.Delay})
								mu.Unlock()
								p.Start()
								time.Sleep(rand.N(20 * ms))
								p.Answered(200, 0)
								p.End()
							}
						})
					}
				}
				all.Wait()
				for i := 1; i < len(starts); i++ {
					want := max(starts[i].delay, starts[i-1].delay)
					if gap := starts[i].Sub(starts[i-1].Time); gap < want {
						t.Errorf("start %d comes %v after the one before, want %v", i, gap, want)
					}
				}
				if part := float64(len(starts)) * tt.delay.Seconds() / lasts.Seconds(); part < tt.part {
					t.Errorf("%.2f of the possible starts, want %.2f", part, tt.part)
				} else {
					t.Logf("%.2f of the possible starts", part)
				}
			})
		})
	}
}

// fleet2 are two processes over one store.
func fleet2() (a, b *Keeper, store *away) {
	store = &away{Store: new(turnstest.Memory)}
	a, b = keeper(), keeper()
	a.Turns, b.Turns = store, store
	return a, b, store
}

func TestAFleetSharesPauses(t *testing.T) {
	a, b, store := fleet2()
	inWorld(t, a, func(w *world) {
		other := &world{T: w.T, k: b, begin: w.begin}
		other.send(request{name: "early", header: 5 * s})                       // under way meanwhile
		w.send(request{name: "busy", after: 2 * s, status: 503, retry: 30 * s}) // until 33
		other.send(request{name: "reserved", after: 5 * s})
		w.send(request{name: "own", after: 4 * s})
		other.send(request{name: "in time", after: 7 * s, within: 5 * s})
		other.all.Wait()
		w.all.Wait()
		w.say("other: %s", strings.Join(other.lines, ", "))
		if err := w.k.Shutdown(w.Context()); err != nil {
			w.Error(err)
		}
	}, "2 busy", "34.02 own", "35.02 other: 0 early, 7 in time late until 33, delay 1s, 33 reserved")
	if !slices.Contains(store.asked, "pause 30s") {
		t.Errorf("%v", store.asked)
	}
}

// Without a delay the store is asked for pauses only. It is asked for them before a start that was reserved some time ago.
func TestWhatTheStoreIsAsked(t *testing.T) {
	for _, tt := range []struct {
		name  string
		delay time.Duration
		other time.Duration // the pause that another process was sent into
		want  []string
	}{
		{"a start", s, 0, []string{"reserve 1.02s"}},
		{"one that is soon", s, s / 2, []string{"reserve 1.02s", "pause 0s"}},
		{"one that is at hand", s, s / 20, []string{"reserve 1.02s"}},
		{"one that is late", s, 5 * s, []string{"reserve 1.02s", "pause 0s"}},
		{"no delay", 0, 0, []string{"pause 0s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _, store := fleet2()
			a.Delay = tt.delay
			inWorld(t, a, func(w *world) {
				store.Store.Pause(w.Context(), "https://www.example", tt.other)
				w.send(request{name: "a"})
			}, fmt.Sprintf("%g a", tt.other.Seconds()))
			if !slices.Equal(store.asked, tt.want) {
				t.Errorf("asked %q, want %q", store.asked, tt.want)
			}
		})
	}
}

// A start that the store has lost is not made: another is reserved.
func TestAStartThatTheStoreHasLost(t *testing.T) {
	a, _, store := fleet2()
	inWorld(t, a, func(w *world) {
		store.Store.Reserve(w.Context(), "https://www.example", 5*s, 0, 0)
		w.send(request{name: "a"})
		time.Sleep(2 * s)
		lost := &forgetful{Store: new(turnstest.Memory), lost: true}
		lost.Reserve(w.Context(), "https://www.example", 4*s, 0, 0) // by another process, until 6
		store.mu.Lock()
		store.Store = lost
		store.mu.Unlock()
	}, "6 a")
	if want := []string{"reserve 1.02s", "pause 0s", "reserve 1.02s", "pause 0s"}; !slices.Equal(store.asked, want) {
		t.Errorf("asked %q, want %q", store.asked, want)
	}
}

// forgetful says once that it has lost what was reserved.
type forgetful struct {
	turns.Store
	lost bool
}

func (f *forgetful) Pause(ctx context.Context, key string, d time.Duration) (time.Duration, error) {
	if f.lost {
		f.lost = false
		return 0, turns.ErrForgotten
	}
	return f.Store.Pause(ctx, key, d)
}

// A reservation belongs to the line: robots.txt uses it, if that came meanwhile.
func TestRobotsUsesTheReservationOfTheLine(t *testing.T) {
	a, _, store := fleet2()
	inWorld(t, a, func(w *world) {
		store.Store.Reserve(w.Context(), "https://www.example", 3*s, 0, 0)
		w.send(request{name: "page"})
		w.send(request{name: "robots", after: s, ask: Ask{Robots: true}})
	}, "3 robots", "5 page")
	if want := []string{"reserve 1.02s", "pause 0s", "reserve 1.02s"}; !slices.Equal(store.asked, want) {
		t.Errorf("asked %q, want %q", store.asked, want)
	}
}

// While the store fails, requests wait as long as their contexts, and say why; one line at a time asks.
func TestAStoreThatFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		silent bool
		asks   [2]int // at least and at most, in ten seconds; at first, each line asks

	}{
		{"refuses", false, [2]int{105, 112}},
		{"is silent", true, [2]int{102, 106}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _, store := fleet2()
				w := &world{T: t, k: a, begin: time.Now()}
				if tt.silent {
					store.set(nil, true)
				} else {
					store.set(errors.New("no store"), false)
				}
				var started sync.WaitGroup
				for i := range 100 {
					o := originOf(fmt.Sprint("www", i, ".example"))
					w.send(request{name: "gone", ask: Ask{Origin: o}, within: 9 * s})
					started.Go(func() {
						p, err := a.Take(t.Context(), Ask{Origin: o})
						if err != nil {
							t.Error(err)
							return
						}
						p.End()
					})
				}
				time.Sleep(10 * s)
				asked := store.count()
				if asked < tt.asks[0] || asked > tt.asks[1] {
					t.Errorf("asked %d times", asked)
				}
				_, err := a.Try(t.Context(), Ask{Origin: site})
				if late := new(LateError); !errors.As(err, &late) || late.Err == nil {
					t.Errorf("Try: %v", err)
				}
				store.set(nil, false)
				w.all.Wait()
				begin := time.Now()
				started.Wait()
				if took := time.Since(begin); took > 7*s { // a question that is not answered, a pause, and a delay
					t.Errorf("those who wait start %v after the store is back", took)
				}
				for _, line := range w.lines {
					if !strings.HasPrefix(line, "9 gone: context deadline exceeded") || !strings.Contains(line, "waiting for the store of turns") {
						t.Fatal(line)
					}
				}
			})
		})
	}
}

// The error of who gives up says that the store was waited for, though it is not known yet to fail: for the one who asks,
// and for who waits behind.
func TestWhoGivesUpWhileTheStoreIsAsked(t *testing.T) {
	a, _, store := fleet2()
	store.set(nil, true)
	inWorld(t, a, func(w *world) {
		w.send(request{name: "asks", within: s})
		w.send(request{name: "waits", after: 500 * ms, within: 400 * ms})
		w.send(request{name: "tries", after: 2 * s, within: s, try: true})
	},
		"0.9 waits: context deadline exceeded (waiting for the store of turns)",
		"1 asks: context deadline exceeded (waiting for the store of turns)",
		"3 tries: context deadline exceeded (waiting for the store of turns)")
}

// A pause is told until it is known, for five seconds; Shutdown waits for that.
func TestAPauseIsToldAgain(t *testing.T) {
	for _, tt := range []struct {
		back, shutdown time.Duration // the store; that of the context
		took           time.Duration
		told, fails    bool
		silent         bool // not even an error comes
	}{
		{2 * s, time.Hour, 2 * s, true, false, false},
		{time.Hour, time.Hour, 5 * s, false, false, false},
		{time.Hour, s, s, false, true, false},
		{2 * s, time.Hour, 2500 * ms, true, false, true},
		{time.Hour, time.Hour, 5 * s, false, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b, store := fleet2()
			p, err := a.Take(t.Context(), Ask{Origin: site})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Shutdown(t.Context()); err != nil {
				t.Error("Shutdown of one that told nothing:", err)
			}
			store.set(errors.New("no store"), tt.silent)
			p.Answered(503, time.Minute)
			p.End()
			time.AfterFunc(tt.back, func() { store.set(nil, false) })
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), tt.shutdown)
			defer cancel()
			err = a.Shutdown(ctx)
			if took := time.Since(begin).Round(s / 2); took != tt.took || (err != nil) != tt.fails {
				t.Errorf("%+v: Shutdown took %v, %v", tt, took, err)
			}
			rest, _ := store.Store.Pause(t.Context(), "https://www.example", 0)
			if (rest > 0) != tt.told || rest > time.Minute {
				t.Errorf("%+v: the pause lasts for %v", tt, rest)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// A place that is held for longer than its reservation takes another.
func TestAPlaceThatIsHeldInAFleet(t *testing.T) {
	for _, tt := range []struct {
		use  time.Duration
		want string
	}{{200 * ms, "0.2 held"}, {400 * ms, "1.25 held"}} {
		a, _, _ := fleet2()
		inWorld(t, a, func(w *world) {
			p, err := a.Take(w.Context(), Ask{Origin: site, Kept: true})
			if err != nil {
				w.Fatal(err)
			}
			time.Sleep(tt.use)
			w.do(request{name: "held", ask: Ask{Held: p}})
		}, tt.want)
	}
}

// A part of the store may be away, as a master of a cluster: the origins of the others keep their pace.
func TestAPartOfAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(turnstest.Memory)
		k := keeper()
		k.Turns = parted{store}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		var pages atomic.Int32
		for i := range 20 {
			all.Go(func() {
				o := originOf(fmt.Sprint(map[bool]string{false: "www", true: "away"}[i%2 == 1], i, ".example"))
				for ctx.Err() == nil {
					p, err := k.Take(ctx, Ask{Origin: o})
					if err != nil {
						return
					}
					pages.Add(1)
					p.End()
				}
			})
		}
		all.Wait()
		if n := pages.Load(); n < 10*50 {
			t.Errorf("%d pages of ten origins in a minute", n)
		}
	})
}

// parted fails for some keys.
type parted struct{ *turnstest.Memory }

func (p parted) Reserve(ctx context.Context, key string, delay, late, within time.Duration) (time.Duration, bool, error) {
	if strings.Contains(key, "away") {
		return 0, false, errors.New("away")
	}
	return p.Memory.Reserve(ctx, key, delay, late, within)
}
