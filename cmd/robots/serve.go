package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/listen"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
)

// server is "robots serve".
type server struct {
	*shell.App
	site.Network
	socket
	hosts   []string
	trusted []string
	private bool
	logs    string
	level   slog.LevelVar
	drain   time.Duration
	turn    time.Duration
	file    string // the store that is the user's own
	limits  limits
}

const serveHelp = `Serve answers over HTTP what the other subcommands answer at a shell prompt, with the
same JSON:

  GET  /                                                    a page for people
  GET  /v1/decide?url=URL[&agent=TOKEN][&as=DIALECT|all]    as check --json
  POST /v1/decide[?agent=TOKEN][&as=DIALECT]                as filter --json; a URL or object on each line
  GET  /v1/robots?origin=URL[&as=DIALECT]                   as fetch --json
  POST /v1/match   {"robots", "urls", "agent", "as"}        as match --json
  POST /v1/lint[?format=sarif]                              as lint --json
  POST /v1/turns   {"url", "agent", "wait"}                 a turn to fetch the URL, at the pace of its site
  POST /v1/turns/ID  {"status", "retry_after"}, or DELETE   ends it
  any  /authz                                               for nginx, Caddy, Traefik and Envoy
  GET  /v1/openapi.json                                     all of this for programs
  GET  /healthz, /readyz, /metrics

It listens on a loopback address, and asks public networks only, unless told otherwise.
A refusal is an answer with status 200; only /authz says 403.

An answer covers one URL ("covers": "url"). A client that follows redirects itself fetches
what it never asked about: have it follow none, and ask for each hop. A gateway, or robots
proxy, sees each hop by itself.

SIGTERM and Ctrl-C let what is under way end; a second signal ends at once.`

// serveCommand makes the subcommand.
func serveCommand(a *shell.App) *cobra.Command {
	s := &server{App: a, file: "serve.db", limits: usualLimits}
	return s.command()
}

func (s *server) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer over HTTP, for people, programs in other languages and gateways",
		Long:  serveHelp,
		Example: `  robots serve --agent ExampleBot
  curl 'http://127.0.0.1:8411/v1/decide?url=https://example.com/private'`,
		Args:              shell.None("serve takes no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = shell.Runs(func(ctx context.Context, _ []string) error {
		return s.run(ctx, cmd.Flags().Changed("trusted"))
	})
	site.AgentVar(cmd, &s.Asker)
	site.DialectVar(cmd, &s.Asker, false)
	f := cmd.Flags()
	f.StringSliceVar(&s.hosts, "host", nil, "`NAMES` that the Host field may have, besides localhost")
	f.StringSliceVar(&s.trusted, "trusted", []string{"127.0.0.0/8", "::1/128"},
		"`NETWORKS` of the gateways that may ask /authz, under any Host if this is given")
	f.DurationVar(&s.turn, "turn-time", 2*time.Minute,
		"`TIME` for a turn of /v1/turns to end, or it gives its place back")
	s.registerServer(cmd, "127.0.0.1:8411")
	return cmd
}

// registerServer adds the flags of what listens at an address, until it is told to end.
func (s *server) registerServer(cmd *cobra.Command, address string) {
	f := cmd.Flags()
	s.registerListen(cmd, address)
	f.BoolVar(&s.private, "private", false, "ask sites in private networks too, and use the proxies of the environment")
	f.StringVar(&s.logs, "log", "text", "`FORMAT` of the log: text or json")
	f.TextVar(&s.level, "log-level", &s.level, "least `LEVEL` to log: debug, info, warn or error; debug has each refusal")
	f.DurationVar(&s.drain, "drain", 10*time.Second, "`TIME` for what is under way at the end")
	s.Register(cmd)
	s.RegisterCache(cmd)
	f.Lookup("cache").Usage += ";\nnone keeps it in memory only. By default a file of this user"
}

// run serves until ctx ends. gateways tells that --trusted was given.
func (s *server) run(ctx context.Context, gateways bool) error {
	service, err := s.service(gateways)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // a small heap would be collected for every thousand answers
	}
	passed, err := listen.Passed()
	if err != nil {
		return err
	}
	l, err := s.listen(service.log, passed[""], s.address, service.guard.Token, "h2", "http/1.1")
	if err != nil {
		return err
	}
	defer l.Close()
	s.warnOfShared(service.log)
	service.guard.Loopback = isLoopback(l)
	slog.SetDefault(service.log) // what the library says
	g, err := s.openGate(service.log)
	if err != nil {
		return err
	}
	service.use(g)
	defer g.End(ctx, s.App)
	fmt.Fprintf(s.Out, "robots serve: %s\n", s.url(l))
	return service.until(ctx, l, s.drain)
}

// use makes g the gate of the service.
func (v *service) use(g *site.Gate) {
	v.gate = g
	g.Pacer = new(client.Pacer)
	g.Share(func(s turns.Store) turns.Store { return countedTurns{s, v.metrics} })
	g.Trace = &client.Trace{Fetched: v.fetched}
	v.metrics.watch(g.Cache)
	v.metrics.watchService(v)
	if g.Cache.Store != nil {
		g.Cache.Store = v.metrics.store(g.Cache.Store)
	}
	// What is kept whole is no answer of the Cache, and holds for a time of its own.
	v.whole = &site.Gate{Transport: &client.Transport{Fetcher: g.Fetcher, Cache: new(cache.Cache)}}
	v.files = site.NewFiles(func(ctx context.Context, o fetch.Origin) (*fetch.Result, error) { return v.load(ctx, o, nil) })
}

// logger makes the log of a program that runs on, and looks at the flags that all such have.
func (s *server) logger() (*slog.Logger, error) {
	if s.drain < 0 {
		return nil, shell.Usagef("--drain is %s; the least is 0s", s.drain)
	}
	options := &slog.HandlerOptions{Level: &s.level}
	switch s.logs {
	case "text":
		return slog.New(slog.NewTextHandler(s.Err, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(s.Err, options)), nil
	}
	return nil, shell.Usagef("no format of logs is called %q: it is text or json", s.logs)
}

// service makes all of the service but its gate.
func (s *server) service(gateways bool) (*service, error) {
	v := &service{server: s, gateways: gateways, underway: make(chan struct{}, s.limits.questions),
		streams: make(chan struct{}, s.limits.streams), metrics: newMetrics(),
		work: web.NewMemory(s.limits.work - s.limits.work/4), small: web.NewMemory(s.limits.work / 4),
		policies: web.NewMemory(s.limits.policies), spool: web.NewMemory(s.limits.spool)}
	v.outputs.New = func() any { return new(shell.Output) }
	v.guard.Hosts = s.hosts
	if s.turn <= 0 {
		return nil, shell.Usagef("--turn-time is %s: give more than 0s", s.turn)
	}
	v.turns.Time, v.turns.Lapsed, v.turns.Bounded = s.turn, (*client.Turn).End, make(chan struct{}, s.limits.turns)
	var err error
	if v.log, err = s.logger(); err != nil {
		return nil, err
	}
	for _, text := range s.trusted {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, shell.Usagef("--trusted: %w", err)
		}
		v.trusted.Trusted = append(v.trusted.Trusted, n.Masked())
	}
	v.guard.Token, err = readToken(s.token)
	return v, err
}

// openGate is open with the settings of a program that runs on.
func (s *server) openGate(log *slog.Logger) (*site.Gate, error) {
	at, own, err := s.cachePlace()
	if err != nil {
		log.Warn("robots.txt is kept in memory only", "error", err)
	}
	n := s.Network
	n.CacheAt = at
	g, err := n.Open(s.Err)
	if err != nil && own {
		return nil, fmt.Errorf("%w; --cache FILE takes another place, --cache none none", err)
	}
	if err != nil {
		return nil, err
	}
	g.Cache.Logger, g.Cache.NoRefresh, g.Cache.StoreTimeout = log, false, 0
	g.Cache.Size, g.Cache.MaxBytes = 0, 0
	g.Fetcher.MaxFetches = maxFetches
	g.Answers, _ = lru.New[site.AnswerOf, *answer.Answer](maxAnswers) // fails for a size below 1 only
	if !s.private {
		// The Fetcher sees the addresses of names only without a proxy, and before it connects
		// only without a dialer.
		base := g.Base.(*http.Transport)
		base.Proxy, g.Fetcher.PublicOnly = nil, true
		if len(s.ConnectTo) == 0 {
			base.DialContext = nil
		}
	}
	return g, nil
}

// cachePlace is what --cache names. own tells that it was not given, and that the place is
// the user's own; an error, that there is no such place.
func (s *server) cachePlace() (at string, own bool, err error) {
	switch s.CacheAt {
	case "none":
		return "", false, nil
	case "":
		dir, err := os.UserCacheDir()
		if err == nil {
			dir = filepath.Join(dir, "robotsgate")
			err = os.MkdirAll(dir, 0o700)
		}
		if err != nil {
			return "", false, err
		}
		return filepath.Join(dir, s.file), true, nil
	default:
		return s.CacheAt, false, nil
	}
}

// until serves on l until ctx ends, and lets what is under way end, within the time of drain.
func (v *service) until(ctx context.Context, l net.Listener, drain time.Duration) error {
	// The base context is not ctx: what is under way goes on when that ends.
	draining, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	v.draining = draining
	server := &http.Server{
		Handler:           v.metrics.count(v.handler()),
		ReadHeaderTimeout: v.limits.header,
		WriteTimeout:      v.limits.question + 2*v.limits.answer,
		IdleTimeout:       v.limits.idle,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(v.log.Handler(), slog.LevelDebug),
	}
	defer v.turns.Close()
	return drained(ctx, v.log, server, l, drain, stop)
}

// listening is an http.Server, or what ends as one does.
type listening interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// drained has server serve on l until ctx ends. Then it calls stop, and what is under way has
// the time of drain to end.
func drained(
	ctx context.Context, log *slog.Logger, server listening, l net.Listener, drain time.Duration, stop func(),
) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	listen.Notify(log, listen.Ready)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	log.Info("draining", "at most", drain)
	listen.Notify(log, listen.Stopping)
	stop()
	ends, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(ends); err != nil {
		log.Warn("cut off what was under way", "error", err)
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
