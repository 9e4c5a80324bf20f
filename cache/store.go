package cache

import (
	"context"
	"time"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
)

// Store is an optional second level behind the memory of a Cache: for a warm restart, or for several processes that
// share what they know. Package cachetest tests an implementation.
//
// It holds opaque bytes: status, header and file of an answer, for Caches of all dialects. A value has 600 KiB at most;
// a longer one is from no Cache, and a Store need not read it. A key is the version of the value, the origin and
// Source.Reader, with spaces between them. It has up to some 640 bytes, and two may differ in one byte: a Store of
// files should name them by a hash. A Cache verifies what it reads: a value that was damaged, cut, or written under
// another key does no harm. But what can write to a Store can write rules.
//
// Methods must be safe for concurrent use and end when ctx does. At most 64 calls of a kind (Get, Lock, Put) are under
// way at a time. A Put has 5 seconds, and the others, for which callers may wait, 2 seconds: a call that fails by then
// is a failure of the Store, and robots.txt is fetched. After five failures in a row, a Cache makes none of that kind
// for five seconds. To write what it owes, it also calls Get, with 5 seconds, and asks a Store that is left alone. A
// Store that is an io.Closer is closed with its Cache, see [Cache.Close].
type Store interface {
	// Get returns what was last put under the key, or an error that wraps ErrMiss if there is nothing. Any other error is
	// a failure of the Store; return a damaged value as it is, for the Cache checks it. The caller must not modify the
	// bytes.
	Get(ctx context.Context, key string) ([]byte, error)

	// Put stores data under the key, replacing what was there, wholly or not at all. It must not keep data. After ttl
	// the value may be forgotten.
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
}

// Locker is implemented by a Store with which several processes share their fetches. Each origin is then fetched once
// for all of them: a process that does not get the lock waits for what its holder puts.
type Locker interface {
	// Lock tries once to take the lock of the key, and reports whether it did. The lock holds until unlock is called, even
	// past ttl: only if its holder's process dies does it end by itself, after ttl. It keeps two processes from doing the
	// same work and guards nothing else: a lock that was lost costs a fetch, never a wrong answer. A Cache calls unlock
	// once, behind its callers and without a context: it must return within ttl.
	Lock(ctx context.Context, key string, ttl time.Duration) (unlock func(), ok bool, err error)
}

var _ backing.Locker = Locker(nil) // which is the same

// ErrMiss is returned by Store.Get, perhaps wrapped, if there is no value for the key, and by Cache.Get without a Load.
var ErrMiss = backing.ErrMiss // "cache: no value"
