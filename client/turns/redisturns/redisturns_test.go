package redisturns_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
)

func TestAClientThatIgnoresDeadlinesIsRefused(t *testing.T) {
	slow := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer slow.Close()
	nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:6379"}})
	defer nodes.Close()
	for want, s := range map[string]*redisturns.Store{
		"no Client": {}, "ContextTimeoutEnabled": {Client: slow}, "without ContextTimeoutEnabled": {Client: nodes},
	} {
		if _, err := s.Take(t.Context(), "https://a.example", turns.Ask{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Take: %v, want an error that says %s", err, want)
		}
		if err := s.Tell(t.Context(), "https://a.example", turns.Report{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Tell: %v, want an error that says %s", err, want)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestCloseOfAnUnusedStoreAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialed := false
		c := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", ContextTimeoutEnabled: true, Dialer: func(context.Context, string, string) (net.Conn, error) {
			dialed = true
			return nil, net.ErrClosed
		}})
		defer c.Close()
		err := (&redisturns.Store{Client: c}).Close()
		if synctest.Wait(); err != nil || dialed {
			t.Errorf("%v, asked the server: %t", err, dialed)
		}
	})
}

// A server that is silent from the start holds up no caller beyond its context, and Close for a second.
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
			s := &redisturns.Store{Client: c}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			begin := time.Now()
			_, err := s.Take(ctx, "https://a.example", turns.Ask{Turn: "ABCDEFGH"})
			if took := time.Since(begin); err == nil || took > 300*time.Millisecond {
				t.Errorf("%s: %v after %v, want an error after 300ms", name, err, took)
			}
			begin = time.Now()
			if err := s.Close(); err != nil || time.Since(begin) > time.Second {
				t.Errorf("%s: closed after %v: %v", name, time.Since(begin), err)
			}
			time.Sleep(time.Minute) // by then nothing is left behind
		})
	}
}

// asked is a hook in place of a server, which keeps what it is asked, from the third argument of
// the script on: before that come names that are drawn.
type asked struct{ numbers [][]byte }

func (a *asked) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (a *asked) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			args := cmd.Args() // evalsha, script, 1, key, channel, turn, numbers
			numbers := args[len(args)-1].([]byte)
			a.numbers = append(a.numbers, numbers[:len(numbers)-8]) // the last is the jitter, which is drawn
			cmd.(*redis.Cmd).SetVal([]any{int64(1), int64(0), int64(0), int64(0), int64(0), int64(0)})
		}
		return nil
	}
}

// What is sent is the same whatever the clock of the machine says: no time of its own is in it. So
// machines whose clocks are hours apart keep one pace, by the clock of the server.
func TestNoClockOfTheMachineIsSent(t *testing.T) {
	all := func() [][]byte {
		a := new(asked)
		c := redis.NewClient(&redis.Options{Dialer: refuse, ContextTimeoutEnabled: true, MaxRetries: -1})
		c.AddHook(a)
		s := &redisturns.Store{Client: c}
		ask := turns.Ask{Turn: "ABCDEFGH", Delay: time.Second, Places: 1, Lease: 5 * time.Second}
		for _, kind := range []turns.Kind{turns.Page, turns.Visit, turns.Visitor, turns.Robots} {
			ask.Kind = kind
			if _, err := s.Take(context.Background(), "https://a.example", ask); err != nil {
				t.Error(err)
			}
		}
		for _, e := range []turns.Event{turns.Ended, turns.Dropped, turns.Renewed, turns.Failed, turns.Answered} {
			if err := s.Tell(context.Background(), "https://a.example", turns.Report{Ask: ask, Event: e, Pause: time.Minute}); err != nil {
				t.Error(err)
			}
		}
		s.Close()
		c.Close()
		return a.numbers
	}
	now := all()
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		for _, hours := range []time.Duration{0, 1, 100} {
			time.Sleep(hours * time.Hour)
			if then := all(); !reflect.DeepEqual(then, now) || len(then) != 9 {
				t.Errorf("at %v: %d scripts were given\n%q, and today\n%q", time.Now(), len(then), then, now)
			}
		}
	})
}

func refuse(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") }
