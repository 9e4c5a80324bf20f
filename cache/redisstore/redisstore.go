// Package redisstore is a cache.Store in Redis, or in what speaks its protocol: robots.txt results (RFC 9309 §2.4) are
// shared by all processes that use the server, which fetch each file once for all of them. The clocks of their machines
// have to agree to a minute: a process takes no result from its future, and fetches the file itself.
//
// The server may be alone, under Sentinel or a cluster; see Open. A failover, or a server that comes back without its
// memory, costs fetches and no more: each process goes on with what it has in its own memory, and puts each file there
// when it next reads it (sooner, after a restart). If the server has access control (ACL), a user for crawlers is
//
//	ACL SETUSER crawler on >password ~robotsgate:* &robotsgate:* +@all -@admin -@dangerous
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/robotsgate/robotsgate/cache"
)

// Store implements cache.Store and cache.Locker. It is safe for concurrent use and must not be copied. If the server
// may evict values (maxmemory-policy), that costs fetches and nothing else.
type Store struct {
	// Client talks to one server, to the master that Sentinels name, or to a cluster. Open makes one. In the options of
	// another, set ContextTimeoutEnabled: otherwise a silent server holds each call for five seconds, whatever its
	// deadline. If nil, every call panics.
	Client redis.UniversalClient

	// Prefix goes before all keys. If empty, "robotsgate:".
	Prefix string
}

const maxValue = 600 << 10 // that a Cache puts

// Close closes the client. The cache.Cache that has the Store does this when it is closed.
func (s *Store) Close() error { return s.Client.Close() }

// Get implements cache.Store. It reads no more than 600 KiB and a byte. What no Cache puts, such as
// an empty value or one of another type, is never cache.ErrMiss: there was something.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	var there *redis.IntCmd
	var value *redis.StringCmd
	_, err := s.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		there, value = p.Exists(ctx, s.key(key)), p.GetRange(ctx, s.key(key), 0, maxValue)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("redisstore: get: %w", err)
	}
	if value.Val() == "" && there.Val() == 0 {
		return nil, cache.ErrMiss
	}
	return value.Bytes()
}

// Put implements cache.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	if err := s.Client.Set(ctx, s.key(key), data, max(ttl, time.Second)).Err(); err != nil {
		return fmt.Errorf("redisstore: put: %w", err)
	}
	return nil
}

// Lock implements cache.Locker. A goroutine renews the lock until unlock is called, or the lock is lost; ctx is for the
// call only. After an error, another one gives back what the server may have given all the same.
func (s *Store) Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error) {
	l := lock{s, s.key("lock:" + key), rand.Text(), max(ttl, 10*time.Millisecond)}
	if ok, err = s.Client.SetNX(ctx, l.key, l.token, l.ttl).Result(); err != nil {
		go l.hold(0) // it may yet be given
		return nil, false, fmt.Errorf("redisstore: lock: %w", err)
	}
	if !ok {
		return nil, false, nil
	}
	done := make(chan struct{})
	go l.renew(done)
	return sync.OnceFunc(func() {
		close(done)
		_, _ = l.hold(0) // otherwise it lapses
	}), true, nil
}

// lock is a lock that is held. Only its holder knows the token, so no process can renew or give back a lock that
// another one has taken since.
type lock struct {
	store      *Store
	key, token string
	ttl        time.Duration
}

func (l *lock) renew(done <-chan struct{}) {
	tick := time.NewTicker(l.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		// An error may pass. A lock that another process has does not come back.
		if held, err := l.hold(l.ttl); err == nil && !held {
			return
		}
	}
}

// holdScript has a lock lapse in so many milliseconds; with zero Redis deletes it at once.
var holdScript = redis.NewScript(`
	return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("PEXPIRE", KEYS[1], ARGV[2]) or 0`)

// hold has the lock lapse after d, and reports whether it is still held. With zero it is given back.
func (l *lock) hold(d time.Duration) (held bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(l.ttl/3, 100*time.Millisecond))
	defer cancel()
	return holdScript.Run(ctx, l.store.Client, []string{l.key}, l.token, d.Milliseconds()).Bool()
}

func (s *Store) key(key string) string { return cmp.Or(s.Prefix, "robotsgate:") + key }

// Open returns a Store for a URL in one of the forms of go-redis:
//
//	redis://user:password@host:6379/0               // one server, with its database
//	unix://user:password@/run/redis.sock?db=0       // the same over a socket
//	redis://host:26379?master_name=mymaster         // the master that a Sentinel names
//	redis://user:password@host:6379?addr=host2:6379 // a cluster
//
// Each addr=host:port is another Sentinel, or another node of the cluster. Name two nodes of a cluster, or one twice;
// it finds the others. A node that is opened as one server answers MOVED. For Sentinels, a user and password before the
// host are theirs, and username= and password= those of the master.
//
// With rediss:// instead of redis:// it speaks TLS. It trusts the roots of the system, for which Linux reads
// SSL_CERT_FILE and SSL_CERT_DIR. Other parameters, such as pool_size and dial_timeout, are those of redis.ParseURL,
// redis.ParseFailoverURL and redis.ParseClusterURL. In a password, what is neither letter nor digit must be escaped, /
// as %2F.
//
// The client has 64 connections at most (pool_size; in a cluster, to each node). It keeps to deadlines and does
// not retry, which a cache.Cache does itself. A redisturns.Store can share it. No server need run yet.
//
// go-redis logs each failure of a connection on standard error, for all its clients. Open gives these lines
// to slog at level Debug, because the Cache reports an outage once; redis.SetLogger, called later, takes them.
func Open(url string) (*Store, error) {
	c, err := open(url)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	redis.SetLogger(debug{})
	return &Store{Client: c}, nil
}

// debug is a logger for go-redis.
type debug struct{}

func (debug) Printf(ctx context.Context, format string, args ...any) {
	slog.DebugContext(ctx, "redisstore: go-redis says", "line", fmt.Sprintf(format, args...))
}

// poolSize is how many connections a process has to a server. With 64, 300 misses of one moment at a server
// 50 ms away take a quarter of a second.
const poolSize = 64

// open quotes nothing of a URL that could be a password, whatever was meant by the URL.
func open(raw string) (redis.UniversalClient, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || !slices.Contains([]string{"redis", "rediss", "unix"}, u.Scheme) ||
		strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") {
		return nil, errors.New("not a Redis URL, such as redis://user:password@localhost:6379/0 " +
			"(rediss:// with TLS, unix:///run/redis.sock); escape what is neither letter nor digit in a password, / as %2F")
	}
	q := u.Query()
	for _, name := range []string{"read_only", "replica_only", "route_by_latency", "route_randomly"} {
		if q.Has(name) {
			return nil, fmt.Errorf("%s in the Redis URL: leave it out, because replicas lag behind and take no locks", name)
		}
	}
	if strings.Contains(strings.Join(q["addr"], " "), "@") {
		return nil, errors.New("addr in the Redis URL is HOST:PORT; the user and password of the URL are for all")
	}
	switch {
	case q.Has("master_name"):
		return openSentinel(raw)
	case q.Has("addr"):
		return openCluster(raw, strings.Trim(u.Path, "/"))
	}
	o, err := redis.ParseURL(raw)
	if err != nil {
		return nil, wrong(err, "redis://localhost:6379/0")
	}
	set(&o.ContextTimeoutEnabled, &o.DisableIdentity, &o.MaxRetries, &o.DialerRetries, &o.PoolSize)
	o.MaintNotificationsConfig = briefGreeting
	return redis.NewClient(o), nil
}

func openSentinel(raw string) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(raw)
	if err == nil && o.MasterName == "" {
		err = errors.New("master_name is empty")
	}
	if err != nil {
		return nil, wrong(err, "redis://localhost:26379?master_name=mymaster")
	}
	set(&o.ContextTimeoutEnabled, &o.DisableIdentity, &o.MaxRetries, &o.DialerRetries, &o.PoolSize)
	return redis.NewFailoverClient(o), nil
}

func openCluster(raw, db string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(raw)
	if err == nil && db != "" && db != "0" {
		err = fmt.Errorf("database %q of a cluster, which has 0 only: set Prefix", db)
	}
	if err != nil {
		return nil, wrong(err, "redis://host1:6379?addr=host2:6379")
	}
	set(&o.ContextTimeoutEnabled, &o.DisableIdentity, &o.MaxRetries, &o.DialerRetries, &o.PoolSize)
	o.MaintNotificationsConfig = briefGreeting
	return redis.NewClusterClient(o), nil
}

// set gives the options what go-redis has three kinds of.
func set(deadlines, brief *bool, retries, dials, pool *int) {
	*deadlines, *brief, *retries, *dials, *pool = true, true, -1, 1, cmp.Or(*pool, poolSize)
}

// briefGreeting, with DisableIdentity, makes a greeting two round trips, and not four.
var briefGreeting = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// wrong says what go-redis found wrong, and how it is done.
func wrong(err error, example string) error {
	return fmt.Errorf("%s; such a Redis URL is %s", strings.TrimPrefix(err.Error(), "redis: "), example)
}
