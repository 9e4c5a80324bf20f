// Package redisturns is a turns.Store in Redis, or in what speaks its protocol and runs its scripts: all processes that
// use the server keep one pace at each origin.
//
// Each call is one script and one round trip. Times are by the server's clock, so the clocks of the processes may
// differ. An origin is one key, which lapses by itself a minute after its latest delay and pause.
//
// The server may be alone, under Sentinel or a cluster. After a failover, or a restart without memory, a start of each
// origin may come too early, even in a pause: then the site's answer restores the pause. While there is no server,
// requests wait (see client.Pacer), and go-redis logs failed connections in its own way: redis.SetLogger takes that.
package redisturns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/client/turns"
)

// Store implements turns.Store. It is safe for concurrent use, must not be copied, and owns nothing that has to be
// closed. Its fields must not change after the first use. The server must not evict what has not expired: under
// maxmemory-policy allkeys-lru and its like, an origin that is evicted may start once too early.
type Store struct {
	// Client talks to one server, to the master that Sentinels name, or to a cluster. redisstore.Open makes one from a
	// URL, and can share it. Set ContextTimeoutEnabled in the options of another: a client without it is refused, with an
	// error from every call. If nil, every call fails and says so.
	Client redis.UniversalClient

	// Prefix goes before all keys. Processes with different prefixes know nothing of each other's turns. If empty,
	// "robotsgate:".
	Prefix string

	once sync.Once
	born *lru.Cache[string, int64] // of the keys of the latest starts: when Redis made them
}

// mostBorn is of how many origins a loss is found out.
const mostBorn = 50_000

var _ turns.Store = (*Store)(nil)

// The state of an origin is a hash: its fields last, next and resume are those of turns.Store, in microseconds of the
// server's clock. A double holds them until the year 2255. The field born is when the key was made: another value than
// before says that Redis lost its memory.
const begin = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local v = redis.call('HMGET', KEYS[1], 'last', 'next', 'resume', 'born')
local last, free, resume, born = tonumber(v[1] or nil), tonumber(v[2] or 0), tonumber(v[3] or 0), tonumber(v[4] or 0)
local a = tonumber(ARGV[1])
local function save(...)
	if born == 0 then born = now end
	redis.call('HSET', KEYS[1], 'born', born, ...)
	redis.call('PEXPIREAT', KEYS[1], math.ceil(math.max(free, resume) / 1000) + 60000)
end
`

// reserve answers with the wait, 1 if it is reserved, and born.
var reserve = redis.NewScript(begin + `
local at = math.max(now, free, resume)
if last then at = math.max(at, last + a) end
if at - now > tonumber(ARGV[3]) then return {at - now, 0, born} end
last = at + tonumber(ARGV[2])
free = last + a
save('last', last, 'next', free)
return {at - now, 1, born}
`)

// pause answers with the rest of the pause, 1, and born: 0 if there is no key.
var pause = redis.NewScript(begin + `
if a > 0 and now + a > resume then
	resume = now + a
	save('resume', resume)
end
return {math.max(resume - now, 0), 1, born}
`)

// Reserve implements turns.Store.
func (s *Store) Reserve(ctx context.Context, key string, delay, late, within time.Duration) (wait time.Duration, ok bool, err error) {
	got, err := s.run(ctx, reserve, key, ceil(delay), ceil(late), max(within, 0).Microseconds())
	if err != nil {
		return 0, false, fmt.Errorf("redisturns: reserve: %w", err)
	}
	if ok = got[1] == 1; ok {
		s.born.Add(key, got[2])
	}
	return time.Duration(got[0]) * time.Microsecond, ok, nil
}

// Pause implements turns.Store.
func (s *Store) Pause(ctx context.Context, key string, d time.Duration) (rest time.Duration, err error) {
	got, err := s.run(ctx, pause, key, ceil(d))
	if err != nil {
		return 0, fmt.Errorf("redisturns: pause: %w", err)
	}
	if born, known := s.born.Get(key); d <= 0 && known && born != got[2] {
		s.born.Remove(key)
		return 0, turns.ErrForgotten
	}
	return time.Duration(got[0]) * time.Microsecond, nil
}

// run runs a script for an origin, whose key is in one slot of a cluster.
func (s *Store) run(ctx context.Context, script *redis.Script, key string, args ...any) ([]int64, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.once.Do(func() { s.born, _ = lru.New[string, int64](mostBorn) }) // errs only below 1
	keys := []string{cmp.Or(s.Prefix, "robotsgate:") + "starts:{" + key + "}"}
	got, err := script.Run(ctx, s.Client, keys, args...).Int64Slice()
	if err == nil && (len(got) != 3 || got[0]>>53 != 0) { // negative, or more than a time.Duration holds
		err = errors.New("an answer of another form")
	}
	return got, err
}

// ceil is d in microseconds, and zero if that is negative.
func ceil(d time.Duration) int64 { return (max(d, 0) + time.Microsecond - 1).Microseconds() }

// ready returns why Client cannot be asked.
func (s *Store) ready(ctx context.Context) error {
	deadlines := true // as far as can be seen
	switch c := s.Client.(type) {
	case nil:
		return errors.New("the Store has no Client; set that of redisstore.Open")
	case *redis.Client:
		deadlines = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		deadlines = c.Options().ContextTimeoutEnabled
	}
	if !deadlines {
		return errors.New("the Client was made without ContextTimeoutEnabled; set it in its options")
	}
	return ctx.Err()
}
