package backing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shared is a Store with locks whose Get takes as long as its key says.
type shared struct{ hung }

func (shared) Get(ctx context.Context, key string) ([]byte, error) {
	took, err := time.ParseDuration(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(took):
		return []byte(key), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (shared) Lock(context.Context, string, time.Duration) (func(), bool, error) {
	return nil, false, nil
}

// A Store that answers those who came before is slow and not silent. A call that others
// overtake is given up, and so is one of a Store that has stopped answering.
func TestAWindowBeginsAgainWhileTheStoreAnswersOthers(t *testing.T) {
	const patience, end = 100 * time.Millisecond, 15 * time.Second
	for _, tt := range []struct {
		name   string
		others []time.Duration // when the answers to calls that began at the same time come
		own    time.Duration
		want   time.Duration // when the call returns
		err    bool
	}{
		{"alone and in time", nil, 90 * time.Millisecond, 90 * time.Millisecond, false},
		{"alone and silent", nil, time.Hour, patience, true},
		{"in a queue", every(80*time.Millisecond, 10), 850 * time.Millisecond, 850 * time.Millisecond, false},
		{"in a queue that stands still", every(80*time.Millisecond, 3), time.Hour, 400 * time.Millisecond, true},
		{"in a queue without end", every(80*time.Millisecond, 200), time.Hour, end, true},
		{"overtaken", every(patience/2000, 2000), time.Hour, patience, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(shared{}, errMiss, patience, slog.New(slog.DiscardHandler))
				var others sync.WaitGroup
				for _, took := range tt.others {
					others.Go(func() { // in slots of their own
						time.Sleep(took)
						b.reads.done(time.Now(), time.Now(), nil)
					})
				}
				start := time.Now()
				_, err := b.Look(start, start.Add(end)).Get(fmt.Sprint(tt.own))
				if took := time.Since(start); took != tt.want || (err != nil) != tt.err {
					t.Errorf("%v after %v, want %v", err, took, tt.want)
				}
				others.Wait()
			})
		})
	}
}

func every(d time.Duration, n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = time.Duration(i+1) * d
	}
	return all
}

// A process that comes too late to see whether the time is over has not given the Store its time.
func TestAWindowBeginsAgainInAProcessThatIsLate(t *testing.T) {
	const length = 100 * time.Millisecond
	for _, tt := range []struct {
		late, want time.Duration // how much longer it waits
	}{
		{0, 0},
		{time.Millisecond, 3 * time.Millisecond},
		{length / maxLate, 3 * length / maxLate},
		{length / 4, 2 * length},
		{time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			w := window{length: length, end: now.Add(15 * time.Second), part: new(breaker)}
			if _, entered := w.enter(make(chan struct{}, 1), 0); !entered {
				t.Fatal("no slot")
			}
			time.Sleep(length + tt.late)
			if over := w.over(); over != (tt.want == 0) {
				t.Errorf("%v late: over: %v", tt.late, over)
			}
			if more := time.Until(w.due); tt.want > 0 && more != tt.want {
				t.Errorf("%v late: waits for another %v, want %v", tt.late, more, tt.want)
			}
			w.timer.Stop()
		})
	}
}

// Calls that fail together are one failure: a moment in which the Store is silent does not make
// all who wait fetch for themselves.
func TestFailuresOfOneMomentAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &breaker{log: slog.New(slog.DiscardHandler)}
		for range breakAfter {
			if !b.allow(time.Now()) {
				t.Fatal("left alone too soon")
			}
			began := time.Now()
			time.Sleep(time.Second)
			for range 100 {
				b.done(began, time.Now(), errors.New("silent"))
			}
		}
		if b.allow(time.Now()) {
			t.Errorf("not left alone after failures in %d moments", breakAfter)
		}
		if n := b.errors.Load(); n != 100*breakAfter {
			t.Errorf("%d errors counted, want %d", n, 100*breakAfter)
		}
	})
}
