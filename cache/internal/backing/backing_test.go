package backing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call that waited for its slot until there was less than the least time left may fail
// without its being the Store's fault.
func TestAFailureCountsOnlyAfterAFairChance(t *testing.T) {
	const timeout, least = 100 * time.Millisecond, 50 * time.Millisecond
	oom := errors.New("OOM")
	fails := func(context.Context) (string, error) { return "", oom }
	hangs := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	works := func(context.Context) (string, error) { return "value", nil }
	for _, tt := range []struct {
		name   string
		queued time.Duration
		f      func(context.Context) (string, error)
		want   error
	}{
		{"fails at once", 0, fails, oom},
		{"fails late", least, fails, oom},
		{"fails too late", least + 1, fails, ErrBusy},
		{"hangs from the start", 0, hangs, context.DeadlineExceeded},
		{"hangs too late", least + 1, hangs, ErrBusy},
		{"works too late", least + 1, works, nil},
		{"has no turn", 2 * timeout, works, ErrBusy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := make(chan struct{}, 1)
				slots <- struct{}{}
				time.AfterFunc(tt.queued, func() { <-slots })
				if tt.queued == 0 {
					time.Sleep(time.Millisecond)
				}
				v, err := within(slots, window{length: timeout, end: time.Now().Add(timeout)}, least, tt.f, nil)
				if !errors.Is(err, tt.want) || (v == "value") != (err == nil) {
					t.Errorf("%q, %v; want error %v", v, err, tt.want)
				}
				time.Sleep(timeout)
			})
		})
	}
}
