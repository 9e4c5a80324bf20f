package pace

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/client/internal/memturns"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

func originAt(t testing.TB, host string) fetch.Origin {
	t.Helper()
	o, err := fetch.OriginOf(&url.URL{Scheme: "http", Host: host})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// keeper is that of a Pacer with its fields at zero.
func keeper() *Keeper {
	return &Keeper{
		Delay: time.Second, MaxDelay: 30 * time.Second, Places: 1,
		Late: func(o fetch.Origin, at, now time.Time, _ bool) error {
			return fmt.Errorf("%s: late by %v", o, at.Sub(now))
		},
	}
}

// A place that was taken before the machine slept is lost: its monotonic clock stood still, the store's did not. No
// API makes a time of two clocks that differ; the fields of time.Time have the wall seconds above 30 bits.
func TestAPlaceLapsesWhileTheMachineSleeps(t *testing.T) {
	for _, tt := range []struct {
		ago   time.Duration // by the wall clock; by the other one, the place was taken just now
		wants bool
	}{{0, false}, {4 * time.Second, false}, {6 * time.Second, true}, {time.Hour, true}, {-time.Hour, false}} {
		taken := time.Now()
		*(*uint64)(unsafe.Pointer(&taken)) -= uint64(tt.ago/time.Second) << 30
		k := keeper()
		k.wall.Store(&taken) // it was read then
		l := &lease{until: taken.Add(leaseTime), renew: time.NewTimer(time.Hour)}
		pl, until := Place{lane: &lane{}, lease: l, Began: taken}, l.until
		if got := k.Lapsed(pl); got != tt.wants {
			t.Errorf("%v ago: lapsed %t, want %t", tt.ago, got, tt.wants)
		}
		k.Turns = new(memturns.Store)
		if k.renew(pl); (l.until == until) != tt.wants {
			t.Errorf("%v ago: lost after the renewal %t, want %t", tt.ago, l.until == until, tt.wants)
		}
		l.renew.Stop()
	}
}

// visit waits for a turn at a host.
func (k *Keeper) visit(ctx context.Context, host string) error {
	return k.Visit(ctx, &url.URL{Scheme: "http", Host: host}, false)
}

// anyway is a request that is allowed whatever comes.
var anyway = Request{HTTP: &http.Request{URL: new(url.URL)}}

// crowd asks once at n other origins, at a rate of 100 in a second.
func crowd(t *testing.T, k *Keeper, name string, n int) {
	for i := range n {
		if err := k.visit(t.Context(), fmt.Sprint(name, i, ".example")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What is forgotten beyond the bound, and what never is.
func TestPacerForgetsOnlyWhatBreaksNoSpacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.Most = 300
		begin := func(host string) Place {
			l, _, err := k.Turn(t.Context(), originAt(t, host), anyway)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		begin("underway.example")
		k.End(begin("idle.example"), time.Now())
		slow := begin("slow.example")
		slow.lane.lessons = []lesson{{pace: pace{policy.Parse([]byte("user-agent: *\ncrawl-delay: 30")).Group("*").Rate()}}}
		k.End(slow, time.Now())
		pausing := begin("pausing.example")
		k.Answered(pausing, 503, time.Hour, time.Now())
		k.End(pausing, time.Now())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k.End(begin("awaited.example"), time.Now())
		k.Answered(Place{lane: k.lane(originAt(t, "awaited.example"), time.Now())}, 503, time.Hour, time.Now())
		go k.visit(ctx, "awaited.example")

		crowd(t, k, "crowd", 1000) // in ten seconds
		for host, want := range map[string]bool{
			"underway.example": true, "slow.example": true, "pausing.example": true, "awaited.example": true,
			"idle.example": false, "crowd0.example": false, "crowd999.example": true,
		} {
			if got := k.lanes[originAt(t, host)] != nil; got != want {
				t.Errorf("%s remembered: got %v, want %v", host, got, want)
			}
		}
		if n := len(k.lanes); n > 300 {
			t.Errorf("%d origins remembered, want 300 at most", n)
		}

		time.Sleep(30 * time.Second)
		crowd(t, k, "more", 1000)
		if k.lanes[originAt(t, "slow.example")] != nil {
			t.Error("slow.example is remembered, though its delay has passed")
		}
	})
}

// More origins than the bound may be at their delay or under way at a time; then all are kept.
func TestPacerGrowsBeyondSizeWithWhatIsBusyAndShrinksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.Most = 10
		crowd(t, k, "busy", 1000) // 100 of them have asked within the last second
		if n := len(k.lanes); n < 100 || n > 110 {
			t.Errorf("%d origins remembered, want 100, the busy ones", n)
		}
		time.Sleep(time.Second)
		crowd(t, k, "later", 10)
		if n := len(k.lanes); n > 10 {
			t.Errorf("%d origins remembered, want 10 at most", n)
		}
	})
}

// Only where nothing else is left to forget, a pause is; never the spacing.
func TestPacerForgetsPausesOnlyWhenThereIsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.Most = 100
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		awaited, _, _ := k.Turn(ctx, originAt(t, "awaited.example"), anyway)
		k.Answered(awaited, 503, Day, time.Now())
		k.End(awaited, time.Now())
		go k.visit(ctx, "awaited.example")
		for i := range 1000 {
			l, _, err := k.Turn(t.Context(), originAt(t, fmt.Sprint("pausing", i, ".example")), anyway)
			if err != nil {
				t.Fatal(err)
			}
			k.Answered(l, 429, Day, time.Now())
			k.End(l, time.Now())
			time.Sleep(20 * time.Millisecond)
		}
		if n := len(k.lanes); n > 100+50 {
			t.Errorf("%d origins remembered, want 100 and the 50 that asked within the last second at most", n)
		}
		if k.lanes[originAt(t, "awaited.example")] == nil {
			t.Error("the pause of an origin that a request waits for is forgotten")
		}
		k = keeper()
		k.Most = 200 // of which the crowd keeps 100 busy
		l, _, _ := k.Turn(t.Context(), originAt(t, "pausing.example"), anyway)
		k.Answered(l, 429, Day, time.Now())
		k.End(l, time.Now())
		crowd(t, k, "crowd", 10_000)
		if k.lanes[originAt(t, "pausing.example")] == nil {
			t.Error("the pause of one origin is forgotten, though others were idle")
		}
	})
}

// A million origins are paced once each, 20,000 in a second; what is kept does not grow.
func TestPacerMemoryIsFlatAtTheBound(t *testing.T) {
	tier.Nightly(t)
	if testing.Short() {
		t.Skip("a million origins take some seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		u := url.URL{Scheme: "https"}
		var heap [11]int64
		for i := range 1_000_001 {
			if i%100_000 == 0 {
				heap[i/100_000] = proc.Heap()
			}
			u.Host = fmt.Sprintf("www.site-%d.example", i)
			k.Visit(t.Context(), &u, false)
			if i%100 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			if n := len(k.lanes); n > 50_000 {
				t.Fatalf("%d origins remembered", n)
			}
		}
		kept := heap[1] - heap[0]
		t.Logf("%d bytes for each of 50,000 origins", kept/50_000)
		for i, h := range heap[2:] {
			if h > heap[1]+kept/10 {
				t.Errorf("after %d origins: %d bytes live, after 100,000: %d", (i+2)*100_000, h, heap[1])
			}
		}
		if kept/50_000 > 550 {
			t.Errorf("%d bytes for each origin; the doc of Pacer says some 500", kept/50_000)
		}
		runtime.KeepAlive(k)
	})
}

// Lanes lie side by side, each on lines of 64 bytes of its own. What a turn needs is on the first three: the last of it
// is the length of lessons.
func TestATurnNeedsThreeLinesOfMemory(t *testing.T) {
	if ^uint(0)>>63 == 0 {
		t.Skip("words are shorter here")
	}
	lane := reflect.TypeFor[lane]()
	lessons, _ := lane.FieldByName("lessons")
	if end := lessons.Offset + 16; end > 3*64 {
		t.Errorf("what a turn needs takes %d bytes, want 192 at most", end)
	}
	if size := lane.Size(); size <= 288 || size > 320 {
		t.Errorf("a lane has %d bytes, want 289 to 320: the next sizes that the runtime gives are no multiple of 64", size)
	}
}

// A caller may keep the place of a request that has ended. It must not hold all origins that are forgotten meanwhile.
func TestAPlaceHoldsOneOriginOnly(t *testing.T) {
	k, now := keeper(), time.Now()
	k.Most = 1
	kept := k.lane(originAt(t, "kept.example"), now)
	k.lane(originAt(t, "other.example"), now)
	if len(k.lanes) != 1 || kept.newer != nil || kept.older != nil {
		t.Errorf("%d lanes; the forgotten one holds %p and %p", len(k.lanes), kept.newer, kept.older)
	}
}

// A URL may be long; of an origin, its name is kept.
func TestPacerKeepsNoTextOfURLs(t *testing.T) {
	k := keeper()
	k.Delay = 0
	before := proc.Heap()
	for i := range 200 {
		u, err := url.Parse(fmt.Sprintf("http://%d.example/%s", i, strings.Repeat("x", 100_000)))
		if err != nil {
			t.Fatal(err)
		}
		k.Visit(t.Context(), u, false)
	}
	if kept := proc.Heap() - before; kept > 1_000_000 {
		t.Errorf("%d bytes live after 200 origins", kept)
	}
	runtime.KeepAlive(k)
}

// Who is in line before whom: robots.txt is before a request that has a turn of Wait, which
// may be waiting for it.
func TestPacerLineOrder(t *testing.T) {
	l := new(lane)
	for _, kind := range []turns.Kind{turns.Page, turns.Visitor, turns.Visit, turns.Robots, turns.Visitor, turns.Robots, turns.Page} {
		l.join(&waiter{caller: caller{kind: kind}})
	}
	var got []turns.Kind
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		got = append(got, e.Value.(*waiter).kind)
	}
	if want := []turns.Kind{turns.Robots, turns.Robots, turns.Visitor, turns.Visitor, turns.Page, turns.Visit, turns.Page}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is kept of one origin is bounded, however many tokens ask it and however many turns of Wait are never used.
func TestPacerKeepsLittleOfOneOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, o := keeper(), originAt(t, "a.example")
		k.Delay = 0
		res := &fetch.Result{Policy: policy.Parse(nil), Time: time.Now()}
		for i := range 1000 {
			k.Learn(o, res.Policy.Group(""), fmt.Sprint("bot", i), res, time.Now())
			if err := k.Visit(t.Context(), &url.URL{Scheme: "http", Host: "a.example", Path: fmt.Sprint("/", i)}, false); err != nil {
				t.Fatal(err)
			}
		}
		if l := k.lane(o, time.Now()); len(l.lessons) != mostTokens || len(l.grants) > mostGrants || len(l.grants) < mostGrants/2 {
			t.Errorf("kept %d lessons and %d turns, want %d and at most %d, at least half of that", len(l.lessons), len(l.grants), mostTokens, mostGrants)
		}
	})
}

// Both clocks are read once a second: one that was set is noticed by then.
func TestNowReadsTheWallClockOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		for range 3 {
			if got := k.Now(); !got.Equal(time.Now()) {
				t.Errorf("%v at %v", got, time.Now())
			}
			read := k.wall.Load()
			time.Sleep(time.Second - 1)
			if k.Now(); k.wall.Load() != read {
				t.Error("read twice in a second")
			}
			time.Sleep(time.Nanosecond)
			if k.Now(); k.wall.Load() == read {
				t.Error("not read after a second")
			}
		}
	})
}

// An end that was read from the clock before another request started does not take the delay to that start away.
func TestEndKeepsTheLatestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Keeper{Delay: time.Minute, Places: 2}
		o := originAt(t, "a.example")
		first, _, _ := k.Turn(t.Context(), o, anyway)
		ended := time.Now()
		if _, _, err := k.Turn(t.Context(), o, anyway); err != nil {
			t.Fatal(err)
		}
		k.End(first, ended)
		if got := time.Until(k.Next(&url.URL{Scheme: "http", Host: "a.example"}, time.Now())); got != time.Minute {
			t.Errorf("the next may start in %v, want a minute after the latest start", got)
		}
	})
}

// Turns of Wait that came too long ago take no room from those that can be used.
func TestATurnOfWaitIsKeptAsLongAsItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.Delay = time.Second / 6
		page := func(i int) *url.URL { return &url.URL{Scheme: "http", Host: "a.example", Path: fmt.Sprint("/", i)} }
		for i := range 70 {
			if err := k.Visit(t.Context(), page(i), false); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if l, w, err := k.enter(originAt(t, "a.example"), &caller{kind: turns.Page, req: Request{HTTP: &http.Request{URL: page(20)}}}, begin); w != nil || err != nil {
			t.Errorf("%+v, %v: a turn that came 8 seconds ago was not kept", l, err)
		}
	})
}

// renewals is a store that counts them.
type renewals struct {
	turns.Store
	n int
}

func (s *renewals) Tell(_ context.Context, _ string, r turns.Report) error {
	if r.Event == turns.Renewed {
		s.n++
	}
	return nil
}

// A body that its caller forgets holds up a fleet for a day, and no longer.
func TestAPlaceIsRenewedForADay(t *testing.T) {
	for age, want := range map[time.Duration]int{Day - time.Minute: 1, Day: 0} {
		synctest.Test(t, func(t *testing.T) {
			k, store := keeper(), new(renewals)
			k.Turns = store
			l := &lease{renew: time.NewTimer(time.Hour)}
			k.renew(Place{lane: new(lane), lease: l, Began: time.Now().Add(-age)})
			if l.renew.Stop(); store.n != want {
				t.Errorf("%v after its start: renewed %d times, want %d", age, store.n, want)
			}
		})
	}
}
