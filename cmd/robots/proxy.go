package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

type proxying struct {
	daemon
	obeys  proxy.Obeying
	refuse string // one of denials
	watch  string // the address of what watches this proxy; "" for none
	ca     string // the file of the certificate
	caKey  string
	bounds proxy.Limits
}

const proxyHelp = `Proxy passes on what robots.txt allows, for any program that can use a proxy:

  http_proxy=http://127.0.0.1:3128 wget -r http://example.com/

All else is answered with 403, or as --refuse says: a problem document (RFC
9457), and a Proxy-Status field (RFC 9209), which tells it from the site's own.
If robots.txt is unreachable, that is 503, and Retry-After says when it is asked
for again. What passes is not changed: redirects and cookies are the client's,
and so is the User-Agent.

Over https it needs a CA that the client trusts (robots proxy ca): then each
request in a tunnel is decided on, too. Without one the paths are not seen, and
a tunnel is refused.

It listens on a loopback address, and connects to public networks only, unless
told otherwise. With --token-file, the token is the password of the proxy:
http_proxy=http://robots:TOKEN@HOST:3128.

With --advise it refuses nothing of that: forbidden requests are sent. The
answer has the reason in the field Robotsgate-Advice, and so does the log.

SIGTERM and Ctrl-C let what is under way end; a second signal ends at once.`

func newProxy(a *shell.App) *proxying {
	return &proxying{daemon: daemon{App: a}, bounds: proxy.UsualLimits()}
}

// command makes the subcommand for p, with "robots proxy ca" below it. There is no --as all, since a request passes or not.
func (p *proxying) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Pass on what robots.txt allows, for programs that use a proxy",
		Long:  proxyHelp,
		Example: `  robots proxy --agent ExampleBot --pace
  curl --proxy http://127.0.0.1:3128 http://example.com/private`,
		Args:              shell.Args(0, 0, "none"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              shell.Runs(p.run),
	}
	p.register(cmd, "127.0.0.1:3128")
	site.UsesVar(cmd, &p.Asker)
	f := cmd.Flags()
	f.BoolVar(&p.obeys.Each, "agent-from-client", false, "decide for the product token in each client's User-Agent field")
	f.BoolVar(&p.obeys.Paced, "pace", false, "keep the delay between requests that each site asks for, else one second")
	f.BoolVar(&p.obeys.Advise, "advise", false, "send what robots.txt forbids, too, and only say so: a field, the log, a metric")
	f.StringVar(&p.ca, "ca", "", "look into https with certificates of the CA in this `FILE`")
	f.StringVar(&p.caKey, "ca-key", "", "the `FILE` with the key of the CA")
	shell.ChoiceVar(cmd, &p.refuse, "refuse", "the `STATUS` of what robots.txt refuses: "+strings.Join(denials, ", ")+"; "+
		"close ends the connection, or the stream of HTTP/2, without an answer", denials...)
	f.StringVar(&p.watch, "metrics-listen", "", "an `ADDRESS` of its own for /healthz, /readyz and /metrics")
	// These two are flags of all daemons, and mean something else in a proxy.
	f.Lookup("user-agent").Usage = "the User-Agent `FIELD` to ask for robots.txt with; that of what passes is the client's"
	f.Lookup("token-file").Usage = "ask each client for the token in this `FILE`, as the password of the proxy"
	cmd.AddCommand(p.proxyCA())
	return cmd
}

// denials are the statuses of what robots.txt refuses. Crawlers take a 403 for the site's own wall, and try again.
var denials = []string{"403", "451", "410", "close"}

// run serves until ctx ends. It prints the addresses to standard output once the sockets and the gate are ready, so a
// program that started the proxy may send requests as soon as it has read them.
func (p *proxying) run(ctx context.Context, _ []string) error {
	switch {
	// Its default, "*", is no choice of the user's, and may stand beside --agent-from-client.
	case p.obeys.Each && p.Named:
		return shell.Usagef("--agent and --agent-from-client say different things: give one of them")
	case (p.ca == "") != (p.caKey == ""):
		return shell.Usagef("--ca and --ca-key are two halves: give both, or none")
	}
	log, err := p.logger()
	if err != nil {
		return err
	}
	s := &proxy.Server{Limits: p.bounds, Log: log, Public: !p.private}
	if s.Denial, err = strconv.Atoi(p.refuse); err != nil {
		s.Denial = -1 // close
	}
	if s.Guard.Token, err = readToken(p.token); err != nil {
		return err
	}
	if s.Authority, err = p.authority(); err != nil {
		return err
	}
	// The address for the watchers is held to the same rules: beyond the loopback it needs --token-file or --open.
	// CONNECT has to be able to leave the protocol, which HTTP/2 does not let it.
	l, err := p.listen(log, p.address, s.Guard.Token, "http/1.1")
	if err != nil {
		return err
	}
	defer l.Close()
	var watch net.Listener
	if p.watch != "" {
		if watch, err = p.listen(log, p.watch, s.Guard.Token, "h2", "http/1.1"); err != nil {
			return err
		}
	}
	if p.obeys.Advise {
		log.Warn("--advise: what robots.txt forbids is sent")
	}
	g, err := p.openGate(log)
	if err != nil {
		return err
	}
	defer g.End(ctx, p.App)
	p.obeys.Asker = p.Asker
	// Obey, Watched, Until: each sets or uses what the one before has set.
	s.Obey(g, p.obeys)
	said := fmt.Sprintf("robots proxy: %s\n", p.url(l))
	if watch != nil {
		defer s.Watched(ctx, g, watch).Close()
		said += fmt.Sprintf("robots proxy metrics: %s/metrics\n", p.url(watch))
	}
	if _, err := io.WriteString(p.Out, said); err != nil { // in one write: a reader of the first line finds the second
		return err
	}
	// Nothing else has to know that the end has begun: Shutdown waits for tunnels, too.
	return web.Until(ctx, log, s, l, p.drain, func() {})
}

// authority reads the CA of --ca, or returns nil without one. One that no client would accept is wrong usage (64).
func (p *proxying) authority() (*proxy.Authority, error) {
	if p.ca == "" {
		return nil, nil
	}
	certificate, err := os.ReadFile(p.ca)
	key, missing := os.ReadFile(p.caKey)
	if err := errors.Join(err, missing); err != nil {
		return nil, err
	}
	a, err := proxy.NewAuthority(certificate, key)
	if err != nil {
		return nil, shell.Usagef("--ca %s, --ca-key %s: %w", p.ca, p.caKey, err)
	}
	return a, nil
}

// proxyCA makes the subcommand "robots proxy ca". It opens no gate and asks no site. Without --only the CA
// speaks for all names: which sites a crawler will visit is often not known.
func (p *proxying) proxyCA() *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:   "ca CERTIFICATE KEY",
		Short: "Make the CA that lets the proxy look into https",
		Long: `Ca makes a CA for a year, and writes its certificate and its key to two files,
which must not exist.

Let the programs that are to use the proxy trust the certificate, and no others:
who has the key can pass for any site to those who trust it. --only makes a CA
that can speak for some domains alone, and clients hold it to that.`,
		Example: `  robots proxy ca ca.pem ca.key
  robots proxy --ca ca.pem --ca-key ca.key
  https_proxy=http://127.0.0.1:3128 curl --cacert ca.pem https://example.com/`,
		Args: shell.Args(2, 2, "two files: for the certificate, and for the key"),
	}
	cmd.RunE = shell.Runs(func(_ context.Context, args []string) error {
		for _, name := range only {
			if !domains.MatchString(name) {
				return shell.Usagef("--only %s is no domain, such as example.com", answer.Quoted(name))
			}
		}
		// The date tells it from the next one in the list of what a program trusts.
		name := "robotsgate " + time.Now().Format(time.DateOnly)
		certificate, key, err := proxy.MakeAuthority(name, only, 365*24*time.Hour)
		if err != nil {
			return err
		}
		// The key goes first: what is left of a run that is killed is no certificate that could be installed.
		if err := writeNew(args[1], key, 0o600); err != nil {
			return err
		}
		if err := writeNew(args[0], certificate, 0o644); err != nil {
			return errors.Join(err, os.Remove(args[1]))
		}
		return nil
	})
	cmd.Flags().StringSliceVar(&only, "only", nil, "`DOMAINS` that the CA speaks for, with all below them")
	return cmd
}

// domains are what a CA may be limited to, and serve be called. In a certificate a name is ASCII and has no final dot.
var domains = regexp.MustCompile(`^\.?[\w-]+(\.[\w-]+)*$`)

// writeNew makes a file that must not exist, and removes it if it cannot be written whole: half a key is
// none. The file has its mode from the start, so no other user can read a key while it is written.
func writeNew(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: a key that is overwritten is lost", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}
