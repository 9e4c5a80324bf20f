package pace

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/robotsgate/robotsgate/fetch"
)

// visit has a request at an origin, which takes no time.
func visit(t testing.TB, k *Keeper, o fetch.Origin, status int, retry time.Duration) {
	p, err := k.Take(context.Background(), Ask{Origin: o})
	if err != nil {
		t.Error(err)
		return
	}
	p.Start()
	p.Answered(status, retry)
	p.End()
}

// crowd asks once at n other origins, at a rate of 100 in a second.
func crowd(t *testing.T, k *Keeper, name string, n int) {
	for i := range n {
		visit(t, k, originOf(fmt.Sprint(name, i, ".example")), 200, 0)
		time.Sleep(10 * time.Millisecond)
	}
}

// What is forgotten beyond the bound, and what never is.
func TestOnlyWhatBreaksNoDistanceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.MaxOrigins = 300
		underway, _ := k.Take(t.Context(), Ask{Origin: originOf("underway.example")})
		visit(t, k, originOf("idle.example"), 200, 0)
		k.learn("bot", "user-agent: *\ncrawl-delay: 30") // site
		visit(t, k, site, 200, 0)
		visit(t, k, originOf("pausing.example"), 503, time.Hour)
		visit(t, k, originOf("awaited.example"), 503, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go k.Take(ctx, Ask{Origin: originOf("awaited.example")})
		if _, err := k.Try(ctx, Ask{Origin: originOf("pausing.example")}); err == nil {
			t.Error("a turn in a pause")
		}

		crowd(t, k, "crowd", 1000) // in ten seconds
		for host, want := range map[string]bool{
			"underway.example": true, "www.example": true, "pausing.example": true, "awaited.example": true,
			"idle.example": false, "crowd0.example": false, "crowd999.example": true,
		} {
			if got := k.known(originOf(host)) != nil; got != want {
				t.Errorf("%s remembered: got %t, want %t", host, got, want)
			}
		}
		if n := k.lines.Len(); n > 300 {
			t.Errorf("%d origins remembered, want 300 at most", n)
		}
		time.Sleep(30 * time.Second)
		crowd(t, k, "more", 1000)
		if k.known(site) != nil {
			t.Error("remembered, though its delay has passed")
		}
		underway.End()
	})
}

// More origins than the bound may be at their delay or under way at a time; then all are kept, and forgotten later.
func TestMemoryGrowsWithWhatIsBusyAndShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.MaxOrigins = 10
		crowd(t, k, "busy", 1000) // 100 of them have asked within the last second
		if n := k.lines.Len(); n < 100 || n > 110 {
			t.Errorf("%d origins remembered, want 100, the busy ones", n)
		}
		time.Sleep(time.Minute)
		crowd(t, k, "one", 10)
		if n := k.lines.Len(); n > 10 {
			t.Errorf("%d origins remembered, want 10", n)
		}
	})
}

// Against a flood of origins that all ask for a day, pauses are forgotten, the longest unused first.
func TestPausesAreForgottenWhenThereIsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.MaxOrigins = 100
		for i := range 1000 {
			o := originOf(fmt.Sprint("away", i, ".example"))
			visit(t, k, o, 503, Day)
			if _, err := k.Try(t.Context(), Ask{Origin: o}); err == nil { // which keeps a place in line for a day
				t.Error("a turn in a pause")
			}
			time.Sleep(s)
		}
		if n := k.lines.Len(); n > 100 || k.known(originOf("away999.example")) == nil {
			t.Errorf("%d origins remembered", n)
		}
	})
}

// A Recheck holds on to a request and a robots.txt. The next Try at a place that was left brings its own.
func TestThePlaceOfATryHoldsNoRecheck(t *testing.T) {
	k := &Keeper{Delay: time.Hour, MaxDelay: Day}
	visit(t, k, site, 200, 0)
	recheckBy := func(file *[1 << 20]byte) (func(context.Context, time.Time) error, weak.Pointer[[1 << 20]byte]) {
		return func(context.Context, time.Time) error { _ = file[0]; return nil }, weak.Make(file)
	}
	recheck, file := recheckBy(new([1 << 20]byte))
	k.Try(t.Context(), Ask{Origin: site, Recheck: recheck})
	runtime.GC()
	if k.known(site).leftPlace == nil || file.Value() != nil {
		t.Error("got a place that holds the file, want one without")
	}
}

func TestMemoryIsFlatAtTheBound(t *testing.T) {
	k := &Keeper{MaxDelay: 30 * s, MaxUnderway: 1, MaxOrigins: 1000}
	heap := func(from int) uint64 {
		for i := range 20_000 {
			visit(t, k, originOf(fmt.Sprint("www.site-", from+i, ".example")), 200, 0)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	heap(0)
	first := heap(20_000)
	if more := int64(heap(40_000)) - int64(first); more > 500_000 || k.lines.Len() > 1000 {
		t.Errorf("%d bytes more after another 20,000 origins, %d remembered", more, k.lines.Len())
	}
}

func BenchmarkTurn(b *testing.B) {
	ctx := context.Background()
	turn := func(b *testing.B, k *Keeper, o fetch.Origin) {
		p, err := k.Take(ctx, Ask{Origin: o})
		if err != nil {
			b.Fatal(err)
		}
		p.Start()
		p.Answered(200, 0)
		p.End()
	}
	hosts := make([]fetch.Origin, 100_000)
	for i := range hosts {
		hosts[i] = originOf(fmt.Sprintf("www.site-%d.example", i))
	}
	b.Run("one origin", func(b *testing.B) {
		k := &Keeper{MaxUnderway: 1}
		b.ReportAllocs()
		for b.Loop() {
			turn(b, k, site)
		}
	})
	b.Run("100,000 origins, half forgotten in between", func(b *testing.B) {
		k := &Keeper{MaxUnderway: 1}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			turn(b, k, hosts[i%len(hosts)])
		}
	})
	b.Run("ten wait at one origin", func(b *testing.B) {
		k := &Keeper{MaxUnderway: 1}
		b.SetParallelism(10)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				turn(b, k, site)
			}
		})
	})
}
