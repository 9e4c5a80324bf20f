// Package cache keeps robots.txt results per origin and decides how long they hold (RFC 9309 §2.4, RFC 9111).
package cache

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

type Cache struct {
	Size       int
	MaxBytes   int64
	MinTTL     time.Duration
	MaxTTL     time.Duration
	DefaultTTL time.Duration
	MaxStale   time.Duration
	Store      Store
	Logger     *slog.Logger
	m          sync.Map
}

type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte, ttl time.Duration) error
}

var ErrMiss = errors.New("cache: miss")

func FreshnessLifetime(*fetch.Result) time.Duration { return 24 * time.Hour }

// Get is a place-holder.
func (c *Cache) Get(ctx context.Context, o fetch.Origin, load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)) (*fetch.Result, error) {
	if v, ok := c.m.Load(o); ok {
		return v.(*fetch.Result), nil
	}
	r, err := load(ctx, o, nil)
	if err == nil {
		c.m.Store(o, r)
	}
	return r, err
}

func (c *Cache) Close(ctx context.Context) error { return nil }
