package ftp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/ftp"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// ftpInMemory is a transport to an FTP server in memory, which sends the file after the "pause" that it
// says. What the client is told of its peers are the addresses given.
func ftpInMemory(control, data string, says map[string]string) dialer {
	at := func(c net.Conn, addr string) net.Conn {
		if addr == "" {
			return c
		}
		return peer{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))}
	}
	s := &ftpSite{says: says}
	pause, _ := time.ParseDuration(says["pause"])
	return func(_ context.Context, _, addr string) (net.Conn, error) {
		client, server := net.Pipe()
		if strings.HasSuffix(addr, ":2000") {
			go func() {
				defer server.Close()
				time.Sleep(pause)
				io.WriteString(server, file)
			}()
			return at(client, data), nil
		}
		go func() {
			defer server.Close()
			if !s.say(server, "", 2000) {
				return
			}
			for lines := bufio.NewScanner(server); lines.Scan(); {
				verb, _, _ := strings.Cut(lines.Text(), " ")
				if !s.say(server, verb, 2000) {
					return
				}
				if verb == "RETR" {
					time.Sleep(pause)
					if !s.say(server, "end", 2000) {
						return
					}
				}
			}
		}()
		return at(client, control), nil
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// peer is a connection that tells an address of its own.
type peer struct {
	net.Conn
	addr net.Addr
}

func (p peer) RemoteAddr() net.Addr { return p.addr }

// Timeout bounds both connections together. Without one, each reply still has its end, as the header of a response has.
// Wherever the server is when the caller gives up, Fetch returns at once, and nothing of it is left: a bubble waits for
// its goroutines.
func TestFTPTimeouts(t *testing.T) {
	for _, verb := range []string{"", "USER", "PASS", "TYPE", "EPSV", "RETR", "end"} {
		for _, c := range []struct{ timeout, caller, want time.Duration }{
			{-1, time.Hour, 10 * time.Second}, {4 * time.Second, time.Hour, 2 * time.Second}, {0, time.Hour, 10 * time.Second},
			{-1, time.Second, time.Second},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.caller)
				defer cancel()
				f := fetch.Fetcher{Retries: -1, Timeout: c.timeout, Transport: over(ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", map[string]string{verb: silence}))}
				start := time.Now()
				r, err := f.Fetch(ctx, originOf(t, "ftp://a.test/"), nil)
				if took := time.Since(start); took != c.want || (err != nil) != (c.caller == c.want) || err == nil && verdict(r) != "disallow" {
					t.Errorf("%v, silent after %q: got %v, %v after %v, want an error (%t) or disallow after %v", c, verb, r, err, took, c.caller == c.want, c.want)
				}
			})
		}
	}
}

// Without a Timeout of the Transport a server is waited for as long as the caller likes.
func TestFTPWithoutATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "ftp://a.test/robots.txt", nil)
		if err != nil {
			t.Fatal(err)
		}
		silent := ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", map[string]string{"USER": silence})
		start := time.Now()
		_, err = (&ftp.Transport{DialContext: silent, Timeout: -1}).RoundTrip(req)
		if took := time.Since(start); err == nil || took != time.Hour {
			t.Errorf("got %v after %v, want an error after an hour", err, took)
		}
	})
}

// No reply is due while the file comes, however slowly.
func TestFTPAFileMayComeSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", map[string]string{"pause": "12s"})
		f := fetch.Fetcher{Retries: -1, Timeout: time.Minute, Transport: over(base)}
		fetched(t, &f, "ftp://a.test/", "rules")
	})
}

// The second connection goes to the first one's address, wherever the server says that it is.
func TestFTPAddresses(t *testing.T) {
	for _, c := range []struct{ control, want, err string }{
		{"93.184.216.34:21", "rules", ""},
		{"[2001:db8::1]:21", "rules", ""},
		{"", "disallow", "does not tell the address"},
	} {
		dial, dialled := ftpInMemory(c.control, c.control, nil), ""
		f := fetch.Fetcher{Retries: -1, Transport: over(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled += " " + addr
			return dial(ctx, network, addr)
		})}
		r := fetched(t, &f, "ftp://a.test/", c.want)
		if !strings.Contains(fmt.Sprint(r.Err), c.err) {
			t.Errorf("got Err %v, want %q", r.Err, c.err)
		}
		if at := strings.TrimSuffix(c.control, ":21"); c.want == "rules" && dialled != " a.test:21 "+at+":2000" {
			t.Errorf("dialled%s, want a.test:21 %s:2000", dialled, at)
		}
	}
}

// With the dialer of fetch.PublicOnly, no address is connected to that is not public.
func TestFTPOverPublicOnly(t *testing.T) {
	s := &ftpSite{}
	base := fetch.PublicOnly(new(http.Transport))
	base.RegisterProtocol("ftp", &ftp.Transport{DialContext: base.DialContext})
	f := fetch.Fetcher{Transport: base}
	r, err := f.Fetch(t.Context(), originOf(t, s.start(t, "127.0.0.1")), nil)
	if r != nil || !errors.Is(err, fetch.ErrNotPublic) || s.sessions != 0 {
		t.Errorf("got %v, %v, want ErrNotPublic", r, err)
	}
}

// A Transport that does not speak ftp is a mistake of ours, and the error says what to register.
func TestFTPThatIsNotRegistered(t *testing.T) {
	for _, base := range []http.RoundTripper{nil, new(http.Transport)} {
		f := fetch.Fetcher{Transport: base}
		r, err := f.Fetch(t.Context(), originOf(t, "ftp://a.test"), nil)
		failure, _ := errors.AsType[*fetch.Failure](err)
		if r != nil || failure == nil || failure.Cause != "proxy_configuration_error" || !strings.Contains(failure.Text, "RegisterProtocol") {
			t.Errorf("got %v, %v, want an error that names RegisterProtocol", r, err)
		}
	}
}

// Any other RoundTripper is asked as for http, and answers as for http. Nothing is signed.
func TestFTPThroughAnotherRoundTripper(t *testing.T) {
	for status, want := range map[int]string{200: "rules", 404: "allow", 503: "disallow", 550: "disallow"} {
		asked := ""
		f := fetch.Fetcher{
			Retries: -1, Sign: func(*http.Request) error { return errors.New("only http and https are signed") },
			Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
				asked += r.Method + " " + r.URL.String()
				return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(file))}, nil
			}),
		}
		fetched(t, &f, "ftp://A.test:21/x", want)
		if asked != "GET ftp://a.test/robots.txt" {
			t.Errorf("asked for %q, want GET ftp://a.test/robots.txt", asked)
		}
	}
}

// Pages come by the name that their URL has, and what is none is not sent.
func TestFTPOfAnyFile(t *testing.T) {
	for path, want := range map[string]string{
		"/pub/a%20b": "RETR pub/a b", "/%2Fetc/motd;type=a": "RETR /etc/motd", "/a%0D%0ADELE%20b": "", "/": "", "": "", "/a%00": "",
	} {
		s := &ftpSite{}
		res, err := (&http.Client{Transport: over(nil)}).Get(strings.TrimSuffix(s.start(t, "127.0.0.1"), "/") + path)
		if (err == nil) != (want != "") {
			t.Fatalf("%s: got %v, want an error: %t", path, err, want == "")
		}
		if err != nil {
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		s.mu.Lock()
		if string(body) != file || err != nil || s.commands[4] != want {
			t.Errorf("%s: got %q, %v after %q, want %s", path, body, err, s.commands, want)
		}
		s.mu.Unlock()
	}
	for _, c := range []struct{ method, url string }{{http.MethodHead, "ftp://a.test/x"}, {http.MethodPut, "ftp://a.test/x"}, {http.MethodGet, "ftp://me:pw@a.test/x"}} {
		req, err := http.NewRequest(c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := over(nil).RoundTrip(req); err == nil {
			t.Errorf("%v: got %v, want an error", c, res.Status)
		}
	}
	s := &ftpSite{says: map[string]string{"RETR": "550 no such file\r\n"}}
	res, err := (&http.Client{Transport: over(nil)}).Get(s.start(t, "127.0.0.1") + "x")
	if err != nil || res.StatusCode != 404 || !strings.Contains(res.Status, "550 no such file") {
		t.Errorf("got %v, %v, want a 404 that says 550", res, err)
	}
}

// FuzzFTP has a server say anything on either connection. No permission comes of it unless a
// reply gives it, and no connection goes to another place than the server's.
func FuzzFTP(f *testing.F) {
	const begin = "220 ready\r\n331 password\r\n230 in\r\n200 binary\r\n"
	for _, end := range []string{
		"229 go (|||2000|)\r\n150 here\r\n226 done\r\n", "500 no\r\n227 go (127,0,0,2,7,208)\r\n125 here\r\n250 done\r\n",
		"229 go (|||22|)\r\n", "229 go (|||2000|)\r\n550 no\r\n", "229 go (|||2000|)\r\n150 here\r\n426 aborted\r\n",
	} {
		f.Add([]byte(begin+end), []byte(file))
	}
	f.Fuzz(func(t *testing.T, said, data []byte) {
		dials := 0
		fetcher := fetch.Fetcher{Retries: -1, Transport: over(
			func(_ context.Context, _, addr string) (net.Conn, error) {
				if dials++; dials == 1 {
					return told{bytes.NewReader(said)}, nil
				}
				if to, err := netip.ParseAddrPort(addr); err != nil || dials > 2 || to.Addr().String() != "192.0.2.1" || to.Port() < 1024 {
					t.Errorf("dial %d to %s, want two, to 192.0.2.1 and a port from 1024 on", dials, addr)
				}
				return told{bytes.NewReader(data)}, nil
			},
		)}
		r, err := fetcher.Fetch(t.Context(), originOf(t, "ftp://a.test/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		switch r.StatusCode {
		case 200:
			whole := bytes.Contains(said, []byte("226")) || bytes.Contains(said, []byte("250")) || len(data) > maxFile
			if r.Err == nil && (!whole || !bytes.Contains(said, []byte("15")) && !bytes.Contains(said, []byte("125"))) {
				t.Errorf("got a file, want none without 125 or 150 and 226 or 250 in %q", said)
			}
		case 404:
			if r.Err != nil || !bytes.Contains(said, []byte("50")) && !bytes.Contains(said, []byte("55")) {
				t.Errorf("got %v, want no such file only with 50x or 55x in %q", r, said)
			}
		default:
			if r.StatusCode != 0 || r.Err == nil {
				t.Errorf("got status %d, Err %v, want 200, 404, or 0 with an Err", r.StatusCode, r.Err)
			}
		}
	})
}

// told is a connection to 192.0.2.1 that says what it is told to.
type told struct{ *bytes.Reader }

func (told) Write(p []byte) (int, error)      { return len(p), nil }
func (told) Close() error                     { return nil }
func (told) LocalAddr() net.Addr              { return nil }
func (told) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 21} }
func (told) SetDeadline(time.Time) error      { return nil }
func (told) SetReadDeadline(time.Time) error  { return nil }
func (told) SetWriteDeadline(time.Time) error { return nil }
