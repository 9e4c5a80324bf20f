package fetch_test

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
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// ftpInMemory is a transport to an FTP server in memory, which sends the file after the "pause" that it
// says. What the client is told of its peers are the addresses given.
func ftpInMemory(control, data string, says map[string]string) *http.Transport {
	at := func(c net.Conn, addr string) net.Conn {
		if addr == "" {
			return c
		}
		return peer{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))}
	}
	s := &ftpSite{says: says}
	pause, _ := time.ParseDuration(says["pause"])
	return &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
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
	}}
}

// A turn may be lost while a connection is made. No more is sent then, but a goodbye to who was greeted.
func TestFTPLostTurns(t *testing.T) {
	for port, want := range map[string]string{"21": "", "2000": "USER PASS TYPE EPSV QUIT ", "none": "USER PASS TYPE EPSV RETR QUIT "} {
		synctest.Test(t, func(t *testing.T) {
			var lost error
			var sent strings.Builder
			memory := ftpInMemory("192.0.2.1:21", "", nil)
			tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if strings.HasSuffix(addr, ":"+port) {
					lost = errors.New("turn lost")
				}
				c, err := memory.DialContext(ctx, network, addr)
				return noted{c, &sent}, err
			}}
			ctx := fetch.WithTurns(t.Context(), func() error { return lost }, func(*url.URL, int, time.Time) error { return lost })
			r, err := (&fetch.Fetcher{Transport: tr, FTP: true}).Fetch(ctx, originOf(t, "ftp://a.example"), nil)
			if err != nil || (r.Err == nil) != (lost == nil) || sent.String() != want {
				t.Errorf("lost at port %s: %v, %v after %q, want %q", port, r, err, &sent, want)
			}
		})
	}
}

// noted notes the verb of each command.
type noted struct {
	net.Conn
	sent *strings.Builder
}

func (c noted) Write(p []byte) (int, error) {
	c.sent.WriteString(string(p[:4]) + " ")
	return c.Conn.Write(p)
}

// Wherever the server is when the caller gives up, Fetch returns at once, and nothing of it
// is left: a bubble waits for its goroutines.
func TestFTPEndsWithItsContext(t *testing.T) {
	for _, verb := range []string{"", "USER", "PASS", "TYPE", "EPSV", "RETR", "end"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer time.AfterFunc(time.Second, cancel).Stop()
			f := fetch.Fetcher{FTP: true, Timeout: -1, Transport: ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", map[string]string{verb: silence})}
			start := time.Now()
			_, err := f.Fetch(ctx, originOf(t, "ftp://a.test/"), nil)
			if took := time.Since(start); !errors.Is(err, context.Canceled) || took != time.Second {
				t.Errorf("silent after %q: got %v after %v, want Canceled after 1s", verb, err, took)
			}
		})
	}
}

// Timeout bounds both connections together. Without one, each reply still has its end, as
// the header of a response has.
func TestFTPTimeouts(t *testing.T) {
	for _, verb := range []string{"", "USER", "PASS", "TYPE", "EPSV", "RETR", "end"} {
		for timeout, want := range map[time.Duration]time.Duration{
			-1: 10 * time.Second, 4 * time.Second: 2 * time.Second, 0: 10 * time.Second,
		} {
			synctest.Test(t, func(t *testing.T) {
				f := fetch.Fetcher{FTP: true, Retries: -1, Timeout: timeout, Transport: ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", map[string]string{verb: silence})}
				start := time.Now()
				fetched(t, &f, "ftp://a.test/", nil, "disallow")
				if took := time.Since(start); took != want {
					t.Errorf("Timeout %v, silent after %q: took %v, want %v", timeout, verb, took, want)
				}
			})
		}
	}
}

// No reply is due while the file comes, however slowly.
func TestFTPAFileMayComeSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", map[string]string{"pause": "12s"})
		f := fetch.Fetcher{FTP: true, Retries: -1, Timeout: time.Minute, Transport: base}
		fetched(t, &f, "ftp://a.test/", nil, "rules")
	})
}

// The guard looks at both connections, and the second goes to the first one's address.
func TestFTPAddresses(t *testing.T) {
	const public = "93.184.216.34:"
	for _, c := range []struct {
		name, control, data string
		publicOnly          bool
		want, err           string
	}{
		{"public", public + "21", public + "2000", true, "rules", ""},
		{"private", "10.0.0.1:21", "10.0.0.1:2000", false, "rules", ""},
		{"private, but only public ones may be", "10.0.0.1:21", "10.0.0.1:2000", true, "disallow", "private address 10.0.0.1 refused"},
		{"private data", public + "21", "10.0.0.1:2000", true, "disallow", "private address 10.0.0.1 refused"},
		{"an unknown peer", "", "", false, "disallow", "does not tell the address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := ftpInMemory(c.control, c.data, nil)
			dial, dialled := base.DialContext, ""
			base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dialled += " " + addr
				return dial(ctx, network, addr)
			}
			f := fetch.Fetcher{FTP: true, Retries: -1, PublicOnly: c.publicOnly, Transport: base}
			r, err := f.Fetch(t.Context(), originOf(t, "ftp://a.test/"), nil)
			check(t, r, err, c.want)
			if !strings.Contains(fmt.Sprint(r.Err), c.err) {
				t.Errorf("got Err %v, want %q", r.Err, c.err)
			}
			if peer, _, _ := net.SplitHostPort(c.control); c.want == "rules" && dialled != " a.test:21 "+peer+":2000" {
				t.Errorf("dialled%s", dialled)
			}
		})
	}
	t.Run("an address of this machine", func(t *testing.T) {
		s := &ftpSite{}
		f := fetch.Fetcher{FTP: true, PublicOnly: true}
		fetched(t, &f, s.start(t, "127.0.0.1"), nil, "disallow")
		if s.sessions != 0 {
			t.Error("it was connected to")
		}
	})
}

func TestFTPHoldsThePanicsOfATransport(t *testing.T) {
	data := func(of func() (net.Conn, error)) *http.Transport {
		base := ftpInMemory("192.0.2.1:21", "", nil)
		dial := base.DialContext
		base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasSuffix(addr, ":2000") {
				return of()
			}
			return dial(ctx, network, addr)
		}
		return base
	}
	client, _ := net.Pipe()
	for name, base := range map[string]*http.Transport{
		"dialer":      {DialContext: func(context.Context, string, string) (net.Conn, error) { panic("no") }},
		"data dialer": data(func() (net.Conn, error) { panic("no") }),
		"no data":     data(func() (net.Conn, error) { return nil, nil }),
		"data": data(func() (net.Conn, error) {
			return wicked{Conn: client, read: func([]byte) (int, error) { panic("no") }}, nil
		}),
		"deadline": {DialContext: func(context.Context, string, string) (net.Conn, error) {
			return wicked{Conn: client, deadline: func() error { panic("no") }}, nil
		}},
		"Proxy": {Proxy: func(*http.Request) (*url.URL, error) { panic("no") }},
	} {
		t.Run(name, func(t *testing.T) {
			f := fetch.Fetcher{FTP: true, Retries: -1, Timeout: time.Second, Transport: base}
			fetched(t, &f, "ftp://a.test/", nil, "disallow")
		})
	}
}

// FTP is not spoken past the proxy that a transport names, nor through it.
func TestFTPKnowsNoProxy(t *testing.T) {
	for name, proxy := range map[string]func(*http.Request) (*url.URL, error){
		"a proxy for all": http.ProxyURL(&url.URL{Scheme: "http", Host: "192.0.2.1:3128"}),
		"an error":        func(*http.Request) (*url.URL, error) { return nil, errors.New("no proxy today") },
	} {
		f := fetch.Fetcher{FTP: true, Retries: -1, Transport: &http.Transport{
			Proxy: proxy,
			DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
				t.Errorf("%s: dialled %s", name, addr)
				return nil, errors.New("no")
			},
		}}
		r := fetched(t, &f, "ftp://a.test/", nil, "disallow")
		if !strings.Contains(fmt.Sprint(r.Err), "proxy") {
			t.Errorf("%s: got Err %v, want one that names the proxy", name, r.Err)
		}
	}
}

// Pages come from what is registered for ftp, robots.txt from the network.
func TestFTPRegisteredWithATransportDoesNotReadRobots(t *testing.T) {
	base := ftpInMemory("192.0.2.1:21", "192.0.2.1:2000", nil)
	base.RegisterProtocol("ftp", roundtrip.Func(func(*http.Request) (*http.Response, error) { return response(404, ""), nil }))
	f := fetch.Fetcher{FTP: true, Transport: base}
	fetched(t, &f, "ftp://a.test/", nil, "rules")
}

// Any other RoundTripper is asked as for http, and answers as for http.
func TestFTPThroughAnotherRoundTripper(t *testing.T) {
	for status, want := range map[int]string{200: "rules", 404: "allow", 503: "disallow", 550: "disallow"} {
		asked := ""
		f := fetch.Fetcher{
			FTP: true, Retries: -1,
			Sign: func(*http.Request) error { return errors.New("only http and https are signed") },
			Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
				asked += r.Method + " " + r.URL.String()
				return response(status, file), nil
			}),
		}
		fetched(t, &f, "ftp://A.test:21/x", nil, want)
		if asked != "GET ftp://a.test/robots.txt" {
			t.Errorf("asked for %q", asked)
		}
	}
}

// FuzzFTP has a server say anything on either connection. No permission comes of it unless a
// reply gives it, and no connection goes to another place than the server's.
func FuzzFTP(f *testing.F) {
	seen := map[string]bool{}
	for i := range ftpOutcomes {
		row := &ftpOutcomes[i]
		var said strings.Builder
		for _, verb := range []string{"", "USER", "PASS", "TYPE", "EPSV", "PASV", "RETR", "end"} {
			if verb != "PASV" || strings.HasPrefix(row.site.text("EPSV"), "5") {
				said.WriteString(strings.NewReplacer("%d", "2000", "%s", "7,208").Replace(row.site.text(verb)))
			}
		}
		if text := said.String(); !seen[text] {
			seen[text] = true
			f.Add([]byte(text), []byte(file))
		}
	}
	f.Fuzz(func(t *testing.T, said, data []byte) {
		dials := 0
		fetcher := fetch.Fetcher{FTP: true, Retries: -1, Transport: &http.Transport{
			DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
				if dials++; dials == 1 {
					return told{bytes.NewReader(said)}, nil
				}
				if to, err := netip.ParseAddrPort(addr); err != nil || dials > 2 || to.Addr().String() != "192.0.2.1" || to.Port() < 1024 {
					t.Errorf("dial %d to %s", dials, addr)
				}
				return told{bytes.NewReader(data)}, nil
			},
		}}
		r, err := fetcher.Fetch(t.Context(), originOf(t, "ftp://a.test/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		switch r.StatusCode {
		case 200:
			whole := bytes.Contains(said, []byte("226")) || bytes.Contains(said, []byte("250")) || len(data) > fetch.MaxBytes
			if r.Err == nil && (!whole || !bytes.Contains(said, []byte("15")) && !bytes.Contains(said, []byte("125"))) {
				t.Errorf("a file without a reply that says so: %q", said)
			}
		case 404:
			if r.Err != nil || !bytes.Contains(said, []byte("50")) && !bytes.Contains(said, []byte("55")) {
				t.Errorf("no file without a reply that says so: %q", said)
			}
		default:
			if r.StatusCode != 0 || r.Err == nil {
				t.Errorf("status %d, Err %v", r.StatusCode, r.Err)
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
