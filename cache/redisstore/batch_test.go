package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache/redisstore"
)

// line is a hook in place of a server that answers each pipeline after a time.
type line struct {
	latency time.Duration
	answer  func(redis.Cmder) error

	mu   sync.Mutex // guards what follows
	sent []int      // commands of each pipeline
}

func (l *line) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (l *line) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (l *line) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		l.mu.Lock()
		l.sent = append(l.sent, len(cmds))
		l.mu.Unlock()
		select {
		case <-time.After(l.latency):
		case <-ctx.Done():
			for _, cmd := range cmds {
				cmd.SetErr(ctx.Err())
			}
			return ctx.Err()
		}
		for _, cmd := range cmds {
			if l.answer != nil {
				cmd.SetErr(l.answer(cmd))
			}
		}
		return nil
	}
}

func (l *line) client(t *testing.T) redis.UniversalClient {
	c := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	c.AddHook(l)
	return c
}

func ping(ctx context.Context, b *redisstore.Batch, c redis.UniversalClient) error {
	return b.Do(ctx, c, redis.NewStatusCmd(ctx, "ping"))
}

// Who comes alone is sent alone and at once; a thousand of one moment are a few round trips. Far
// from the server, none waits for much more than one of them.
func TestTheCommandsOfOneMomentAreSentTogether(t *testing.T) {
	for _, tt := range []struct {
		callers         int
		latency         time.Duration
		pipelines       int           // at most
		longest, within time.Duration // a call, and all of them
	}{
		{1, time.Millisecond, 1, time.Millisecond, time.Millisecond},
		{1000, time.Millisecond, 10, 5 * time.Millisecond, 5 * time.Millisecond},
		{3, time.Second, 3, time.Second + 25*time.Millisecond, time.Second + 25*time.Millisecond},
		{300, time.Second, 5, time.Second + 75*time.Millisecond, time.Second + 75*time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{latency: tt.latency}
			c, b := l.client(t), new(redisstore.Batch)
			begin := time.Now()
			var calls sync.WaitGroup
			for range tt.callers {
				calls.Go(func() {
					start := time.Now()
					if err := ping(t.Context(), b, c); err != nil || time.Since(start) > tt.longest {
						t.Errorf("%d callers, %v away: %v after %v, want %v", tt.callers, tt.latency, err, time.Since(start), tt.longest)
					}
				})
			}
			calls.Wait()
			if took := time.Since(begin); len(l.sent) > tt.pipelines || took > tt.within {
				t.Errorf("%d callers, %v away: pipelines of %v in %v, want %d in %v", tt.callers, tt.latency, l.sent, took, tt.pipelines, tt.within)
			}
		})
	}
}

// A caller that leaves waits no longer, and what was not sent for it by then is not sent. The
// others of its pipeline go on.
func TestACallerThatLeavesHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{latency: time.Millisecond}
		c, b := l.client(t), new(redisstore.Batch)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, ctx := range []context.Context{gone, leaving{t.Context()}} {
			if err := ping(ctx, b, c); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
		}
		synctest.Wait()
		if len(l.sent) != 0 {
			t.Errorf("sent for a caller that has left: %v", l.sent)
		}
		l.latency = time.Hour
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		long, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		var calls sync.WaitGroup
		for ctx, want := range map[context.Context]time.Duration{
			short: time.Second, long: 3 * time.Second, t.Context(): 5 * time.Second, // a server that is silent
		} {
			calls.Go(func() {
				if err := ping(ctx, b, c); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > want+75*time.Millisecond {
					t.Errorf("%v after %v, want the end of the time after %v", err, time.Since(start), want)
				}
			})
		}
		calls.Wait()
	})
}

// leaving is a context that has ended, of which its caller is told last.
type leaving struct{ context.Context }

func (leaving) Err() error { return context.Canceled }

// Each command has its own answer.
func TestAnErrorIsOfItsCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{latency: time.Millisecond, answer: func(cmd redis.Cmder) error {
			if cmd.Args()[1].(int)%2 == 1 {
				return fmt.Errorf("ERR %v", cmd.Args()[1])
			}
			return nil
		}}
		c, b := l.client(t), new(redisstore.Batch)
		var calls sync.WaitGroup
		for i := range 100 {
			calls.Go(func() {
				err := b.Do(t.Context(), c, redis.NewStatusCmd(t.Context(), "echo", i))
				if want := fmt.Sprint("ERR ", i); i%2 == 0 && err != nil || i%2 == 1 && (err == nil || err.Error() != want) {
					t.Errorf("command %d: %v", i, err)
				}
			})
		}
		calls.Wait()
	})
}

// A node of a cluster that hangs holds up what goes to it, and nothing else: a command is answered when its own
// node answers.
func TestANodeThatHangsHoldsUpNoOther(t *testing.T) {
	const healthy, hung = "192.0.2.1:6379", "192.0.2.2:6379"
	for _, run := range []bool{false, true} { // a command, and a script
		synctest.Test(t, func(t *testing.T) {
			c := redis.NewClusterClient(&redis.ClusterOptions{
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{
						{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: healthy}}},
						{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: hung}}},
					}, nil
				},
				NewClient: func(o *redis.Options) *redis.Client {
					c := redis.NewClient(&redis.Options{Addr: o.Addr, MaxRetries: -1})
					l := &line{latency: time.Millisecond}
					if o.Addr == hung {
						l.latency = time.Hour
					}
					c.AddHook(l)
					return c
				},
				ContextTimeoutEnabled: true,
			})
			defer c.Close()
			b := new(redisstore.Batch)
			ask := func(ctx context.Context, key string) error {
				if run {
					return b.Run(ctx, c, redis.NewScript("return 0"), key, "argument").Err()
				}
				return b.Do(ctx, c, redis.NewStringCmd(ctx, "get", key))
			}
			short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() {
					if err := ask(short, "foo"); !errors.Is(err, context.DeadlineExceeded) { // slot 12182
						t.Errorf("the node that hangs: %v", err)
					}
				})
			}
			for i := range 200 {
				time.Sleep(time.Millisecond)
				begin := time.Now()
				if err := ask(t.Context(), "bar"); err != nil || time.Since(begin) > 5*time.Millisecond { // slot 5061
					t.Errorf("call %d of the other node: %v after %v", i, err, time.Since(begin))
				}
			}
			calls.Wait()
			synctest.Wait()
		})
	}
}
