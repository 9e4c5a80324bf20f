package cache

import (
	"context"
	"strconv"
	"testing"
	"time"
)

// hung is a Store that is silent.
type hung struct{}

func (hung) Get(ctx context.Context, _ string) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
func (hung) Put(ctx context.Context, _ string, _ []byte, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// Values may grow while they wait.
func TestValuesThatReplaceOthersInTheQueueAreCountedToo(t *testing.T) {
	c := &Cache{Store: hung{}}
	c.once.Do(c.init)
	b := &c.second.behind
	for _, size := range []int{100, 500 << 10} {
		for i := range 1000 {
			b.put(strconv.Itoa(i), make([]byte, size), time.Hour, func() {})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > maxQueueBytes {
		t.Errorf("%d MiB queued, bound %d MiB", b.bytes>>20, maxQueueBytes>>20)
	}
}
