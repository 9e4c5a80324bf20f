package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// million makes the tests of "robots filter" use 1,000,000 URLs on 2,000 origins; it
// needs a machine's whole attention for some seconds, and no race detector.
var million = flag.Bool("million", false, "filter 1,000,000 URLs on 2,000 origins, and ask all that is known of real files")

// noSleep is the GORACE of all commands: else each takes a second to end under -race.
const noSleep = "atexit_sleep_ms=0"

// The resolver is set before anything may read it: a client of Redis that has no server dials on
// when its test is over.
func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dialNames}
	os.Setenv("GORACE", noSleep)
	testscript.Main(m, map[string]func(){"robots": main})
}

// TestScripts runs the command as its users do: testdata/script has one file per
// subject, in the language of package testscript and with two commands more.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		WorkdirRoot:         t.TempDir(), // its own stays if some scripts are skipped
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", noSleep)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":  serveCmd,
			"asked":  askedCmd,
			"walled": walledCmd,
			"ftp":    ftpCmd,
		},
	})
}

// sites answers for origins whose names are the folders of dir: dir/NAME/robots.txt
// with 200, or what the lines of dir/NAME/answer say: a status, then header fields.
type sites struct {
	dir   string
	mu    sync.Mutex
	asked map[string]int // robots.txt requests by host
}

func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if r.URL.Path == "/robots.txt" {
		s.mu.Lock()
		s.asked[host]++
		s.mu.Unlock()
	}
	status := http.StatusOK
	f, err := os.Open(filepath.Join(s.dir, host, filepath.Base(r.URL.Path)+".answer"))
	if err != nil {
		f, err = os.Open(filepath.Join(s.dir, host, "answer"))
	}
	if err == nil {
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Scan()
		status, _ = strconv.Atoi(lines.Text())
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			w.Header().Set(name, value)
		}
	}
	body, err := os.ReadFile(filepath.Join(s.dir, host, filepath.Base(r.URL.Path)))
	if err != nil && status == http.StatusOK {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	w.Write(body)
}

// serveCmd is "serve DIR": it serves the sites of DIR and sets $TO, the value of
// --connect-to that leads to them.
func serveCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve DIR")
	}
	s := &sites{dir: ts.MkAbs(args[0]), asked: map[string]int{}}
	server := httptest.NewServer(s)
	ts.Defer(server.Close)
	ts.Setenv("TO", "::"+server.Listener.Addr().String())
	served.Store(ts, s)
	ts.Defer(func() { served.Delete(ts) })
}

// served holds the *sites of each running script.
var served sync.Map

// askedCmd is "asked HOST N": robots.txt of HOST has been asked for N times.
func askedCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: asked HOST N")
	}
	v, _ := served.Load(ts)
	s := v.(*sites)
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := fmt.Sprint(s.asked[args[0]]); got != args[1] {
		ts.Fatalf("robots.txt of %s was asked for %s times, want %s", args[0], got, args[1])
	}
}

// ftpCmd is "ftp FILE": it serves FILE to anyone who asks for a file over FTP, and sets $FTP, the URL of
// its site.
func ftpCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ftp FILE")
	}
	file := ts.ReadFile(args[0])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("FTP", "ftp://"+l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go sayFile(c, file)
		}
	}()
}

// sayFile is a session of FTP (RFC 959, RFC 2428).
func sayFile(c net.Conn, file string) {
	defer c.Close()
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer data.Close()
	fmt.Fprint(c, "220 ready\r\n")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		verb, _, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "EPSV":
			fmt.Fprintf(c, "229 (|||%d|)\r\n", data.Addr().(*net.TCPAddr).Port)
		case "RETR":
			fmt.Fprint(c, "150 here\r\n")
			if d, err := data.Accept(); err == nil {
				io.WriteString(d, file)
				d.Close()
			}
			fmt.Fprint(c, "226 done\r\n")
		case "PASS", "USER":
			fmt.Fprint(c, "230 in\r\n")
		default:
			fmt.Fprint(c, "200 ok\r\n")
		}
	}
}

// walledCmd is "walled DIRECTORY": example.com is a site over https that admits only requests
// signed by a key of the file DIRECTORY, which it also serves. Its robots.txt forbids /private.
// $TO leads there, and its certificate is trusted.
func walledCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: walled DIRECTORY")
	}
	set := ts.ReadFile(args[0])
	keys, err := sign.ReadKeys([]byte(set))
	ts.Check(err)
	lookUp := func(_, id string) (ed25519.PublicKey, error) {
		if key := keys[id]; key != nil {
			return key, nil
		}
		return nil, errors.New("not listed")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, err := sign.Verify(r, lookUp); {
		case r.URL.Path == sign.DirectoryPath:
			w.Header().Set("Content-Type", sign.DirectoryType)
			w.Write([]byte(set))
		case err != nil:
			w.Header().Set("Accept-Signature", `sig1=("@authority" "signature-agent");tag="web-bot-auth"`)
			http.Error(w, err.Error(), http.StatusForbidden)
		case r.URL.Path == "/robots.txt":
			w.Write([]byte("User-agent: *\nDisallow: /private\n"))
		}
	}))
	ts.Defer(server.Close)
	ca := ts.MkAbs("ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	ts.Check(os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	ts.Setenv("SSL_CERT_FILE", ca)
	ts.Setenv("TO", "::"+server.Listener.Addr().String())
}

// Each text of --help fits into a terminal, and has none of the library's own signs.
func TestHelpFitsIntoATerminal(t *testing.T) {
	var out bytes.Buffer
	root := rootCommand(new(shell.App), &out)
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		out.Reset()
		cmd.SetOut(&out)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 || strings.Contains(line, "[=") {
				t.Errorf("%s: got %d columns, want 80 at most, without [=: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, c := range cmd.Commands() {
			if c.Name() != "completion" { // whose texts are the library's
				all(c)
			}
		}
	}
	all(root)
}

// A value that a flag cannot have is wrong usage, and told as that of the flag, in each subcommand that has it. A flag
// that names a file takes any text but none.
func TestAMalformedValueIsWrongUsage(t *testing.T) {
	url, key := "http://127.0.0.1:1/", filepath.Join(t.TempDir(), "key.pem")
	run(t.Context(), []string{"sign", "keygen", key}, shell.Streams{Out: io.Discard, Err: io.Discard})
	arguments := map[string]string{
		"check": url, "diff": "/dev/null /dev/null", "fetch": url, "lint": url, "man": "/dev/null/a", "page": url,
		"proxy ca": "/dev/null/a /dev/null/b", "sign check": "https://127.0.0.1:1/", "sign directory": key,
		"sign keygen": "/dev/null/a", "sitemap": url, "usage": url,
	}
	word, listen := []string{"", "bogus"}, []string{"", "bogus", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "::1:80"}
	malformed := map[string][]string{
		"agent": {"", "a b"}, "agents": {"", "a b", "a,,b"}, "agreements": {""}, "as": word, "ca": {""}, "ca-key": {""},
		"cache": {"", "a://b", "redis://h/x"}, "color": word, "connect-to": word, "disable": word, "drain": {"", "soon", "-1s"},
		"fail-on": word, "format": word, "header": word, "host": {"", "a b", "http://a", "a:80", ".a"}, "listen": listen, "log": word,
		"log-level": word, "metrics-listen": listen, "only": {"", "a b", "http://a"}, "output": {""}, "parallel": {"", "many", "0"},
		"refuse": word, "refused": {""}, "robots": {""}, "severity": word, "sign-agent": {"", "http://a"}, "sign-key": {""},
		"signature-agent": word, "timeout": {"", "soon", "0s"}, "tls-cert": {""}, "tls-key": {""}, "token-file": {""},
		"trusted": {"", "10.0.0.1", "a"}, "turn-time": {"", "soon", "0s"}, "urls": {""}, "user-agent": {"", "a\nb"},
		"uses": {"", "bogus"},
	}
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			values := malformed[f.Name]
			if f.Value.Type() == "bool" {
				values = word
			}
			if values == nil {
				t.Errorf("%s has --%s, for which there is no row", name, f.Name)
			}
			for _, value := range values {
				args := append(strings.Fields(name), "--"+f.Name+"="+value)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // serve and proxy run until then
				var errs strings.Builder
				std := shell.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs}
				status := run(ctx, append(args, strings.Fields(arguments[name])...), std)
				cancel()
				said, _, _ := strings.Cut(errs.String(), "\n")
				told := strings.Contains(said, "--"+f.Name) || value != "" && strings.Contains(said, strconv.Quote(value))
				if status != shell.ExitUsage || !told {
					t.Errorf("robots %q: status %d, %q; want %d, and the flag or its value", args, status, said, shell.ExitUsage)
				}
			}
		})
		for _, c := range cmd.Commands() {
			all(c)
		}
	}
	all(rootCommand(new(shell.App), io.Discard))
}
