package cache

import (
	"context"
	"errors"
	"time"
)

// Store is an optional second level behind the memory of a Cache, for a restart that
// starts warm or for several processes. It holds opaque bytes. Its methods must be safe
// for concurrent use and should end when ctx does.
type Store interface {
	// Get returns what was last put under the key. It returns ErrMiss if there is
	// nothing. The caller must not modify the bytes.
	Get(ctx context.Context, key string) ([]byte, error)

	// Put stores data under the key, replacing what was there, wholly or not at all.
	// It must not keep data. After ttl the value may be forgotten.
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
}

// ErrMiss is returned, as it is or wrapped, by Store.Get if there is no value for the key.
var ErrMiss = errors.New("cache: miss")
