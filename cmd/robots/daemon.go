package main

// What serve and proxy have in common as programs that run on: where they listen, for whom, with which secrets, how
// they log, and the cache that they have without --cache. internal/web has what they have in common over HTTP.

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// daemon is a program that runs on: what serve and proxy have in common. Its fields are flags. What
// they mean together is for logger, listen, readToken and openGate to say, when the program begins.
type daemon struct {
	*shell.App
	site.Network
	address string
	cert    string // the file; "" with an empty certKey: no TLS
	certKey string // the file
	token   string // the file; "": no client is asked for one
	anyone  bool   // --open; a loopback address does not need it
	private bool
	logs    string
	level   string
	drain   time.Duration // zero: what is under way is cut off
}

// register adds the flags. address is the usual one of --listen. The caller may then give some of them other words.
func (s *daemon) register(cmd *cobra.Command, address string) {
	f := cmd.Flags()
	f.StringVar(&s.address, "listen", address, "the `ADDRESS` to listen on")
	f.StringVar(&s.cert, "tls-cert", "", "speak TLS with the certificate and its chain in this `FILE`")
	f.StringVar(&s.certKey, "tls-key", "", "the `FILE` with its key. A new pair needs a restart")
	f.StringVar(&s.token, "token-file", "", "ask each client for the bearer token in this `FILE`")
	f.BoolVar(&s.anyone, "open", false, "listen beyond loopback without a token")
	f.BoolVar(&s.private, "private", false, "ask sites in private networks too, and use the proxies of the environment")
	shell.ChoiceVar(cmd, &s.logs, "log", "`FORMAT` of the log: text or json", "text", "json")
	s.level = "info"
	shell.ChoiceVar(cmd, &s.level, "log-level", "least `LEVEL` to log: debug, info, warn or error; debug has each refusal",
		"debug", "info", "warn", "error")
	f.DurationVar(&s.drain, "drain", 10*time.Second, "`TIME` for what is under way at the end")
	s.Register(cmd, site.AgentVar, site.DialectVar, site.AgreementsVar)
	s.RegisterCache(cmd)
	// For a run that ends, no --cache means memory. One that runs on would ask each site anew after a restart.
	f.Lookup("cache").Usage += ". By default a folder of this user, or none with --connect-to"
}

// listen begins to listen at address. Anyone may ask only on a loopback address, or with --open. What counts is the address
// that is listened at, and not the text of --listen: a name may lead anywhere.
func (s *daemon) listen(log *slog.Logger, address, token string, protocols ...string) (net.Listener, error) {
	if (s.cert == "") != (s.certKey == "") {
		return nil, shell.Usagef("--tls-cert and --tls-key are two halves: give both, or none")
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return nil, shell.Usagef("%q cannot be listened on: %w", address, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	switch {
	case web.IsLoopback(l):
	case token == "" && !s.anyone:
		l.Close()
		return nil, shell.Usagef("%s is not a loopback address: give --token-file, or --open to answer anyone", l.Addr())
	// No error: something in front may speak TLS, and this program cannot know.
	case token != "" && s.cert == "":
		log.Warn("the token of --token-file passes the network in clear: give --tls-cert and --tls-key", "listen", l.Addr())
	}
	if s.cert == "" {
		return l, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.certKey)
	if err != nil {
		l.Close()
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{NextProtos: protocols, Certificates: []tls.Certificate{pair}}), nil
}

// url is where l is reached, with the port that the system has chosen for :0. The program that starts a
// daemon reads it from standard output.
func (s *daemon) url(l net.Listener) string {
	if s.cert != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// readToken reads the file of --token-file. A token is as long as a random one: a shorter one can be guessed. Without a file
// it is empty; an empty file is wrong usage, or it would open the service to all.
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
	var level slog.LevelVar
	level.UnmarshalText([]byte(s.level)) // one of the four
	options := &slog.HandlerOptions{Level: &level}
	if s.logs == "json" {
		return slog.New(slog.NewJSONHandler(s.Err, options)), nil
	}
	return slog.New(slog.NewTextHandler(s.Err, options)), nil
}

// openGate makes a gate with the settings of a program that runs on. Without --cache, its place is the user's own; if
// there is no such folder, it warns and keeps files in memory. With --connect-to another server answers, and the next
// run must not take that for what the sites say.
func (s *daemon) openGate(log *slog.Logger) (*site.Gate, error) {
	slog.SetDefault(log) // what the library says
	n := s.Network       // a copy: the flag stays as it was given
	if n.CacheAt == "" && len(n.ConnectTo) == 0 {
		dir, err := os.UserCacheDir()
		if err == nil {
			n.CacheAt = filepath.Join(dir, "robotsgate", "cache")
			err = os.MkdirAll(filepath.Dir(n.CacheAt), 0o700) // which sites were visited is the user's business
		}
		if err != nil {
			log.Warn("robots.txt is kept in memory only", "error", err)
			n.CacheAt = ""
		}
	}
	g, err := n.Open(s.Err)
	if err != nil {
		return nil, err
	}
	// Open has set what suits a run that ends. This precedes the first question.
	g.RunsOn(log, s.private)
	return g, nil
}
