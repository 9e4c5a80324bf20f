package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/listen"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
)

// proxying is "robots proxy".
type proxying struct {
	server
	each   bool // --agent-from-client
	paced  bool
	blind  string
	refuse string // a key of denials
	watch  string // the address of what watches this proxy; "" for none
	ca     string // the file of the certificate
	caKey  string
	bounds proxy.Limits
}

const proxyHelp = `Proxy passes on what robots.txt allows, for any program that can use a proxy:

  http_proxy=http://127.0.0.1:3128 wget -r http://example.com/

All else is answered with 403, or as --refuse says: a page for browsers, a problem
document (RFC 9457) for programs, and a Proxy-Status field (RFC 9209), which tells it
from the site's own. If robots.txt is unreachable, Retry-After says when it is asked
for again. What passes is not changed: redirects
and cookies are the client's, and so is the User-Agent.

With a CA that the client trusts (robots proxy ca), each request over https is decided
on too. Without one only a tunnel is seen. Then --blind=origin opens it if the site
forbids the agent nothing at all, and with --agent-from-client, where the agent is not
seen either, if the site forbids no crawler anything. Such a tunnel carries TLS for its
host alone, and ends when the rules change against it. refuse opens none, and allow
opens all, for whatever they carry.

It listens on a loopback address, and connects to public networks only, unless told
otherwise. With --token-file, the token is the password of the proxy:
http_proxy=http://robots:TOKEN@HOST:3128.

SIGTERM and Ctrl-C let what is under way end; a second signal ends at once.`

// proxyCommand makes the subcommand.
func proxyCommand(a *shell.App) *cobra.Command {
	p := &proxying{server: server{App: a, file: "proxy.db"}, bounds: proxy.UsualLimits}
	return p.command()
}

func (p *proxying) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Pass on what robots.txt allows, for programs that use a proxy",
		Long:  proxyHelp,
		Example: `  robots proxy --agent ExampleBot --pace
  curl --proxy http://127.0.0.1:3128 http://example.com/private`,
		Args:              shell.None("proxy takes no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = shell.Runs(func(ctx context.Context, _ []string) error {
		switch {
		case p.each && cmd.Flags().Changed("agent"):
			return shell.Usagef("--agent and --agent-from-client say different things: give one of them")
		case (p.ca == "") != (p.caKey == ""):
			return shell.Usagef("--ca and --ca-key are two halves: give both, or none")
		}
		if _, known := denials[p.refuse]; !known {
			return shell.Usagef("--refuse is %s, not one of %s", answer.Quoted(p.refuse), strings.Join(denialNames, ", "))
		}
		if err := p.checkBlind(cmd.Flags().Changed("blind")); err != nil {
			return err
		}
		return p.run(ctx)
	})
	p.registerProxy(cmd)
	p.registerServer(cmd, "127.0.0.1:3128")
	f := cmd.Flags()
	f.Lookup("user-agent").Usage = "the User-Agent `FIELD` to ask for robots.txt with; that of what passes is the client's"
	f.Lookup("token-file").Usage = "ask each client for the token in this `FILE`, as the password of the proxy"
	cmd.AddCommand(p.proxyCA())
	return cmd
}

// registerProxy adds the flags that serve does not share.
func (p *proxying) registerProxy(cmd *cobra.Command) {
	site.AgentVar(cmd, &p.Asker)
	site.DialectVar(cmd, &p.Asker, false)
	site.UsesVar(cmd, &p.Asker)
	f := cmd.Flags()
	f.BoolVar(&p.each, "agent-from-client", false, "decide for the product token in each client's User-Agent field")
	f.BoolVar(&p.paced, "pace", false, "keep the delay between requests that each site asks for, else one second")
	f.StringVar(&p.ca, "ca", "", "look into https with certificates of the CA in this `FILE`")
	f.StringVar(&p.caKey, "ca-key", "", "the `FILE` with the key of the CA")
	f.StringVar(&p.blind, "blind", blindOrigin, "the `WAY` with tunnels that are not looked into: origin, refuse or allow;\n"+
		"refuse with --pace, --uses, --header or --sign-key, which cannot be kept there")
	cmd.RegisterFlagCompletionFunc("blind", cobra.FixedCompletions(blindWays, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&p.refuse, "refuse", denialNames[0], "the `STATUS` of what robots.txt refuses: "+strings.Join(denialNames, ", ")+";\n"+
		"close ends the connection, or the stream of HTTP/2, without an answer")
	cmd.RegisterFlagCompletionFunc("refuse", cobra.FixedCompletions(denialNames, cobra.ShellCompDirectiveNoFileComp))
	f.StringVar(&p.watch, "metrics-listen", "", "an `ADDRESS` of its own for /healthz, /readyz and /metrics")
}

// denials are the statuses of what robots.txt refuses. Crawlers take a 403 for the site's own wall, and try again.
var (
	denialNames = []string{"403", "451", "410", "close"}
	denials     = map[string]int{"403": 403, "451": 451, "410": 410, "close": -1}
)

// run is a proxy until ctx ends.
func (p *proxying) run(ctx context.Context) error {
	log, err := p.logger()
	if err != nil {
		return err
	}
	s := &proxy.Server{Limits: p.bounds, Log: log, Explain: explain, Denial: denials[p.refuse]}
	if s.Guard.Token, err = readToken(p.token); err != nil {
		return err
	}
	if s.Authority, err = p.authority(); err != nil {
		return err
	}
	l, watch, err := p.sockets(log, s.Guard.Token)
	if err != nil {
		return err
	}
	defer l.Close()
	slog.SetDefault(log) // what the library says
	g, err := p.openGate(log)
	if err != nil {
		return err
	}
	defer g.End(ctx, p.App)
	p.open(s, g, l.Addr().(*net.TCPAddr).AddrPort())
	said := fmt.Sprintf("robots proxy: %s\n", p.url(l))
	if watch != nil {
		defer p.watched(ctx, s, g, watch).Close()
		said += fmt.Sprintf("robots proxy metrics: %s/metrics\n", p.url(watch))
	}
	io.WriteString(p.Out, said)
	return drained(ctx, log, s, l, p.drain, func() {})
}

// sockets begins to listen for clients, and for what watches this proxy if that is wanted.
func (p *proxying) sockets(log *slog.Logger, token string) (l, watch net.Listener, err error) {
	const metrics = "metrics"
	passed, err := listen.Passed(metrics)
	if err != nil {
		return nil, nil, err
	}
	// CONNECT has to be able to leave the protocol, which HTTP/2 does not let it.
	if l, err = p.listen(log, passed[""], p.address, token, "http/1.1"); err != nil {
		return nil, nil, err
	}
	if p.watch != "" || passed[metrics] != nil {
		if watch, err = p.listen(log, passed[metrics], p.watch, token, "h2", "http/1.1"); err != nil {
			l.Close()
			return nil, nil, err
		}
	}
	p.warnOfShared(log)
	listen.WarnIfShared(log, "--ca-key", p.caKey)
	return l, watch, nil
}

// open makes g, which answers questions, one that requests are sent through. own is where the proxy
// listens.
func (p *proxying) open(s *proxy.Server, g *site.Gate, own netip.AddrPort) {
	g.Uses = p.Uses
	if p.each {
		g.Token = ""
	}
	if p.paced {
		g.Pacer = new(client.Pacer)
		g.Share(func(s turns.Store) turns.Store { return s })
	}
	base := g.Base.(*http.Transport).Clone()
	base.DisableCompression = true // bodies pass as they are
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 1024, 64
	base.MaxResponseHeaderBytes = 1 << 20
	base.ExpectContinueTimeout = 5 * time.Second // after that, we send 100 in the site's place
	s.Permit = func(to netip.AddrPort) error { return p.permit(to, own) }
	base.DialContext = guarded(base.DialContext, s.Permit)
	g.Base = sender{base, withoutHTTP2(base)}
	s.Gate, s.Dial = g.Transport, base.DialContext
	s.Blind = func(ctx context.Context, to proxy.Target) (time.Time, error) { return p.decideBlind(ctx, g, to) }
}

// permit refuses to connect to where this proxy listens, and, without --private, to a network that is
// not public.
func (p *proxying) permit(to, own netip.AddrPort) error {
	addr, here := to.Addr().Unmap().WithZone(""), own.Addr().Unmap()
	switch {
	case to.Port() == own.Port() && (addr == here || here.IsUnspecified() && isOwn(addr)):
		return sendError{errItself}
	case !p.private && !fetch.Public(addr):
		return sendError{fmt.Errorf("%s: %w", addr, errPrivate)}
	}
	return nil
}

// dial is the signature of (*net.Dialer).DialContext.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// guarded makes a dialer that asks check about each address. via is another dialer to use, or nil:
// then check is asked before there is a connection, too.
func guarded(via dial, check func(netip.AddrPort) error) dial {
	if via == nil {
		d := net.Dialer{Timeout: 30 * time.Second}
		d.Control = func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return check(to)
		}
		via = d.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := via(ctx, network, address)
		if err != nil {
			return nil, sendError{err}
		}
		if err := check(c.RemoteAddr().(*net.TCPAddr).AddrPort()); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
}

// isOwn reports whether an address is one of this machine.
func isOwn(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(addr.AsSlice()) {
			return true
		}
	}
	return false
}

// sender sends what the gate lets pass.
type sender struct {
	*http.Transport
	old *http.Transport // for requests to upgrade, which HTTP/2 has not (RFC 9113 §8.6)
}

func withoutHTTP2(base *http.Transport) *http.Transport {
	t := base.Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil // those of base
	}
	return t
}

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodOptions && req.URL.Path == "" && req.URL.RawQuery == "" && !req.URL.ForceQuery {
		whole := *req // RFC 9112 §3.2.4: about the server, decided on as its first page
		u := *req.URL
		u.Path, whole.URL = "*", &u
		req = &whole
	}
	way := s.Transport
	if req.Header.Get("Upgrade") != "" {
		way = s.old
	}
	res, err := way.RoundTrip(req)
	if err != nil {
		return nil, sendError{err}
	}
	return res, nil
}
