// Package site asks sites for their robots.txt: the flags that say how, the gate that asks, and what of the answers is
// kept.
package site

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Gate answers questions over the network. It is the client.Transport that programs use, asked and not sent
// through; only page, usage, the page of serve and the proxy send through it.
//
// Open makes one. A program that runs on then calls RunsOn, and Share if it has a Pacer, before the first question. End
// is the last call.
type Gate struct {
	*client.Transport
	Fetches atomic.Int64          // by lookup
	dir     bool                  // is what --cache names
	Turns   *redisturns.Store     // nil: there is none
	Agreed  *agreement.Agreements // --agreements
	leads   leads                 // --connect-to

	once    sync.Once // guards readers
	readers map[policy.Dialect]*client.Transport
}

// What a gate keeps in memory: more than a crawler's cache by default, as a list of URLs may come back to an origin
// after any number of others. Beyond that an origin is asked again, unless --cache has its file.
const maxPolicies = 128 << 20

// Open makes a gate from the flags. What is wrong with them is a UsageError, before anything is sent. It reports on
// errs if the store of --cache fails. Its settings are those of a run that ends: RunsOn has the others.
func (n *Network) Open(errs io.Writer) (*Gate, error) {
	if n.Timeout <= 0 {
		return nil, shell.Usagef("--timeout is %s: give more than 0s", n.Timeout)
	}
	if !httpguts.ValidHeaderFieldValue(n.UserAgent) {
		return nil, shell.Usagef("--user-agent %q cannot be sent: leave out control characters", n.UserAgent)
	}
	signer, err := n.Signing.Signer()
	if err != nil {
		return nil, err
	}
	all, err := parseLeads(n.ConnectTo)
	if err != nil {
		return nil, err
	}
	base := all.way(http.DefaultTransport.(*http.Transport).Clone())
	store, err := openStore(n.CacheAt)
	if err != nil {
		return nil, err
	}
	// client.Transport may ask with a copy of this one, see its field Fetcher. What is asked through Find and
	// what through the Transport then count towards MaxFetches apart.
	f := &fetch.Fetcher{
		Transport: base, UserAgent: n.UserAgent, Timeout: n.Timeout, Sign: n.Headers.Hook(signer), ObeyWalls: n.obeyWalls,
	}
	c := &cache.Cache{
		MaxBytes: maxPolicies,
		Store:    store,
		Logger:   slog.New(slog.NewTextHandler(errs, nil)),
	}
	_, dir := store.(*dirstore.Store)
	return &Gate{Transport: &client.Transport{
		// Sign is set twice: the Fetcher's is for robots.txt, the Transport's for pages.
		Base: base, Token: n.Agent, Dialect: n.Dialect, Fetcher: f, Cache: c, Sign: f.Sign, Override: n.Agreed.Override,
	}, dir: dir, Agreed: n.Agreed, leads: all}, nil
}

// Find returns what is known of o's robots.txt and until when it holds, fetching it where it must, and counts in Fetches
// what it fetched. The result has no Body, unless the Cache keeps one.
func (g *Gate) Find(ctx context.Context, o fetch.Origin) (res *fetch.Result, until time.Time, err error) {
	load := func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		g.Fetches.Add(1)
		return g.Fetcher.Fetch(ctx, o, prev)
	}
	return g.Cache.Get(ctx, o, g.Source(load))
}

// Found is what Find returns.
type Found struct {
	Result *fetch.Result
	Until  time.Time
	Err    error
}

// Source is what the Cache of g asks with, by load. The service gives each question's Dialect to its own copy.
func (g *Gate) Source(load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)) *cache.Source {
	return &cache.Source{Load: load, Reader: g.Fetcher.Reader(), Dialect: g.Dialect}
}

// In is the Transport that reads in a dialect, whatever that of g. All of them share the Fetcher, the Cache and the
// Pacer of g, which has its settings by then.
func (g *Gate) In(d policy.Dialect) *client.Transport {
	g.once.Do(func() {
		g.readers = map[policy.Dialect]*client.Transport{}
		for _, d := range answer.Dialects {
			g.readers[d] = &client.Transport{Base: g.Base, Token: g.Token, Dialect: d, Uses: g.Uses, Override: g.Override,
				Fetcher: g.Fetcher, Cache: g.Cache, Pacer: g.Pacer, Sign: g.Sign, Trace: g.Trace}
		}
		g.readers[g.Dialect] = g.Transport
	})
	return g.readers[d]
}

// For returns the Transport that reads the robots.txt of u as k does, and ctx for the token that k obeys there.
func (g *Gate) For(ctx context.Context, k *answer.Asker, u *url.URL) (*client.Transport, context.Context, error) {
	t, token := g.In(k.Dialect), k.Agent
	if k.FallsBack() {
		p, err := t.Lookup(ctx, u)
		if err != nil {
			return nil, nil, err
		}
		token = k.Obeys(p)
	}
	return t, client.WithToken(ctx, token), nil
}

// Share makes the turns of g those of all processes that use its Redis server, if it has one. g must have a Pacer.
func (g *Gate) Share() {
	if s, ok := g.Cache.Store.(*redisstore.Store); ok {
		g.Turns = &redisturns.Store{Client: s.Client}
		g.Pacer.Turns = g.Turns
	}
}

// maxFetches is for a program that runs on: each may hold a file of 500 KiB.
const maxFetches = 512

// RunsOn gives g the settings of a program that runs on: the bounds are those of package cache. Without private, it asks
// public networks only.
func (g *Gate) RunsOn(log *slog.Logger, private bool) {
	g.Cache.Logger, g.Cache.MaxBytes = log, 0
	g.Fetcher.MaxFetches = maxFetches
	if private {
		return
	}
	base := g.leads.way(fetch.PublicOnly(g.Base.(*http.Transport)))
	g.Base, g.Fetcher.Transport = base, base
}

// Ping asks the server of turns whether it is there. If there is none, all is well.
func (g *Gate) Ping(ctx context.Context) error {
	if g.Turns == nil {
		return nil
	}
	return g.Turns.Client.Ping(ctx).Err()
}

// End gives back turns, writes to the store what is not there yet, and closes it, after an interruption too. What goes wrong
// is no reason to hide another error: it counts in the exit status if a file was not written.
func (g *Gate) End(ctx context.Context, a *shell.App) {
	// README.md counts on it: systemd has to wait for as long.
	const flushTime = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	var o shell.Output
	if g.Turns != nil {
		o.Warn(g.Shutdown(ctx)) // it may still have to tell of pauses
	}
	if err := g.Cache.Shutdown(ctx); g.dir {
		o.Complain(err)
	} else {
		o.Warn(err) // a Redis that is down costs fetches, no answers
	}
	a.Emit(&o)
}

// openStore opens what --cache names: a Redis by its URL, else a directory. The store is nil for "" and "none". A
// connection to Redis needs no closing, it ends with the process.
func openStore(at string) (cache.Store, error) {
	scheme, rest, _ := strings.Cut(at, ":") // which may be a password
	switch {
	case at == "" || at == "none":
		return nil, nil
	case strings.HasPrefix(rest, "//") && slices.Contains([]string{"redis", "rediss", "unix"}, strings.ToLower(scheme)):
		s, err := redisstore.Open(at)
		if err != nil {
			return nil, shell.Usagef("--cache: %w", err)
		}
		return s, nil
	case strings.Contains(at, "://"):
		return nil, shell.Usagef("--cache is a DIR or redis://HOST:PORT (rediss:// with TLS, unix:///SOCKET); "+
			"%q is no such scheme", scheme)
	}
	dir, err := dirstore.Open(at)
	if err != nil {
		return nil, err // and no nil of dirstore, which would be a Store
	}
	return dir, nil
}
