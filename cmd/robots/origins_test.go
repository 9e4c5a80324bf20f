package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func originNamed(t testing.TB, host string) fetch.Origin {
	t.Helper()
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: host})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// lookups counts what an asker asks; each takes a second.
type lookups struct {
	mu             sync.Mutex
	asked          map[fetch.Origin]int
	now, atMost    int
	slow, refusing fetch.Origin
}

func (l *lookups) lookup(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	l.count(o, 1)
	defer l.count(o, -1)
	d := time.Second
	if o == l.slow {
		d = time.Hour
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o == l.refusing {
		return &fetch.Result{Policy: policy.Unreachable(), Err: errors.New("refused")}, nil
	}
	return &fetch.Result{Policy: policy.Unavailable()}, nil
}

func (l *lookups) count(o fetch.Origin, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now += n; n > 0 {
		l.asked[o]++
	}
	l.atMost = max(l.atMost, l.now)
}

func newAsker(l *lookups, parallel int) *asker {
	l.asked = map[fetch.Origin]int{}
	return &asker{
		lookup: l.lookup,
		slots:  make(chan struct{}, parallel),
		work:   context.Background(),
		asks:   map[fetch.Origin]*ask{},
		most:   maxAsks,
	}
}

func TestEachOriginIsAskedOnceAndFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lookups)
		a := newAsker(l, 10)
		start := time.Now()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				for i := range 100 {
					a.start(t.Context(), originNamed(t, fmt.Sprintf("site%d.example", i)))
				}
			})
		}
		callers.Wait()
		a.end(time.Minute)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("100 origins by tens took %v, want 10s", took)
		}
		if len(l.asked) != 100 || l.atMost != 10 {
			t.Errorf("%d origins were asked, %d at a time, want 100 and 10", len(l.asked), l.atMost)
		}
		for o, n := range l.asked {
			if n != 1 {
				t.Errorf("%v was asked %d times, want once", o, n)
			}
		}
	})
}

// One origin that does not answer holds a slot, and nothing else up.
func TestASlowOriginDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lookups{slow: originNamed(t, "site0.example")}
		a := newAsker(l, 2)
		ctx, cancel := context.WithCancel(t.Context())
		a.work = ctx
		start := time.Now()
		slow := a.start(ctx, l.slow)
		for i := range 10 {
			<-a.start(ctx, originNamed(t, fmt.Sprintf("site%d.example", i+1))).done
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("10 origins took %v beside the slow one, want 10s", took)
		}
		select {
		case <-slow.done:
			t.Error("the slow origin has answered")
		default:
		}
		cancel()
		a.end(0)
		synctest.Wait()
	})
}

func TestAnUnreachableOriginStaysSoForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lookups{refusing: originNamed(t, "down.example")}
		a := newAsker(l, 2)
		down, up := a.start(t.Context(), l.refusing), a.start(t.Context(), originNamed(t, "up.example"))
		<-down.done
		<-up.done
		if down.result == nil || down.result.Err == nil {
			t.Errorf("got %v, want the unreachable result", down.result)
		}
		if up.result != nil {
			t.Errorf("got %v kept for an origin that answered, want nothing: it is in the cache", up.result)
		}
		time.Sleep(24 * time.Hour)
		if again := a.start(t.Context(), l.refusing); again != down {
			t.Error("it was asked again")
		}
	})
}

// A caller that gives up while all slots are taken is told so by his context, and the
// lookups go on under theirs.
func TestStartEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lookups)
		a := newAsker(l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		first := a.start(ctx, originNamed(t, "a.example"))
		returned := make(chan bool)
		go func() { a.start(ctx, originNamed(t, "b.example")); close(returned) }()
		synctest.Wait()
		cancel()
		<-returned
		<-first.done
		if got := l.asked[originNamed(t, "b.example")]; got != 0 {
			t.Errorf("b.example was asked %d times, want none", got)
		}
	})
}

func TestWhatIsRememberedOfOriginsIsBounded(t *testing.T) {
	l := new(lookups)
	a := newAsker(l, 8)
	a.most = 100
	a.lookup = func(context.Context, fetch.Origin) (*fetch.Result, error) {
		return &fetch.Result{Policy: policy.Unavailable()}, nil
	}
	for i := range 1000 {
		<-a.start(t.Context(), originNamed(t, fmt.Sprintf("site%d.example", i))).done
		if len(a.asks) > a.most {
			t.Fatalf("%d asks are remembered, want at most %d", len(a.asks), a.most)
		}
	}
}
