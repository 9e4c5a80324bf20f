package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
	"weak"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/fetch"
)

// gate answers questions over the network. It is the client.Transport that programs use,
// asked and not sent through.
type gate struct {
	*client.Transport
	fetches atomic.Int64                  // by lookup
	file    *boltstore.Store              // nil: there is none
	turns   *redisturns.Store             // nil: there is none
	answers *lru.Cache[answerOf, *answer] // nil: none is asked for again
}

// answerOf tells whose answer is kept. The result is the Cache's: it bounds what rules take, and what
// it has dropped must not stay in memory for its answer.
type answerOf = weak.Pointer[fetch.Result]

// What a gate keeps in memory: more than a crawler's cache by default, as a list of
// URLs may come back to an origin after any number of others. Beyond that an origin
// is asked again, unless --cache has its file.
const (
	maxOrigins  = 1 << 20
	maxPolicies = 256 << 20
)

// open makes a gate from the flags. It reports on errs if the store of --cache fails.
func (n *network) open(errs io.Writer) (*gate, error) {
	if n.timeout <= 0 {
		return nil, usagef("--timeout is %s: give more than 0s", n.timeout)
	}
	if !httpguts.ValidHeaderFieldValue(n.userAgent) {
		return nil, usagef("--user-agent %q cannot be sent: leave out control characters", n.userAgent)
	}
	hook, err := n.signing.hook()
	if err != nil {
		return nil, err
	}
	base, err := n.transport()
	if err != nil {
		return nil, err
	}
	store, file, err := openStore(n.cacheAt)
	if errors.Is(err, boltstore.ErrDamaged) {
		// All that it could save is fetches. It is not ours to remove: it may be another program's.
		fmt.Fprintf(errs, "robots: %s; going on without it\n", visible(err.Error()))
		err = nil
	}
	if err != nil {
		return nil, err
	}
	f := &fetch.Fetcher{
		Transport: base, UserAgent: n.userAgent, Dialect: n.dialect.Dialect, Timeout: n.timeout, Sign: n.headers.hook(hook),
		ObeyWalls: n.obeyWalls,
	}
	c := newCache(store, errs)
	return &gate{Transport: &client.Transport{
		Base: base, Token: n.agent.String(), Fetcher: f, Cache: c, Sign: f.Sign,
	}, file: file}, nil
}

// newCache makes the cache of a run.
func newCache(store cache.Store, errs io.Writer) *cache.Cache {
	return &cache.Cache{
		Size:      maxOrigins,
		MaxBytes:  maxPolicies,
		Store:     store,
		NoRefresh: true, // a refresh behind the callers would come after the run
		Logger:    slog.New(slog.NewTextHandler(errs, nil)),
		// A list can wait for its own file, to read and to write it; a site need not be
		// asked twice for that.
		StoreTimeout: 10 * time.Second,
	}
}

// lookup returns what is known of o's robots.txt, fetching it where it must.
func (g *gate) lookup(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	load := func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		g.fetches.Add(1)
		return g.Fetcher.Fetch(ctx, o, prev)
	}
	return g.Cache.Get(ctx, o, g.source(load))
}

// load is the signature of (*fetch.Fetcher).Fetch.
type load = func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)

func (g *gate) source(l load) *cache.Source {
	return &cache.Source{
		Load: l, UserAgent: g.Fetcher.UserAgent, Dialect: g.Fetcher.Dialect,
		Signed: g.Fetcher.Sign != nil, PublicOnly: g.Fetcher.PublicOnly, ObeyWalls: g.Fetcher.ObeyWalls,
	}
}

// until is when o is asked again if res says that it is unreachable, as the cache has it if it has
// an answer of o.
func (g *gate) until(o fetch.Origin, res *fetch.Result) time.Time {
	src := g.source(nil)
	src.Dialect = res.Dialect
	if t := g.Cache.Until(o, src); !t.IsZero() {
		return t
	}
	return cache.Until(res)
}

// answer is what the server of o said. What does not change is computed once for each result.
func (g *gate) answer(o fetch.Origin, res *fetch.Result) *answer {
	if res.Err != nil || g.answers == nil {
		return newAnswer(o, res, g.until(o, res))
	}
	key := weak.Make(res)
	a, ok := g.answers.Get(key)
	if !ok {
		a = newAnswer(o, res, time.Time{})
		g.answers.Add(key, a)
	}
	now := *a
	now.Age = ageOf(res)
	return &now
}

// fetch asks o's server, whatever a cache holds, and keeps the file.
func (g *gate) fetch(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	return g.Fetcher.Fetch(ctx, o, nil)
}

// share makes the turns of g those of all processes that use its Redis server, if it has one.
// count may wrap what it is told.
func (g *gate) share(count func(turns.Store) turns.Store) {
	if s, ok := g.Cache.Store.(*redisstore.Store); ok {
		g.turns = &redisturns.Store{Client: s.Client}
		g.Pacer.Turns = count(g.turns)
	}
}

// ping asks the server of turns whether it is there. If there is none, all is well.
func (g *gate) ping(ctx context.Context) error {
	if g.turns == nil {
		return nil
	}
	return g.turns.Client.Ping(ctx).Err()
}

// end writes to the store what is not there yet, and closes it. That has to be done
// after an interruption too, and what goes wrong is no reason to hide another error.
func (g *gate) end(ctx context.Context, a *app) {
	const flushTime = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if g.turns != nil {
		g.turns.Close()
	}
	var o output
	if err := g.Cache.Shutdown(ctx); g.file == nil {
		o.warn(err) // a Redis that is down costs fetches, no answers
	} else {
		o.complain(err)
	}
	a.emit(&o)
}
