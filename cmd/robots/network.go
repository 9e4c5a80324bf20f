package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// network is what the subcommands that fetch robots.txt have in common.
type network struct {
	agent     agentFlag
	dialect   dialectFlag
	userAgent string
	timeout   time.Duration
	connectTo []string
	cacheAt   string
}

// userAgent names the command itself: asking for another crawler's rules is no reason to
// pass for that crawler.
const userAgent = "robots (+https://github.com/robotsgate/robotsgate)"

// agentFlag is --agent.
type agentFlag string

func (f *agentFlag) String() string { return string(*f) }
func (f *agentFlag) Type() string   { return "token" }

// Set takes a product token, or a whole User-Agent field that holds one.
func (f *agentFlag) Set(agent string) error {
	token := agent
	if agent != "*" {
		token = policy.ProductToken(agent)
	}
	if token == "" {
		return fmt.Errorf("%q holds no product token, like ExampleBot (RFC 9309 section 2.2.1)", agent)
	}
	*f = agentFlag(token)
	return nil
}

// agentVar adds --agent. Without it the question is about a crawler that no file names:
// any other default would give an answer about somebody in particular.
func agentVar(cmd *cobra.Command, agent *agentFlag) {
	*agent = "*"
	cmd.Flags().Var(agent, "agent", "product `TOKEN` of the crawler; * is one that no group names")
	cmd.RegisterFlagCompletionFunc("agent", cobra.NoFileCompletions)
}

func dialectVar(cmd *cobra.Command, d *dialectFlag) {
	cmd.Flags().Var(d, "as", "read robots.txt as this `DIALECT` does: "+strings.Join(dialectNames(), ", "))
	completeDialects(cmd)
}

// completeDialects lets shells complete --as. An error would mean that there is no such
// flag, and the tests complete it.
func completeDialects(cmd *cobra.Command, more ...string) {
	names := append(dialectNames(), more...)
	cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// register adds the flags for the way to the server.
func (n *network) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&n.userAgent, "user-agent", userAgent, "the User-Agent `FIELD` to send")
	f.DurationVar(&n.timeout, "timeout", 30*time.Second, "`TIME` for one robots.txt, with redirects and retries")
	f.StringArrayVar(&n.connectTo, "connect-to", nil,
		"connect to other places, `HOST1:PORT1:HOST2:PORT2` as curl has it: for HOST1:PORT1 to\nHOST2:PORT2; an empty part means any, or the same. No proxy is used then")
	cmd.RegisterFlagCompletionFunc("connect-to", cobra.NoFileCompletions)
}

// registerCache adds the flag for subcommands that need not ask the server each time.
func (n *network) registerCache(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.cacheAt, "cache", "", "keep robots.txt in this `FILE`, or in Redis at redis://HOST:PORT")
}

// gate answers questions over the network. It is the client.Transport that programs use,
// asked and not sent through.
type gate struct {
	*client.Transport
	fetches atomic.Int64     // by lookup
	file    *boltstore.Store // nil: there is none
}

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
		return nil, usagef("--timeout is %s; it has to be more than nothing", n.timeout)
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
	return &gate{
		Transport: &client.Transport{
			Base:    base,
			Token:   n.agent.String(),
			Fetcher: &fetch.Fetcher{Transport: base, UserAgent: n.userAgent, Dialect: n.dialect.Dialect, Timeout: n.timeout},
			Cache: &cache.Cache{
				Size:      maxOrigins,
				MaxBytes:  maxPolicies,
				Store:     store,
				NoRefresh: true, // a refresh that nobody waits for would come after the run
				Logger:    slog.New(slog.NewTextHandler(errs, nil)),
				// A list can wait for its own file, to read and to write it; a site need not be
				// asked twice for that.
				StoreTimeout: 10 * time.Second,
			},
		},
		file: file,
	}, nil
}

// lookup returns what is known of o's robots.txt, fetching it where it must.
func (g *gate) lookup(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	load := func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		g.fetches.Add(1)
		return g.Fetcher.Fetch(ctx, o, prev)
	}
	return g.Cache.Get(ctx, o, &cache.Source{Load: load, UserAgent: g.Fetcher.UserAgent, Dialect: g.Fetcher.Dialect})
}

// end writes to the store what is not there yet, and closes it. That has to be done
// after an interruption too, and what goes wrong is no reason to hide another error.
func (g *gate) end(ctx context.Context, a *app) {
	const flushTime = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	var o output
	if err := g.Cache.Close(ctx); g.file == nil {
		o.warn(err) // a Redis that is down costs fetches, no answers
	} else {
		o.complain(errors.Join(err, g.file.Close()))
	}
	a.emit(&o)
}

// transport is net/http's own, with the --connect-to mappings.
func (n *network) transport() (*http.Transport, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	if len(n.connectTo) == 0 {
		return base, nil
	}
	var places []place
	for _, text := range n.connectTo {
		p, err := parsePlace(text)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	base.Proxy = nil
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, p := range places {
			if to, ok := p.apply(address); ok {
				address = to
				break
			}
		}
		return dial(ctx, network, address)
	}
	return base, nil
}

// place is one --connect-to: the parts of the address asked for, and of the one to use.
type place struct{ host, port, toHost, toPort string }

// parsePlace reads HOST1:PORT1:HOST2:PORT2, in which an IPv6 address stands in brackets.
func parsePlace(text string) (place, error) {
	var parts []string
	for rest := text; len(parts) < 5; {
		part, after, more := cutPart(rest)
		parts = append(parts, part)
		if rest = after; !more {
			break
		}
	}
	if len(parts) != 4 {
		return place{}, usagef("--connect-to %q is not of the form HOST1:PORT1:HOST2:PORT2", text)
	}
	return place{strings.ToLower(parts[0]), parts[1], parts[2], parts[3]}, nil
}

// cutPart cuts text at its first colon outside the brackets of an IPv6 address.
func cutPart(text string) (part, rest string, more bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if host, after, closed := strings.Cut(inner, "]"); closed {
			rest, more = strings.CutPrefix(after, ":")
			return host, rest, more
		}
	}
	return strings.Cut(text, ":")
}

// apply returns the address to connect to instead of address, if the place is about it.
// Hosts compare without regard to case; their names are ASCII by now.
func (p place) apply(address string) (string, bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || p.host != "" && p.host != strings.ToLower(host) || p.port != "" && p.port != port {
		return "", false
	}
	if p.toHost != "" {
		host = p.toHost
	}
	if p.toPort != "" {
		port = p.toPort
	}
	return net.JoinHostPort(host, port), true
}

// parseURL reads a URL from the command line. One without a scheme means https, which is
// what a person means who types a host name; in lists a scheme has to be there, since
// both origins exist and have a robots.txt each.
func parseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, usagef("%v", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, usagef("URL %q: robots.txt is about http and https only", text)
	case u.Host == "":
		return nil, usagef("URL %q names no host", text)
	}
	return u, nil
}
