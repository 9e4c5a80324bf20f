package pace

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

const s = time.Second

// fields are some of a Keeper, where they are not those of keeper.
type fields struct {
	Delay, MinDelay time.Duration // negative: none
	MaxUnderway     int           // negative: any number
}

// Who goes first at one origin, and when. Each request takes a second unless it says otherwise; the delay is a second.
func TestTheLine(t *testing.T) {
	robots, other := Ask{Robots: true}, Ask{Origin: originOf("other.example")}
	for _, tt := range []struct {
		name     string
		k        fields
		requests []request
		want     []string
	}{
		{"in the order in which they came, from end to start", fields{},
			[]request{{name: "a"}, {name: "b", after: 1}, {name: "c", after: 2}, {name: "d", after: 20 * s}},
			[]string{"0 a", "2 b", "4 c", "20 d"}},
		{"robots.txt goes first, and keeps the distance", fields{},
			[]request{{name: "a"}, {name: "b", after: 1}, {name: "robots", after: s, ask: robots}, {name: "more", after: s + 1, ask: robots}},
			[]string{"0 a", "2 robots", "4 more", "6 b"}},
		{"robots.txt waits for no open body, but takes a place", fields{},
			[]request{{name: "a", body: 60 * s}, {name: "robots", after: 2 * s, ask: robots, header: 4 * s}, {name: "b", after: 3 * s}},
			[]string{"0 a", "2 robots", "62 b"}},
		{"a robots.txt under way takes a place", fields{},
			[]request{{name: "robots", ask: robots, header: 10 * s}, {name: "a", after: s}},
			[]string{"0 robots", "11 a"}},
		{"robots.txt waits for a header, and a delay from there", fields{},
			[]request{{name: "a", header: 4 * s, body: 9 * s}, {name: "robots", after: s, ask: robots}},
			[]string{"0 a", "5 robots"}},
		{"but no longer than five seconds", fields{},
			[]request{{name: "a", header: 30 * s}, {name: "robots", after: 2 * s, ask: robots}},
			[]string{"0 a", "7 robots"}},
		{"no origin waits for another", fields{},
			[]request{{name: "a", body: 9 * s}, {name: "other", after: 1, ask: other}},
			[]string{"0 a", "0 other"}},
		{"who gives up leaves no gap", fields{},
			[]request{{name: "a"}, {name: "b", after: 1, within: 1500 * time.Millisecond}, {name: "c", after: 2}},
			[]string{"0 a", "1 b late until 2, delay 1s", "2 c"}},
		{"who gives up in the line", fields{},
			[]request{{name: "a", body: 9 * s}, {name: "b", after: 1, within: 5 * s}, {name: "c", after: 2}},
			[]string{"0 a", "5 b: context deadline exceeded (waiting for another request to the site to end)", "11 c"}},
		{"two at a time, with the delay from each start and end", fields{MaxUnderway: 2},
			[]request{{name: "a", body: 1500 * time.Millisecond}, {name: "b", after: 1, body: 9 * s}, {name: "c", after: 2}, {name: "d", after: 3}},
			[]string{"0 a", "1 b", "3.5 c", "5.5 d"}},
		{"any number at a time", fields{MaxUnderway: -1},
			[]request{{name: "a", body: 9 * s}, {name: "b", after: 1, body: 9 * s}, {name: "c", after: 2, body: 9 * s}, {name: "d", after: 3}},
			[]string{"0 a", "1 b", "2 c", "3 d"}},
		{"without a delay", fields{Delay: -1},
			[]request{{name: "a"}, {name: "b", after: 1}, {name: "c", after: 2}},
			[]string{"0 a", "1 b", "2 c"}},
		{"MinDelay is a floor", fields{MinDelay: 3 * s},
			[]request{{name: "a"}, {name: "b", after: 1}},
			[]string{"0 a", "4 b"}},
		{"a Try that is late keeps its place until At and 250 ms", fields{},
			[]request{{name: "a"}, {name: "try", after: s / 2, try: true}, {name: "b", after: 1100 * time.Millisecond}, {name: "again", after: 2100 * time.Millisecond, try: true}},
			[]string{"0 a", "0.5 try late until 1.5, delay 1s", "2 b", "2.1 again late until 3.1, delay 1s"}},
		{"a Try takes its place at At", fields{},
			[]request{{name: "a", header: 1}, {name: "try", after: s / 2, try: true}, {name: "b", after: 600 * time.Millisecond}, {name: "again", after: s + 1, try: true}},
			[]string{"0 a", "0.5 try late until 1, delay 1s", "1 again", "3 b"}},
		{"or loses it", fields{},
			[]request{{name: "a", header: 1}, {name: "try", after: s / 2, try: true}, {name: "b", after: 600 * time.Millisecond}, {name: "again", after: 1300 * time.Millisecond, try: true}},
			[]string{"0 a", "0.5 try late until 1, delay 1s", "1.25 b", "1.3 again late until 2.3, delay 1s"}},
		{"behind others, At counts them", fields{},
			[]request{{name: "a", header: 1}, {name: "b", after: 1, header: 1}, {name: "c", after: 2, header: 1}, {name: "try", after: s / 2, try: true}, {name: "d", after: 600 * time.Millisecond, header: 1}, {name: "again", after: 3*s + 3, try: true}},
			[]string{"0 a", "0.5 try late until 3, delay 1s", "1 b", "2 c", "3 again", "5 d"}},
		{"a place that a Try left holds up nobody who is done before", fields{},
			[]request{{name: "a", header: 1}, {name: "b", after: 1, within: 900 * time.Millisecond}, {name: "c", after: 2, within: 0, header: 1}, {name: "try", after: s / 2, try: true}, {name: "d", after: 600 * time.Millisecond, header: 1}},
			[]string{"0 a", "0 b late until 1, delay 1s", "0.5 try late until 2, delay 1s", "1 c", "2.25 d"}},
		{"any Try takes the place that another left", fields{},
			[]request{{name: "a", header: 1}, {name: "try", after: s / 2, try: true}, {name: "second", after: 600 * time.Millisecond, try: true}, {name: "b", after: 700 * time.Millisecond}, {name: "third", after: s + 1, try: true}},
			[]string{"0 a", "0.5 try late until 1, delay 1s", "0.6 second late until 1, delay 1s", "1 third", "3 b"}},
		{"robots.txt does not wait for that of a Try", fields{},
			[]request{{name: "a", header: 1}, {name: "try", after: s / 2, try: true}, {name: "robots", after: 600 * time.Millisecond, ask: robots}},
			[]string{"0 a", "0.5 try late until 1, delay 1s", "1 robots"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := keeper()
			if tt.k.Delay != 0 {
				k.Delay = max(tt.k.Delay, 0)
			}
			if tt.k.MaxUnderway != 0 {
				k.MaxUnderway = max(tt.k.MaxUnderway, 0)
			}
			k.MinDelay = tt.k.MinDelay
			inWorld(t, k, func(w *world) {
				for _, r := range tt.requests {
					w.send(r)
				}
			}, tt.want...)
		})
	}
}

// A queue of Try beside a loop of Take: each gets about half of the turns, also where all that one waits for is
// the other's end.
func TestATryIsNotStarvedByALoop(t *testing.T) {
	for _, tt := range []struct{ delay, took time.Duration }{{s, 50 * ms}, {0, 730 * ms}} {
		synctest.Test(t, func(t *testing.T) {
			k, ctx := keeper(), t.Context()
			k.Delay = tt.delay
			end := time.Now().Add(10 * time.Minute)
			var loop, tries int
			done := make(chan bool)
			go func() {
				defer close(done)
				for ; time.Now().Before(end); loop++ {
					p, err := k.Take(ctx, Ask{Origin: site})
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(tt.took)
					p.End()
				}
			}()
			for time.Now().Before(end) {
				p, err := k.Try(ctx, Ask{Origin: site})
				late := new(LateError)
				if errors.As(err, &late) {
					time.Sleep(time.Until(late.At))
					continue
				}
				tries++
				time.Sleep(tt.took)
				p.End()
			}
			<-done
			if loop < 200 || tries < 200 {
				t.Errorf("delay %v: %d of the loop, %d of Try", tt.delay, loop, tries)
			}
		})
	}
}

// A place that a Turn holds: its request starts at once, or keeps the distance again to what came since.
func TestAPlaceThatIsHeld(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others []request
		use    time.Duration // when it is sent on, or ended
		want   []string
	}{
		{"at once", nil, 5 * s, []string{"0 turn", "5 held"}},
		{"others wait for it", []request{{name: "a", after: s}}, 5 * s, []string{"0 turn", "5 held", "7 a"}},
		{"robots.txt does not", []request{{name: "robots", after: s, ask: Ask{Robots: true}}}, 3500 * time.Millisecond,
			[]string{"0 turn", "1 robots", "3.5 held"}},
		{"it keeps the distance to that", []request{{name: "robots", after: s, ask: Ask{Robots: true}}}, 2500 * time.Millisecond,
			[]string{"0 turn", "1 robots", "3 held"}},
		{"to its start too, and goes before who waits", []request{{name: "a", after: s}, {name: "robots", after: 2 * s, ask: Ask{Robots: true}, body: s}}, 2500 * time.Millisecond,
			[]string{"0 turn", "2 robots", "3 held", "5 a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, keeper(), func(w *world) {
				p, err := w.k.Take(w.Context(), Ask{Origin: site, Kept: true})
				if err != nil {
					w.Fatal(err)
				}
				w.say("turn")
				for _, r := range tt.others {
					w.send(r)
				}
				time.Sleep(tt.use)
				if got := w.do(request{name: "held", ask: Ask{Held: p}}); got != p {
					w.Error("sent on another place")
				}
				p.End() // does nothing more
			}, tt.want...)
		})
	}
}

func TestAPlaceThatHasEndedIsNotHeld(t *testing.T) {
	inWorld(t, keeper(), func(w *world) {
		p, _ := w.k.Take(w.Context(), Ask{Origin: site})
		p.End()
		p.Start()
		p.End()
		w.send(request{name: "a", ask: Ask{Held: p}})
		w.send(request{name: "b", after: 2})
	}, "1 a", "3 b")
}

func TestAPauseHoldsUpAPlaceThatIsHeld(t *testing.T) {
	inWorld(t, keeper(), func(w *world) {
		p, _ := w.k.Take(w.Context(), Ask{Origin: site, Kept: true})
		w.send(request{name: "robots", ask: Ask{Robots: true}, status: 503, retry: 10 * s})
		time.Sleep(5 * s)
		w.send(request{name: "late", within: s, ask: Ask{Held: p}})
		w.send(request{name: "held", ask: Ask{Held: p}, after: s})
	}, "1 robots", "5 late late until 12, delay 1s, paused", "12 held")
}

func TestAPauseAloneHoldsUpAPlaceThatIsHeld(t *testing.T) {
	k := keeper()
	k.MaxUnderway = 2
	inWorld(t, k, func(w *world) {
		w.send(request{name: "a", header: 3 * s, body: 60 * s, status: 503, retry: 10 * s})
		time.Sleep(s)
		p, _ := k.Take(w.Context(), Ask{Origin: site, Kept: true})
		w.say("turn")
		w.send(request{name: "held", ask: Ask{Held: p}, after: 4 * s})
	}, "0 a", "1 turn", "13 held")
}

func TestTheDistanceRunsFromTheStart(t *testing.T) {
	k := keeper()
	k.MaxUnderway = 2
	inWorld(t, k, func(w *world) {
		p, _ := k.Take(w.Context(), Ask{Origin: site, Kept: true})
		w.send(request{name: "held", ask: Ask{Held: p}, after: 5 * s, header: 9 * s})
		w.send(request{name: "a", after: 5*s + 1})
	}, "5 held", "6 a")
	k = keeper()
	k.MaxUnderway = 2
	inWorld(t, k, func(w *world) {
		p, _ := k.Take(w.Context(), Ask{Origin: site})
		time.Sleep(s / 2) // to be signed
		p.Start()
		w.send(request{name: "a"})
	}, "1.5 a")
	inWorld(t, keeper(), func(w *world) { // what is not handed on has no header to wait for
		if _, err := w.k.Try(w.Context(), Ask{Origin: site}); err != nil {
			t.Error(err)
		}
		w.send(request{name: "robots", ask: Ask{Robots: true}})
	}, "1 robots")
}

// The first in line decides once more: when its time has come, and not before; robots.txt may go before it meanwhile.
func TestRecheck(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		name  string
		after time.Duration // of b, beside a at 0
		reads bool          // robots.txt
		err   error
		want  []string
	}{
		{"not what was decided on just now", 1500 * time.Millisecond, false, nil, []string{"0 a", "2 b", "4 since 2", "4 c"}},
		{"what waited for more than a second", 900 * time.Millisecond, false, nil, []string{"0 a", "2 since 0.9", "2 b", "4 since 2", "4 c"}},
		{"a refusal gives the place up", 900 * time.Millisecond, false, refused, []string{"0 a", "2 since 0.9", "2 b: refused", "2 since 2", "2 c: refused"}},
		{"robots.txt goes before it", 900 * time.Millisecond, true, nil,
			[]string{"0 a", "2 since 0.9", "2 robots", "4 b", "6 since 4", "6 robots", "8 c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, keeper(), func(w *world) {
				again := func(ctx context.Context, since time.Time) error {
					w.say("since %g", since.Sub(w.begin).Round(100*time.Millisecond).Seconds())
					if tt.reads && time.Since(w.begin).Round(s)%(4*s) == 2*s { // at 2 and 6
						w.do(request{name: "robots", ask: Ask{Robots: true}})
					}
					return tt.err
				}
				w.send(request{name: "a"})
				w.send(request{name: "b", after: tt.after, ask: Ask{Recheck: again}})
				w.send(request{name: "c", after: tt.after + 1, ask: Ask{Recheck: again}})
			}, tt.want...)
		})
	}
}

func TestAContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, cause := keeper(), errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		p, _ := k.Take(ctx, Ask{Origin: site})
		waited := make(chan error)
		go func() {
			_, err := k.Take(ctx, Ask{Origin: site})
			waited <- err
		}()
		synctest.Wait()
		cancel(cause)
		_, now := k.Take(ctx, Ask{Origin: site})
		_, try := k.Try(ctx, Ask{Origin: site})
		for _, err := range []error{<-waited, now, try} {
			if err != cause {
				t.Errorf("%v, want the cause", err)
			}
		}
		p.End()
		if l := k.known(site); l.underway != 0 || l.waiting.Len() != 0 {
			t.Errorf("%d under way, %d wait", l.underway, l.waiting.Len())
		}
	})
}

func TestNextIsWhatATryWouldBeTold(t *testing.T) {
	inWorld(t, keeper(), func(w *world) {
		w.sayError("at once", w.k.Next(site))
		p, _ := w.k.Take(w.Context(), Ask{Origin: site})
		w.sayError("under way", w.k.Next(site))
		p.End()
		w.sayError("after the end", w.k.Next(site))
		w.send(request{name: "a", after: 1, header: 1})
		time.Sleep(s / 2)
		w.sayError("behind another", w.k.Next(site))
		w.k.mu.Lock()
		defer w.k.mu.Unlock()
		if l := w.k.known(site); l.waiting.Len() != 1 {
			w.Error("it took a place in line")
		}
	}, "0 at once late until 0, delay 1s", "0 under way late until 1, delay 1s", "0 after the end late until 1, delay 1s",
		"0.5 behind another late until 2, delay 1s", "1 a")
}

func TestALateErrorIsNoTimeOut(t *testing.T) {
	var err error = &LateError{At: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Err: context.DeadlineExceeded}
	const want = "no turn before 2026-07-01T12:00:00Z"
	if err.Error() != want || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, which wraps %v, want %s, which wraps nothing", err, errors.Unwrap(err), want)
	}
}

// A thousand wait for one origin, and half give up: each of the others starts, a delay after the one before.
func TestManyWaitAtOneOrigin(t *testing.T) {
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("%d %d", i, 2*i))
	}
	k := keeper()
	inWorld(t, k, func(w *world) {
		for i := range 1000 {
			r := request{name: fmt.Sprint(i), after: time.Duration(i), header: 1, body: 1}
			ctx, cancel := context.WithCancel(w.Context())
			if i%2 == 1 {
				go func() {
					time.Sleep(s / 2)
					cancel()
				}()
				go func() {
					time.Sleep(r.after)
					if _, err := k.Take(ctx, Ask{Origin: site}); err == nil {
						w.Error("a turn for a caller that gave up")
					}
				}()
				continue
			}
			context.AfterFunc(w.Context(), cancel)
			w.send(r)
		}
	}, want...)
	if l := k.known(site); l.underway != 0 || l.waiting.Len() != 0 {
		t.Errorf("%d under way, %d wait", l.underway, l.waiting.Len())
	}
}
