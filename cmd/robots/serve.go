package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// server is "robots serve". Its fields but limits are flags. Each question may name an agent and a
// dialect: --agent and --as are for those that do not.
type server struct {
	daemon
	hosts    []string
	trusted  []string
	turnTime time.Duration
	limits   serve.Limits
}

const serveHelp = `Serve answers over HTTP what the other subcommands answer at a shell prompt,
with the same JSON:

  GET  /                                  a page for people
  GET  /v1/decide?url=URL[&agent=A][&as=D|all]   as check --json
  POST /v1/decide[?agent=A][&as=D]        as filter --json; a URL or an object
                                          on each line
  GET  /v1/robots?origin=URL[&as=D]       as fetch --json
  POST /v1/match                          as match --json, of an object with
                                          robots, urls, agent and as
  POST /v1/lint[?format=sarif]            as lint --json
  POST /v1/turns                          a turn to fetch a URL, at the pace of
                                          its site: url, agent, wait
  POST /v1/turns/ID, or DELETE            ends it: status, retry_after
  any  /authz                             for nginx, Caddy, Traefik and Envoy
  GET  /v1/openapi.json                   all of this for programs
  GET  /healthz, /readyz, /metrics

It listens on a loopback address, and asks public networks only, unless told
otherwise. A refusal is an answer with status 200; only /authz says 403.

An answer covers one URL ("covers": "url"). A client that follows redirects
itself fetches what it never asked about: have it follow none, and ask for each
hop. A gateway, or robots proxy, sees each hop by itself.

SIGTERM and Ctrl-C let what is under way end; a second signal ends at once.`

func newServer(a *shell.App) *server {
	return &server{daemon: daemon{App: a}, limits: serve.UsualLimits()}
}

// command makes the subcommand for s. run learns whether --trusted was given: its value may be the default.
func (s *server) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer over HTTP, for people, programs and gateways",
		Long:  serveHelp,
		Example: `  robots serve --agent ExampleBot
  curl 'http://127.0.0.1:8411/v1/decide?url=https://example.com/private'`,
		Args:              shell.Args(0, 0, "none"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = shell.Runs(func(ctx context.Context, _ []string) error {
		return s.run(ctx, cmd.Flags().Changed("trusted"))
	})
	f := cmd.Flags()
	f.StringSliceVar(&s.hosts, "host", nil, "`NAMES` that the Host field may have, besides localhost, without a port")
	f.StringSliceVar(&s.trusted, "trusted", []string{"127.0.0.0/8", "::1/128"},
		"`NETWORKS` of the gateways that may ask /authz, under any Host if this is given")
	f.DurationVar(&s.turnTime, "turn-time", 2*time.Minute,
		"`TIME` for a turn of /v1/turns to end, or it gives its place back")
	s.register(cmd, "127.0.0.1:8411")
	return cmd
}

// run serves until ctx ends. gateways tells that --trusted was given: the default opens /authz to no other Host.
func (s *server) run(ctx context.Context, gateways bool) error {
	v, err := s.service(gateways)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // a small heap would be collected for every thousand answers,
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20) // and a large one would grow to three times what is held
	}
	l, err := s.listen(v.Log, s.address, v.Guard.Token, "h2", "http/1.1")
	if err != nil {
		return err
	}
	defer l.Close()
	v.Guard.Loopback = web.IsLoopback(l)
	g, err := s.openGate(v.Log)
	if err != nil {
		return err
	}
	v.Open(g)
	defer g.End(ctx, s.App)
	if _, err := fmt.Fprintf(s.Out, "robots serve: %s\n", s.url(l)); err != nil {
		return err
	}
	return v.Until(ctx, l, s.drain)
}

// service makes all of the service but its gate. It opens nothing but the file of the token, so that wrong
// usage is reported before a socket is taken.
func (s *server) service(gateways bool) (v *serve.Service, err error) {
	if s.turnTime <= 0 {
		return nil, shell.Usagef("--turn-time is %s: give more than 0s", s.turnTime)
	}
	v = &serve.Service{Asker: s.Asker, Limits: s.limits, Gateways: gateways, Private: s.private, TurnTime: s.turnTime}
	if v.Log, err = s.logger(); err != nil {
		return nil, err
	}
	for _, text := range s.trusted {
		n, err := netip.ParsePrefix(text)
		if err != nil || n.Addr().Is4In6() { // which no address lies in, once it is unmapped
			return nil, shell.Usagef("--trusted %q is no network such as 10.0.0.0/8", text)
		}
		v.Trusted = append(v.Trusted, n.Masked())
	}
	for _, name := range s.hosts {
		if _, err := netip.ParseAddr(name); err != nil && (!domains.MatchString(name) || name[0] == '.') {
			return nil, shell.Usagef("--host %q is no name such as robots.example", name)
		}
	}
	v.Guard.Hosts = s.hosts
	v.Guard.Token, err = readToken(s.token)
	return v, err
}
