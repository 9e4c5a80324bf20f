package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/cachetest"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// redisServer is a real redis-server of this test's own.
type redisServer struct {
	*proc.Server
	url    string
	client *redis.Client
}

func startRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	server, addr := proc.Redis(t, args...)
	s := &redisServer{server, "redis://" + addr, redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})}
	t.Cleanup(func() { s.client.Close() })
	for start := time.Now(); time.Since(start) < busy; time.Sleep(20 * time.Millisecond) {
		if err := s.client.Ping(t.Context()).Err(); err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return s
		}
	}
	t.Fatal("redis-server does not answer")
	return nil
}

// number is one of those that a Redis tells of itself, in a section of INFO.
func (s *redisServer) number(t *testing.T, section, name string) float64 {
	t.Helper()
	info, err := s.client.InfoMap(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := math.NaN()
	for _, fields := range info {
		if text, ok := fields[name]; ok {
			n, err = strconv.ParseFloat(text, 64)
		}
	}
	if math.IsNaN(n) || err != nil {
		t.Fatalf("%s: %v in %v", name, err, info)
	}
	return n
}

func openRedis(t *testing.T, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRedisPassesTheSuiteForStores(t *testing.T) {
	tier.Gate(t)
	aside(t)
	s := startRedis(t)
	cachetest.TestStore(t, func(t *testing.T) cache.Store {
		if err := s.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return openRedis(t, s.url)
	})
}

// What a Store may count on in Redis: values and locks expire, an over-long value is not read, and a lock is given
// back by its holder alone.
func TestRedisKeepsNothingForEver(t *testing.T) {
	s := startRedis(t)
	store, ctx := openRedis(t, s.url), t.Context()
	if err := store.Put(ctx, "a", []byte("value"), time.Hour); err != nil {
		t.Fatal(err)
	}
	unlock, ok, err := store.Lock(ctx, "a", time.Hour)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	for _, key := range []string{"robotsgate:a", "robotsgate:lock:a"} {
		if left := s.client.PTTL(ctx, key).Val(); left <= 0 || left > time.Hour {
			t.Errorf("%s was set for an hour, and expires in %v", key, left)
		}
	}
	s.do(t, "set", "robotsgate:long", strings.Repeat("x", 1_200<<10))
	if data, err := store.Get(ctx, "long"); err != nil || len(data) != 600<<10+1 {
		t.Errorf("%d bytes of an over-long value were read, %v; want 600 KiB and one", len(data), err)
	}
	s.do(t, "set", "robotsgate:lock:a", "token of another process", "px", 60_000)
	unlock()
	if got := s.client.Get(ctx, "robotsgate:lock:a").Val(); got != "token of another process" {
		t.Errorf("the lock that another process has taken since: %q", got)
	}
}

// timed is a Store that gives what callers wait for a time of its own, whatever a Cache gives it.
type timed struct {
	*redisstore.Store
	most time.Duration
}

func (s timed) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.most)
	defer cancel()
	return s.Store.Get(ctx, key)
}

func (s timed) Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.most)
	defer cancel()
	return s.Store.Lock(ctx, key, ttl)
}

// What an origin takes of Redis on average, beside its file: its robots.txt, over real files, and its turns. What a user
// sees is used_memory, which has the tables of keys and of expiries too, and the buffers of connections: how many there
// are is a matter of how busy the machine is.
func TestAnOriginIsSmallInRedis(t *testing.T) {
	tier.Gate(t)
	s := startRedis(t)
	used := func() float64 {
		return s.number(t, "memory", "used_memory") - s.number(t, "memory", "mem_clients_normal")
	}
	files := slices.Collect(maps.Values(vectors.Corpus(t)))
	mean := float64(len(bytes.Join(files, nil))) / float64(len(files))
	c, store := &cache.Cache{Store: timed{openRedis(t, s.url), busy}}, openTurns(t, s.url)
	for _, row := range []struct {
		name       string
		file, most float64
		put        func(i int) error
	}{
		{"robots.txt", mean, 1024, func(i int) error {
			body := files[i%len(files)]
			load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				return &fetch.Result{StatusCode: 200, Policy: policy.Parse(body), Body: body, Time: time.Now()}, nil
			}
			_, _, err := c.Get(t.Context(), originOf(t, siteURL(i).String()), &cache.Source{Load: load})
			return err
		}},
		{"turns", 0, 512, func(i int) error { // 220 to 390, by how its tables have grown
			name := fmt.Sprintf("https://www.an-origin-of-length%05d.net", i)
			_, err := store.Pause(t.Context(), name, time.Hour)
			_, _, reserveErr := store.Reserve(t.Context(), name, time.Second, 0, 24*time.Hour)
			return errors.Join(err, reserveErr)
		}},
	} {
		const origins, callers = 10_000, 50
		before := used()
		var work sync.WaitGroup
		for from := range callers {
			work.Go(func() {
				for i := from; i < origins; i += callers {
					if err := row.put(i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Wait()
		if err := c.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		each := (used()-before)/origins - row.file
		t.Logf("%s: %.0f bytes of used_memory an origin, beside a file of %.0f", row.name, each, row.file)
		if each > row.most {
			t.Errorf("%s: %.0f bytes of used_memory an origin, want %.0f at most", row.name, each, row.most)
		}
	}
}

// redisFaults are what can be wrong with a Redis. start returns its URL; the origins
// from the 100th on are asked about after midway was called.
var redisFaults = []struct {
	name   string
	start  func(t *testing.T) (url string, midway func())
	misses int           // how many lookups may have to wait, out of 200
	pause  time.Duration // between lookups
}{
	{"down at start", func(t *testing.T) (string, func()) {
		return "redis://127.0.0.1:" + proc.FreePort(t), nil
	}, 20, 0},
	{"killed in mid-run", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		return s.url, s.Kill
	}, 20, 0},
	{"accepting and never answering", func(t *testing.T) (string, func()) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
			}
		}()
		return "redis://" + l.Addr().String(), nil
	}, 20, 0},
	{"stopped in mid-run", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		return s.url, func() { s.Cmd.Process.Signal(syscall.SIGSTOP) }
	}, 20, 0},
	{"READONLY", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		return s.url, func() { s.do(t, "REPLICAOF", "127.0.0.1", "1") }
	}, 10, 0},
	{"OOM", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		return s.url, func() { s.do(t, "CONFIG", "SET", "maxmemory", "1") }
	}, 10, 0},
	{"a value of the wrong type", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		for i := range 200 {
			s.do(t, "RPUSH", fmt.Sprintf("robotsgate:RGC5 http://a%d.example ", i), "element")
		}
		return s.url, nil
	}, 10, 0},
	{"a value of 10 MB", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		for i := range 20 {
			s.do(t, "SET", fmt.Sprintf("robotsgate:RGC5 http://a%d.example ", 10*i), strings.Repeat("x", 10_000_000))
		}
		return s.url, nil
	}, 20, 0},
	{"flapping", func(t *testing.T) (string, func()) {
		s := startRedis(t)
		ctx, cancel := context.WithCancel(context.Background())
		var flapping sync.WaitGroup
		t.Cleanup(func() { cancel(); flapping.Wait() })
		flapping.Go(func() {
			for up := false; ctx.Err() == nil; up = !up {
				s.Cmd.Process.Signal(map[bool]syscall.Signal{false: syscall.SIGSTOP, true: syscall.SIGCONT}[up])
				time.Sleep(200 * time.Millisecond)
			}
		})
		return s.url, nil
	}, 200, 10 * time.Millisecond},
}

func (s *redisServer) do(t *testing.T, args ...any) {
	t.Helper()
	if err := s.client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// A broken Redis makes no verdict worse, and is left alone. What it costs is held by package cache in virtual time.
func TestABrokenRedisHarmsNoRequest(t *testing.T) {
	tier.Gate(t)
	goroutines := runtime.NumGoroutine()
	t.Run("with", func(t *testing.T) { // returns when all have ended
		for _, fault := range redisFaults {
			t.Run(fault.name, func(t *testing.T) {
				aside(t)
				url, midway := fault.start(t)
				store, err := redisstore.Open(url)
				if err != nil {
					t.Fatal(err)
				}
				var log proc.Log
				c := &cache.Cache{Store: timed{store, 100 * time.Millisecond}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				var fetches atomic.Int32
				for i := range 200 {
					if i == 100 && midway != nil {
						midway()
					}
					time.Sleep(fault.pause)
					askAndCheck(t, c, i, &fetches)
				}
				// A miss gets, locks and puts. Of the writers, 64 at a time, two rounds may fail before it is known.
				if n, most := c.Stats().StoreErrors, 3*fault.misses+2*64; n > uint64(most) {
					t.Errorf("%d calls of the store failed, want at most %d: is the breaker not open?", n, most)
				}
				if n := fetches.Load(); n != 200 {
					t.Errorf("%d fetches of 200 files", n)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				closed := c.Shutdown(ctx)
				store.Close()
				t.Logf("%d errors of the store, Close: %v\n%s", c.Stats().StoreErrors, closed, &log)
				if n := strings.Count(log.String(), "\n"); n > 4 {
					t.Errorf("%d lines in the log, want one for each change", n)
				}
			})
		}
	})
	for range 100 {
		if runtime.NumGoroutine() <= goroutines+2 { // the flapper, and a child's pipe
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", goroutines, runtime.NumGoroutine())
}

// askAndCheck looks up the i-th origin, whose file disallows a path of its own.
func askAndCheck(t *testing.T, c *cache.Cache, i int, fetches *atomic.Int32) {
	path := fmt.Sprintf("/private%d/", i)
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		fetches.Add(1)
		body := []byte("User-agent: *\nDisallow: " + path + "\n")
		return &fetch.Result{StatusCode: 200, Policy: policy.Parse(body), Body: body, Time: time.Now()}, nil
	}
	r, _, err := c.Get(t.Context(), originOf(t, siteURL(i).String()), &cache.Source{Load: load})
	if err != nil || r.Err != nil {
		t.Errorf("origin %d: %v, %+v", i, err, r)
		return
	}
	if r.Policy.Decide("examplebot", path).Allowed || !r.Policy.Decide("examplebot", fmt.Sprintf("/private%d/", i+1)).Allowed {
		t.Errorf("origin %d has not its own rules: %s", i, r.Policy)
	}
}
