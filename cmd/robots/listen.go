package main

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/listen"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// socket is where a program that runs on listens, and whom it answers.
type socket struct {
	address string
	cert    string // the file
	certKey string // the file
	token   string // the file
	anyone  bool
}

// registerListen adds the flags.
func (s *socket) registerListen(cmd *cobra.Command, address string) {
	f := cmd.Flags()
	f.StringVar(&s.address, "listen", address, "the `ADDRESS` to listen on, if systemd passes no socket")
	f.StringVar(&s.cert, "tls-cert", "", "speak TLS with the certificate and its chain in this `FILE`")
	f.StringVar(&s.certKey, "tls-key", "", "the `FILE` with its key. Both are read again when they change")
	f.StringVar(&s.token, "token-file", "", "ask each client for the bearer token in this `FILE`")
	f.BoolVar(&s.anyone, "open", false, "listen beyond loopback without a token")
}

// listen begins to listen: at l, if systemd passed that, else at address. Anyone may ask only on a loopback
// address, or with --open. protocols are those of TLS.
func (s *socket) listen(
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
	case isLoopback(l):
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

// url is where l is reached.
func (s *socket) url(l net.Listener) string {
	if s.cert != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

func isLoopback(l net.Listener) bool { return l.Addr().(*net.TCPAddr).IP.IsLoopback() }

// warnOfShared warns of each secret that others on this machine may read.
func (s *server) warnOfShared(log *slog.Logger) {
	for flag, name := range map[string]string{"--token-file": s.token, "--tls-key": s.certKey, "--sign-key": s.Signing.Key} {
		listen.WarnIfShared(log, flag, name)
	}
}

// readToken reads the file of --token-file. A token is as long as a random one.
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
