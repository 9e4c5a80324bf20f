package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// certified makes a certificate for 127.0.0.1, and returns the flags for it and a pool that trusts it.
func certified(t *testing.T) (flags []string, pool *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate, secret, err := proxy.MakeAuthority("test", nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	a, err := proxy.NewAuthority(certificate, secret)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return []string{"--tls-cert=" + cert, "--tls-key=" + key}, pool
}

// daemons are the subcommands that listen.
var daemons = []string{"serve", "proxy"}

// startDaemon runs one in this process, and returns where it says that it is reached.
func startDaemon(t *testing.T, name string, args ...string) (at string, log *proc.Log) {
	t.Helper()
	log = new(proc.Log)
	a := &shell.App{Streams: shell.Streams{Err: log}}
	cmd := newServer(a).command()
	if name == "proxy" {
		cmd = newProxy(a).command()
	}
	said, _, _ := startCommand(t, cmd, a, append([]string{"--listen=127.0.0.1:0", "--cache=none"}, args...))
	at, ok := strings.CutPrefix(said, "robots "+name+": ")
	if !ok {
		t.Fatalf("%s %q: it says %q", name, args, said)
	}
	return strings.TrimSpace(at), log
}

// What another server says in a site's place is not kept for a later run, which asks the site.
func TestDefaultCacheIsOfSitesThemselves(t *testing.T) {
	for _, to := range [][]string{nil, {"shop.example:443:staging.example:443"}} {
		home := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", home)
		a := &shell.App{Streams: shell.Streams{Err: io.Discard}}
		v := newServer(a)
		v.command() // which gives the flags their defaults
		v.ConnectTo = to
		g, err := v.openGate(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		g.End(t.Context(), a)
		if _, err := os.Stat(filepath.Join(home, "robotsgate", "cache")); (err == nil) != (to == nil) {
			t.Errorf("--connect-to %q: got %v, want a cache without it alone", to, err)
		}
	}
}

// A token that leaves the machine in clear is told of.
func TestATokenInClearIsToldOf(t *testing.T) {
	token := written(t, "0123456789abcdef\n")
	own, _ := certified(t)
	for args, want := range map[string]int{
		"--token-file=" + token:                                                   0,
		"--listen=0.0.0.0:0 --token-file=" + token:                                1,
		"--listen=0.0.0.0:0 --token-file=" + token + " " + strings.Join(own, " "): 0,
		"--listen=0.0.0.0:0 --open":                                               0,
	} {
		for _, name := range daemons {
			if _, log := startDaemon(t, name, strings.Fields(args)...); strings.Count(log.String(), "in clear") != want {
				t.Errorf("%s %s: want it told %d times: %s", name, args, want, log)
			}
		}
	}
}

func TestListeningIsCheckedFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for _, name := range daemons {
		for args, want := range map[string]int{
			"--tls-cert=" + dir + "/x":                          shell.ExitUsage,
			"--tls-key=" + dir + "/x":                           shell.ExitUsage,
			"--tls-key=" + dir + "/x --tls-cert=" + dir + "/x":  shell.ExitUnknown,
			"--listen=[::]:0":                                   shell.ExitUsage,
			"--listen=0.0.0.0:0 --token-file=" + dir + "/token": shell.ExitUnknown,
		} {
			var errs strings.Builder
			args := append([]string{name, "--cache=none"}, strings.Fields(args)...)
			if status := run(ctx, args, shell.Streams{Out: io.Discard, Err: &errs}); status != want {
				t.Errorf("%q: status %d, want %d: %s", args, status, want, &errs)
			}
		}
	}
}

// What a daemon says, such as the port that it got, has a reader. If that has gone, it ends like any other subcommand.
func TestADaemonWithoutAReaderEnds(t *testing.T) {
	for _, name := range daemons {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		r, out := io.Pipe()
		r.CloseWithError(syscall.EPIPE)
		var errs strings.Builder
		status := run(ctx, []string{name, "--cache=none", "--listen=127.0.0.1:0"}, shell.Streams{Out: out, Err: &errs})
		if cancel(); status != shell.ExitUnknown || errs.Len() > 0 {
			t.Errorf("%s: status %d, %q; want %d and no message", name, status, &errs, shell.ExitUnknown)
		}
	}
}

// All that a proxy does goes through TLS to it, too: what is plain, and what is in tunnels.
func TestProxyWorksOverTLS(t *testing.T) {
	own, trusted := certified(t)
	flags, _ := testCA(t, "--only=seen.example.com")
	trusted.AppendCertsFromPEM(read(t, strings.TrimPrefix(flags[0], "--ca=")))
	site := &origin{robots: map[string]string{"seen.example.com": "User-agent: *\nDisallow: /private\n"}}
	v := startProxy(t, slices.Concat(flags, bothSites(t, site.ServeHTTP), own, []string{"--private"})...)
	for target, want := range map[string]int{
		"http://seen.example.com/a": 200, "http://seen.example.com/private": 403,
		"https://seen.example.com/a": 200, "https://seen.example.com/private": 403,
	} {
		if status, said := ask(v.client(trusted), target); status != want {
			t.Errorf("%s: %d %s, want %d", target, status, said, want)
		}
	}
	if log := site.log(); len(log) != 2 {
		t.Errorf("the site was asked for %q, want two", log)
	}
}

// A service speaks HTTP/2 where it has TLS, and streams over it.
func TestServeWorksOverTLS(t *testing.T) {
	flags, pool := certified(t)
	c := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer c.CloseIdleConnections()
	at, _ := startDaemon(t, "serve", append(flags, "--private", siteServer(t, proxySite))...)
	body, send := io.Pipe()
	go io.WriteString(send, "http://s.example/a\n")
	res := answerTo(t, c, requestOf(t, "POST", at+"/v1/decide", body, "Content-Type: text/plain"))
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{`"allowed":true`, `"allowed":false`} { // each comes before the next is asked
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, want) || res.ProtoMajor != 2 {
			t.Errorf("%s: %s %v, want %s", res.Proto, line, err, want)
		}
		go io.WriteString(send, "http://s.example/private\n")
	}
	send.Close()
}
