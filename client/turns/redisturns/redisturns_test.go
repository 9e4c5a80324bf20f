package redisturns_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/client/turns/turnstest"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// serve starts a Redis.
func serve(t *testing.T) *redis.Client {
	_, addr := proc.Redis(t)
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

const site, key = "https://a.example", "robotsgate:starts:{https://a.example}"

func TestTheSuite(t *testing.T) {
	c := serve(t)
	turnstest.Test(t, func(*testing.T) (a, b turns.Store) {
		return &redisturns.Store{Client: c}, &redisturns.Store{Client: c}
	})
}

// An origin lapses a minute after its latest delay and pause, and not before.
func TestAnOriginLapses(t *testing.T) {
	c := serve(t)
	s := &redisturns.Store{Client: c}
	for _, tt := range []struct {
		name         string
		delay, pause time.Duration // of a call; negative: none
		want         time.Duration
	}{
		{"a question for pauses leaves nothing", -1, 0, 0},
		{"one start", time.Second, -1, 61 * time.Second},
		{"another, when that has ended", 10 * time.Second, -1, 81 * time.Second},
		{"a shorter pause", -1, 5 * time.Second, 81 * time.Second},
		{"a longer pause", -1, time.Hour, time.Hour + time.Minute},
		{"a start after that", time.Second, -1, time.Hour + 61*time.Second},
	} {
		var err error
		if tt.delay >= 0 {
			_, _, err = s.Reserve(t.Context(), site, tt.delay, 0, 24*time.Hour)
		} else {
			_, err = s.Pause(t.Context(), site, tt.pause)
		}
		left := max(c.PTTL(t.Context(), key).Val(), 0)
		if err != nil || left > tt.want+time.Second || left < tt.want-10*time.Second {
			t.Errorf("%s: lapses in %v, %v; want %v", tt.name, left, err, tt.want)
		}
	}
	if n := c.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys for one origin", n)
	}
}

// What this package did not write is no permission.
func TestWhatIsNoStateIsAnError(t *testing.T) {
	c := serve(t)
	s := &redisturns.Store{Client: c}
	for name, put := range map[string][]any{
		"text":       {"SET", key, "garbage"},
		"a list":     {"RPUSH", key, "element"},
		"no numbers": {"HSET", key, "last", "1", "next", "x", "resume", "y"},
		"ages ahead": {"HSET", key, "resume", "1.2e16"},
	} {
		t.Run(name, func(t *testing.T) {
			c.FlushAll(t.Context())
			if err := c.Do(t.Context(), put...).Err(); err != nil {
				t.Fatal(err)
			}
			if wait, ok, err := s.Reserve(t.Context(), site, time.Second, 0, 0); ok || err == nil {
				t.Errorf("Reserve: %v, %t, %v; want an error", wait, ok, err)
			}
			if rest, err := s.Pause(t.Context(), site, 0); err == nil {
				t.Errorf("Pause: %v; want an error", rest)
			}
		})
	}
}

// A Redis that lost its memory is found out, once, by who had a start reserved: not by who had none.
func TestALossIsFoundOut(t *testing.T) {
	c := serve(t)
	a, b := &redisturns.Store{Client: c}, &redisturns.Store{Client: c}
	if _, _, err := a.Reserve(t.Context(), site, time.Minute, 0, 0); err != nil {
		t.Fatal(err)
	}
	pauses := func(s *redisturns.Store, want error) {
		t.Helper()
		if _, err := s.Pause(t.Context(), site, 0); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	pauses(a, nil)
	c.FlushAll(t.Context())
	if _, ok, err := b.Reserve(t.Context(), site, time.Minute, 0, 0); !ok || err != nil {
		t.Fatal(ok, err)
	}
	pauses(b, nil)
	pauses(a, turns.ErrForgotten)
	pauses(a, nil)
	c.FlushAll(t.Context())
	pauses(b, turns.ErrForgotten) // nobody has reserved since
	pauses(b, nil)
}

func TestPrefixesKeepFleetsApart(t *testing.T) {
	c := serve(t)
	for _, tt := range []struct {
		prefix string
		want   bool
	}{{"", true}, {"", false}, {"another:", true}, {"robotsgate:", false}} {
		s := &redisturns.Store{Client: c, Prefix: tt.prefix}
		if _, ok, err := s.Reserve(t.Context(), site, time.Minute, 0, 0); ok != tt.want || err != nil {
			t.Errorf("prefix %q: %t, %v; want %t", tt.prefix, ok, err, tt.want)
		}
	}
}

func TestAClientThatIgnoresDeadlinesIsRefused(t *testing.T) {
	slow := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer slow.Close()
	nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:6379"}})
	defer nodes.Close()
	for want, s := range map[string]*redisturns.Store{
		"no Client": {}, "ContextTimeoutEnabled": {Client: slow}, "without ContextTimeoutEnabled": {Client: nodes},
	} {
		_, _, err := s.Reserve(t.Context(), site, 0, 0, 0)
		_, pauseErr := s.Pause(t.Context(), site, 0)
		for _, err := range []error{err, pauseErr} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error that says %s", err, want)
			}
		}
	}
}

// A server that is silent from the start holds up no caller beyond its context.
func TestASilentServerHoldsUpNoOne(t *testing.T) {
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"accepts":  func(context.Context) (net.Conn, error) { c, _ := net.Pipe(); return c, nil },
		"does not": func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := redis.NewClient(&redis.Options{
				Addr:                  "192.0.2.1:6379",
				Dialer:                func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
				ContextTimeoutEnabled: true, MaxRetries: -1,
			})
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, _, err := (&redisturns.Store{Client: c}).Reserve(ctx, site, time.Second, 0, 0)
			if took := time.Since(begin); err == nil || took > 300*time.Millisecond {
				t.Errorf("%s: %v after %v, want an error after 300ms", name, err, took)
			}
			time.Sleep(time.Minute) // by then nothing is left behind
		})
	}
}

// asked is a hook in place of a server: it keeps what it is asked, and answers.
type asked struct {
	args   [][]any
	answer []any
}

func (a *asked) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (a *asked) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		a.args = append(a.args, cmd.Args()[4:]) // after evalsha, script, 1, key
		cmd.(*redis.Cmd).SetVal(a.answer)
		return nil
	}
}

func TestWhatIsAskedAndAnswered(t *testing.T) {
	a := new(asked)
	c := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") }, ContextTimeoutEnabled: true})
	defer c.Close()
	c.AddHook(a)
	s := &redisturns.Store{Client: c}
	zeros := []any{int64(0), int64(0), int64(0)}
	for _, tt := range []struct {
		delay, late, within time.Duration
		answer              []any
		wantArgs            []any // whole microseconds: the delay and late rounded up, within down
		want                time.Duration
		ok, fails           bool
	}{
		{time.Second, time.Millisecond, time.Minute, []any{int64(5), int64(1), int64(7)}, []any{int64(1e6), int64(1e3), int64(60e6)}, 5 * time.Microsecond, true, false},
		{1001, 2001, 1999, []any{int64(0), int64(0), int64(7)}, []any{int64(2), int64(3), int64(1)}, 0, false, false},
		{-1, -1, -1, []any{int64(0), int64(1), int64(7)}, zeros, 0, true, false},
		{0, 0, 0, []any{int64(-1), int64(1), int64(7)}, zeros, 0, false, true},
		{0, 0, 0, []any{int64(1 << 53), int64(0), int64(7)}, zeros, 0, false, true}, // no time.Duration holds it
		{0, 0, 0, []any{int64(1), int64(1)}, zeros, 0, false, true},
		{0, 0, 0, []any{"x", "y", "z"}, zeros, 0, false, true},
	} {
		a.args, a.answer = nil, tt.answer
		wait, ok, err := s.Reserve(t.Context(), site, tt.delay, tt.late, tt.within)
		if wait != tt.want || ok != tt.ok || (err != nil) != tt.fails || len(a.args) != 1 || !slices.Equal(a.args[0], tt.wantArgs) {
			t.Errorf("Reserve(%v, %v, %v) with %v: asked %v, %v, %t, %v; want %+v", tt.delay, tt.late, tt.within, tt.answer, a.args, wait, ok, err, tt)
		}
	}
}

func BenchmarkReserve(b *testing.B) {
	_, addr := proc.Redis(b)
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer c.Close()
	s := &redisturns.Store{Client: c}
	for b.Loop() {
		if _, _, err := s.Reserve(b.Context(), site, time.Millisecond, 0, 24*time.Hour); err != nil {
			b.Fatal(err)
		}
	}
}
