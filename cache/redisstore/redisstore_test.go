package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
)

// What needs a server is tested in folder integration_test.

func TestOpenSaysWhatIsWrongAndKeepsThePassword(t *testing.T) {
	const form = "redis://user:password@localhost:6379/0"
	for _, tt := range []struct{ url, says string }{
		{"", form},
		{"localhost:6379", form},
		{"redis:localhost:6379", "redis"},
		{"http://user:secret@localhost", form},
		{"redis://user:sec%zzret@localhost", "%2F"},
		{"redis://user:sec/secret@localhost:6379/0", "%2F"},
		{"redis://user:12/secret@localhost:6379/0", "%2F"},
		{"redis://user:12?secret@localhost:6379/0", "%2F"},
		{"redis://user:12#secret@localhost:6379/0", "%2F"},
		{"redis://user:secret@localhost:6379/x", `"x"; such a Redis URL is redis://localhost:6379/0`},
		{"redis://user:secret@localhost:6379/0?pool_size=many", `"many"`},
		{"redis://user:secret@localhost:6379/0?poolsize=3", "poolsize"},
		{"unix://user:secret@", "socket"},
		{"redis://user:secret@localhost:26379?master_name=", "master_name is empty"},
		{"redis://localhost:26379?master_name=m&password=secret&user=u", "option: user; such a Redis URL is redis://localhost:26379?master_name=mymaster"},
		{"redis://localhost:26379?master_name=m&route_randomly=true", "route_randomly"},
		{"redis://localhost:26379?master_name=m&replica_only=1", "replica_only"},
		{"redis://localhost:6379?addr=localhost", `localhost; such a Redis URL is redis://host1:6379?addr=host2:6379`},
		{"redis://localhost:6379?addr=u:secret%40localhost:6379", "HOST:PORT"},
		{"redis://user:secret@localhost:6379/3?addr=localhost:6380", `"3" of a cluster`},
		{"redis://user:secret@localhost:6379?addr=localhost:6380&read_only=true", "read_only"},
	} {
		s, err := redisstore.Open(tt.url)
		if err == nil {
			t.Errorf("%q: got a Store, want an error with %q", tt.url, tt.says)
			s.Close()
			continue
		}
		if text := err.Error(); !strings.Contains(text, tt.says) || strings.Contains(text, "secret") || !strings.HasPrefix(text, "redisstore: ") {
			t.Errorf("%q: got %v, want redisstore: and %q, and no secret", tt.url, err, tt.says)
		}
	}
}

func TestOpenMakesTheClientThatTheURLNames(t *testing.T) {
	const master = "FailoverClient"
	for _, tt := range []struct {
		url, addr, user, password string
		pool                      int
	}{
		{"redis://localhost", "localhost:6379", "", "", 64},
		{"redis://user:pass%2Fword@localhost:6380/3", "localhost:6380", "user", "pass/word", 64},
		{"rediss://:word@[::1]", "[::1]:6379", "", "word", 64},
		{"unix://user:word@/run/redis.sock?db=2", "/run/redis.sock", "user", "word", 64},
		{"redis://their:word@localhost:26379/1?master_name=m&addr=localhost:26380&username=u&password=p", master, "u", "p", 64},
		{"redis://user:word@localhost:6379?addr=localhost:6380&pool_size=3", "localhost:6379 localhost:6380", "user", "word", 3},
		{"rediss://localhost:6379/0?addr=localhost:6379", "localhost:6379 localhost:6379", "", "", 64},
	} {
		s, err := redisstore.Open(tt.url)
		if err != nil {
			t.Errorf("%s: got %v, want a Store", tt.url, err)
			continue
		}
		o := &redis.Options{}
		switch c := s.Client.(type) {
		case *redis.Client:
			o = c.Options()
		case *redis.ClusterClient:
			of := c.Options()
			o = &redis.Options{
				Addr: strings.Join(of.Addrs, " "), Username: of.Username, Password: of.Password, TLSConfig: of.TLSConfig,
				ContextTimeoutEnabled: of.ContextTimeoutEnabled, MaxRetries: of.MaxRetries, PoolSize: of.PoolSize,
			}
		}
		if o.Addr != tt.addr || o.Username != tt.user || o.Password != tt.password || o.PoolSize != tt.pool {
			t.Errorf("%s: got %q, user %q, password %q, %d connections, want %q, %q, %q, %d",
				tt.url, o.Addr, o.Username, o.Password, o.PoolSize, tt.addr, tt.user, tt.password, tt.pool)
		}
		secure := strings.HasPrefix(tt.url, "rediss:")
		if !o.ContextTimeoutEnabled || o.MaxRetries > 0 || (o.TLSConfig != nil) != secure {
			t.Errorf("%s: got deadlines kept: %t, retries: %d, TLS: %t, want true, 0, %t",
				tt.url, o.ContextTimeoutEnabled, o.MaxRetries, o.TLSConfig != nil, secure)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// server is a hook in place of a server that answers each command after a time.
type server struct {
	latency time.Duration
	answer  func(redis.Cmder) error
}

func (s server) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s server) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-time.After(s.latency):
			cmd.SetErr(s.answer(cmd))
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
		}
		return cmd.Err()
	}
}

func (server) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A lock whose caller has left may have been given all the same: it is given back, or its origin would be fetched by
// no one for a while.
func TestALockThatComesTooLateIsGivenBack(t *testing.T) {
	for name, row := range map[string]struct {
		latency, patience time.Duration
		err               error
	}{
		"the caller's time is over":     {time.Second, 100 * time.Millisecond, nil},
		"the caller is cancelled":       {time.Second, time.Minute, nil},
		"the connection's time is over": {0, 100 * time.Millisecond, os.ErrDeadlineExceeded},
		"the connection breaks":         {0, 100 * time.Millisecond, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []string
				c := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", MaxRetries: -1, ContextTimeoutEnabled: true})
				defer c.Close()
				c.AddHook(server{row.latency, func(cmd redis.Cmder) error {
					if cmd.Name() == "set" || cmd.Name() == "setnx" {
						return row.err
					}
					sent = append(sent, fmt.Sprint(cmd.Name(), " ", cmd.Args()[3]))
					return nil
				}})
				ctx, cancel := context.WithTimeout(t.Context(), row.patience)
				time.AfterFunc(500*time.Millisecond, cancel)
				if _, ok, err := (&redisstore.Store{Client: c}).Lock(ctx, "a", 9*time.Second); ok || err == nil {
					t.Errorf("got %t, %v, want false and an error", ok, err)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if got := strings.Join(sent, ", "); got != "evalsha robotsgate:lock:a" {
					t.Errorf("then sent %q, want evalsha robotsgate:lock:a", got)
				}
			})
		})
	}
}

// The Cache reports an outage once. go-redis would add a line for each connection that fails.
func TestAnOutageIsNotOnStandardError(t *testing.T) {
	var said bytes.Buffer
	before, stderr := slog.Default(), os.Stderr
	defer func() { slog.SetDefault(before); os.Stderr = stderr }()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = write
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s, err := redisstore.Open("redis://127.0.0.1:1/0") // a closed port
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Get(t.Context(), "https://a.example"); err == nil || errors.Is(err, cache.ErrMiss) {
			t.Errorf("got %v, want an error that is no miss", err)
		}
	}
	s.Close()
	write.Close()
	if text, _ := io.ReadAll(read); len(text) > 0 {
		t.Errorf("got %q on standard error, want nothing", text)
	}
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, "level=DEBUG") {
			t.Errorf("logged %q, want level=DEBUG alone", line)
		}
	}
	if !strings.Contains(said.String(), "failed to dial") {
		t.Errorf("logged %q: go-redis says nothing, or another thing", said.String())
	}
}
