package main

// What serve and proxy have in common as programs that run on: where they listen, for whom, with which
// secrets, how they log, and the cache that they have without --cache. internal/web has what they have in
// common over HTTP.

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/listen"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
)

// daemon is a program that runs on: what serve and proxy have in common. Its fields but file are flags.
type daemon struct {
	*shell.App
	site.Network
	address string
	cert    string // the file
	certKey string // the file
	token   string // the file
	anyone  bool
	private bool
	logs    string
	level   slog.LevelVar
	drain   time.Duration
	file    string // the store that is the user's own
}

// register adds the flags. address is the usual one of --listen.
func (s *daemon) register(cmd *cobra.Command, address string) {
	f := cmd.Flags()
	f.StringVar(&s.address, "listen", address, "the `ADDRESS` to listen on, if systemd passes no socket")
	f.StringVar(&s.cert, "tls-cert", "", "speak TLS with the certificate and its chain in this `FILE`")
	f.StringVar(&s.certKey, "tls-key", "", "the `FILE` with its key. Both are read again when they change")
	f.StringVar(&s.token, "token-file", "", "ask each client for the bearer token in this `FILE`")
	f.BoolVar(&s.anyone, "open", false, "listen beyond loopback without a token")
	f.BoolVar(&s.private, "private", false, "ask sites in private networks too, and use the proxies of the environment")
	f.StringVar(&s.logs, "log", "text", "`FORMAT` of the log: text or json")
	f.Var(shell.Value{Text: func() string { return s.level.Level().String() }, Read: s.setLevel}, "log-level", "least `LEVEL` to log: debug, info, warn or error; debug has each refusal")
	f.DurationVar(&s.drain, "drain", 10*time.Second, "`TIME` for what is under way at the end")
	s.Register(cmd)
	s.RegisterCache(cmd)
	site.AgreementsVar(cmd, &s.Asker)
	f.Lookup("cache").Usage += ";\nnone keeps it in memory only. By default a file of this user"
}

// setLevel reads --log-level.
func (s *daemon) setLevel(name string) error {
	if err := s.level.UnmarshalText([]byte(name)); err != nil {
		return fmt.Errorf("no level is called %q: it is debug, info, warn or error", name)
	}
	return nil
}

// listen begins to listen: at l, if systemd passed that, else at address. Anyone may ask only on a loopback
// address, or with --open. protocols are those of TLS.
func (s *daemon) listen(
	log *slog.Logger, l net.Listener, address, token string, protocols ...string,
) (net.Listener, error) {
	if (s.cert == "") != (s.certKey == "") {
		return nil, shell.Usagef("--tls-cert and --tls-key are two halves: give both, or none")
	}
	if l == nil {
		var err error
		if l, err = listen.TCP(address); err != nil {
			return nil, err
		}
	}
	switch {
	case listen.IsLoopback(l):
	case token == "" && !s.anyone:
		l.Close()
		return nil, shell.Usagef("%s is not a loopback address: give --token-file, or --open to answer anyone", l.Addr())
	case token != "" && s.cert == "":
		log.Warn("the token of --token-file passes the network in clear: give --tls-cert and --tls-key", "listen", l.Addr())
	}
	if s.cert == "" {
		return l, nil
	}
	config, err := listen.TLS(log, s.cert, s.certKey, protocols...)
	if err != nil {
		l.Close()
		return nil, err
	}
	return tls.NewListener(l, config), nil
}

// url is where l is reached, with the port that the system has chosen for :0. Whoever starts a daemon reads
// it from standard output.
func (s *daemon) url(l net.Listener) string {
	if s.cert != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// warnOfShared warns of each secret that others on this machine may read.
func (s *daemon) warnOfShared(log *slog.Logger) {
	for flag, name := range map[string]string{"--token-file": s.token, "--tls-key": s.certKey, "--sign-key": s.Signing.Key} {
		listen.WarnIfShared(log, flag, name)
	}
}

// readToken reads the file of --token-file. A token is as long as a random one. Without a file it is empty:
// no client has to bring one.
func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 16 || strings.ContainsFunc(token, answer.Blank) {
		return "", shell.Usagef("%s holds no token: write 16 or more random characters without a blank, on one line", name)
	}
	return token, nil
}

// logger makes the log of a program that runs on, and looks at the flags that all such have.
func (s *daemon) logger() (*slog.Logger, error) {
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

// openGate makes a gate with the settings of a program that runs on. Without --cache, its place is the user's
// own: serve and proxy have a file each, because one process at a time can open it.
func (s *daemon) openGate(log *slog.Logger) (*site.Gate, error) {
	// a copy, in which CacheAt is what site.Network takes it for
	n, own := s.Network, ""
	switch n.CacheAt {
	case "none":
		n.CacheAt = ""
	case "":
		dir, err := os.UserCacheDir()
		if err == nil {
			dir = filepath.Join(dir, "robotsgate")
			err = os.MkdirAll(dir, 0o700)
		}
		if err != nil {
			log.Warn("robots.txt is kept in memory only", "error", err)
			break
		}
		own = filepath.Join(dir, s.file)
		n.CacheAt = own
	}
	g, err := n.Open(s.Err)
	if err != nil && own != "" {
		return nil, fmt.Errorf("%w; --cache FILE takes another place, --cache none none", err)
	}
	if err != nil {
		return nil, err
	}
	g.RunsOn(log, s.private)
	return g, nil
}
