package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns a Store for a URL in one of the forms of go-redis:
//
//	redis://user:password@host:6379/0               // one server, with its database
//	unix://user:password@/run/redis.sock?db=0       // the same over a socket
//	redis://host:26379?master_name=mymaster         // the master that a Sentinel names
//	redis://user:password@host:6379?addr=host2:6379 // a cluster
//
// Each addr=host:port is another Sentinel, or another node of the cluster. Name two nodes of a
// cluster, or one twice; it finds the others. A node that is opened as one server answers MOVED. For
// Sentinels, a user and password before the host are theirs, and username= and password= those of
// the master.
//
// With rediss:// instead of redis:// it speaks TLS. It trusts the roots of the system, for
// which Linux reads SSL_CERT_FILE and SSL_CERT_DIR. Other parameters, such as pool_size and
// dial_timeout, are those of redis.ParseURL, redis.ParseFailoverURL and redis.ParseClusterURL. In
// a password, what is neither letter nor digit must be escaped, / as %2F.
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
	for _, addr := range q["addr"] {
		if strings.Contains(addr, "@") {
			return nil, errors.New("addr in the Redis URL is HOST:PORT; the user and password of the URL are for all")
		}
	}
	return newClient(u, raw)
}

func newClient(u *url.URL, raw string) (redis.UniversalClient, error) {
	switch q := u.Query(); {
	case q.Has("master_name"):
		opt, err := redis.ParseFailoverURL(raw)
		if err != nil {
			return nil, wrong(err, "redis://localhost:26379?master_name=mymaster")
		}
		if opt.MasterName == "" {
			return nil, errors.New("master_name is empty: set it to the name that the Sentinels have for the master")
		}
		opt.ContextTimeoutEnabled, opt.MaxRetries, opt.DialerRetries = true, -1, 1
		opt.DisableIdentity, opt.PoolSize = true, cmp.Or(opt.PoolSize, poolSize)
		return redis.NewFailoverClient(opt), nil
	case q.Has("addr"):
		if db := strings.Trim(u.Path, "/"); db != "" && db != "0" {
			return nil, fmt.Errorf("database %q of a cluster, which has 0 only: leave it out, and set Prefix", db)
		}
		opt, err := redis.ParseClusterURL(raw)
		if err != nil {
			return nil, wrong(err, "redis://host1:6379?addr=host2:6379")
		}
		opt.ContextTimeoutEnabled, opt.MaxRetries, opt.DialerRetries = true, -1, 1
		opt.DisableIdentity, opt.PoolSize = true, cmp.Or(opt.PoolSize, poolSize)
		opt.MaintNotificationsConfig = briefGreeting
		return redis.NewClusterClient(opt), nil
	}
	opt, err := redis.ParseURL(raw)
	if err != nil {
		return nil, wrong(err, "redis://localhost:6379/0")
	}
	opt.ContextTimeoutEnabled, opt.MaxRetries, opt.DialerRetries = true, -1, 1
	opt.DisableIdentity, opt.PoolSize = true, cmp.Or(opt.PoolSize, poolSize)
	opt.MaintNotificationsConfig = briefGreeting
	return redis.NewClient(opt), nil
}

// briefGreeting, with DisableIdentity, makes a greeting two round trips, and not four.
var briefGreeting = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// wrong says what go-redis found wrong, and how it is done.
func wrong(err error, example string) error {
	return fmt.Errorf("%s; such a Redis URL is %s", strings.TrimPrefix(err.Error(), "redis: "), example)
}

// keepsDeadlines reports whether the client's calls end with their contexts, as far as that can
// be seen.
func keepsDeadlines(c redis.UniversalClient) bool {
	switch c := c.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	}
	return true
}
