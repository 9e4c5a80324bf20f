// Package redisstore is a cache.Store in Redis, or in what speaks its protocol: robots.txt
// results (RFC 9309 §2.4) are shared by all processes that use the server, which fetch
// each file once for all of them. The clocks of their machines have to agree to a minute: a process takes no
// result from its future, and fetches the file itself.
//
// The server may be alone, under Sentinel or a cluster; see Open. A failover, or a server that
// comes back without its memory, costs fetches and no more: each process goes on with what it has
// in its own memory, and puts each file there when it next reads it (sooner, after a restart).
// If users are told apart (ACL), one for a crawler is
//
//	ACL SETUSER crawler on >password ~robotsgate:* &robotsgate:* +@all -@admin -@dangerous
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
)

// Store implements cache.Store and cache.Locker. It is safe for concurrent use and must not be
// copied. If the server may evict values (maxmemory-policy), that costs fetches and nothing else.
type Store struct {
	// Client talks to one server, to the master that Sentinels name, or to a cluster. Set
	// ContextTimeoutEnabled in its options: otherwise a silent server holds each call for five
	// seconds, whatever its deadline. A client without that option is refused, with an error
	// from every call. Open makes one. If nil, every call but Close fails and says so.
	Client redis.UniversalClient

	// Prefix goes before all keys. If empty, "robotsgate:".
	Prefix string
}

// Close closes the client. The cache.Cache that has the Store does this when it is closed.
func (s *Store) Close() error {
	if s.Client == nil {
		return nil
	}
	return s.Client.Close()
}

// Get implements cache.Store. It reads no more than cache.MaxValue bytes and one. What no Cache puts, such as
// another type, is an error and not cache.ErrMiss: there was something.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var there *redis.IntCmd
	var value *redis.StringCmd
	_, err := s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		there, value = p.Exists(ctx, s.key(key)), p.GetRange(ctx, s.key(key), 0, cache.MaxValue)
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("redisstore: get: %w", err)
	case value.Val() == "" && there.Val() == 0:
		return nil, cache.ErrMiss
	case value.Val() == "":
		return nil, errors.New("redisstore: get: an empty value")
	}
	return value.Bytes()
}

// Put implements cache.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.Client.Set(ctx, s.key(key), data, max(ttl, time.Second)).Err(); err != nil {
		return fmt.Errorf("redisstore: put: %w", err)
	}
	return nil
}

// Only the holder of a lock knows its token. So a process can neither extend nor release a
// lock that another one has taken since.
var (
	extendScript = redis.NewScript(`
		if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
		return 0`)
	unlockScript = redis.NewScript(`
		if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
		return 0`)
)

// Lock implements cache.Locker. A goroutine renews the lock until unlock is called, or the
// lock is lost; ctx is for the call only.
func (s *Store) Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error) {
	if err := s.usable(); err != nil {
		return nil, false, err
	}
	l := lock{
		store: s, key: s.key("lock:" + key), token: rand.Text(),
		ttl: max(ttl, 10*time.Millisecond), done: make(chan struct{}),
	}
	switch ok, err = s.Client.SetNX(ctx, l.key, l.token, l.ttl).Result(); {
	case err != nil:
		if late, _ := errors.AsType[net.Error](err); ctx.Err() != nil || late != nil && late.Timeout() {
			go l.release() // it may yet be given
		}
		return nil, false, fmt.Errorf("redisstore: lock: %w", err)
	case !ok:
		return nil, false, nil
	}
	go l.renew()
	return sync.OnceFunc(l.release), true, nil
}

// lock is a lock that is held.
type lock struct {
	store *Store
	key   string
	token string
	ttl   time.Duration
	done  chan struct{}
}

func (l *lock) renew() {
	tick := time.NewTicker(l.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
		}
		// An error may pass. A lock that another process has does not come back.
		if n, err := l.run(extendScript, l.ttl.Milliseconds()); err == nil && n == 0 {
			return
		}
	}
}

func (l *lock) release() {
	close(l.done)
	_, _ = l.run(unlockScript) // otherwise it lapses
}

func (l *lock) run(script *redis.Script, args ...any) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(l.ttl/3, 100*time.Millisecond))
	defer cancel()
	return script.Run(ctx, l.store.Client, []string{l.key}, append([]any{l.token}, args...)...).Int()
}

func (s *Store) key(key string) string { return cmp.Or(s.Prefix, "robotsgate:") + key }

func (s *Store) usable() error {
	if s.Client == nil {
		return errors.New("redisstore: Store has no Client; make one with Open")
	}
	if !keepsDeadlines(s.Client) {
		return errors.New("redisstore: Client was made without ContextTimeoutEnabled; set it in its options, or use Open")
	}
	return nil
}
