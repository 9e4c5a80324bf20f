package ftp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/ftp"
	"github.com/robotsgate/robotsgate/policy"
)

// What an ftpSite may do instead of replying.
const (
	silence = "\x00" // says nothing more
	hangUp  = "\x01" // closes the control connection
	forEver = "\x02" // repeats the text that follows
)

const maxFile = 500 << 10 // bytes of a file that count (RFC 9309 §2.5)

// ftpSite is a server that does what its row says, and otherwise what RFC 959 does.
type ftpSite struct {
	says map[string]string // by verb; "" is the greeting, "end" what follows the data
	data func(net.Conn)    // if nil, sends file

	mu       sync.Mutex
	commands []string // received, on all connections
	sessions int
}

// usual is what an ftpSite says if its row does not. %d is the port for data, and %s the same
// as PASV has it: always with an address that is not the server's own.
var usual = map[string]string{
	"": "220 ready\r\n", "USER": "331 password\r\n", "PASS": "230 welcome\r\n", "TYPE": "200 binary\r\n",
	"EPSV": "229 Entering Extended Passive Mode (|||%d|)\r\n", "PASV": "227 Entering Passive Mode (127,0,0,2,%s)\r\n",
	"RETR": "150 here it comes\r\n", "end": "226 done\r\n", "QUIT": "221 bye\r\n",
}

func (s *ftpSite) text(verb string) string {
	if text, ok := s.says[verb]; ok {
		return text
	}
	return usual[verb]
}

// say does what the row has for verb, and reports whether the session goes on.
func (s *ftpSite) say(c net.Conn, verb string, port int) bool {
	text := strings.ReplaceAll(s.text(verb), "%d", fmt.Sprint(port))
	text = strings.ReplaceAll(text, "%s", fmt.Sprintf("%d,%d", port>>8, port&0xff))
	if again, ok := strings.CutPrefix(text, forEver); ok {
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c, strings.Repeat(again, 100))
		}
		return false
	}
	said := strings.TrimRight(text, silence+hangUp)
	io.WriteString(c, said)
	if strings.HasSuffix(text, silence) {
		io.Copy(io.Discard, c)
	}
	return said == text
}

// serve is one session.
func (s *ftpSite) serve(t *testing.T, c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	s.sessions++
	s.mu.Unlock()
	host, _, _ := net.SplitHostPort(c.LocalAddr().String())
	own, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Error(err)
		return
	}
	defer own.Close()
	port := own.Addr().(*net.TCPAddr).Port
	// The address that PASV names. It is another process's, perhaps: then it is not ours to watch.
	if decoy, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port)); err == nil {
		defer untouched(t, decoy)
	}
	if !s.say(c, "", port) {
		return
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		s.mu.Lock()
		s.commands = append(s.commands, lines.Text())
		s.mu.Unlock()
		verb, _, _ := strings.Cut(lines.Text(), " ")
		if !s.say(c, verb, port) || verb == "QUIT" {
			return
		}
		if verb == "RETR" && strings.HasPrefix(s.text(verb), "1") {
			s.send(own)
			if !s.say(c, "end", port) {
				return
			}
		}
	}
}

// untouched asserts that no connection was made to l.
func untouched(t *testing.T, l net.Listener) {
	l.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Millisecond))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Errorf("connected to %v, which only the server has named", l.Addr())
	}
	l.Close()
}

func (s *ftpSite) send(l net.Listener) {
	l.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Second))
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	if s.data != nil {
		s.data(c)
		return
	}
	io.WriteString(c, file)
}

// start serves on a loopback address until the test ends, and returns the site's URL.
func (s *ftpSite) start(t *testing.T, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skip(err)
	}
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { s.serve(t, c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		sessions.Wait() // a client that has not let go would hang here
	})
	return "ftp://" + l.Addr().String() + "/"
}

// sends is a data connection with a file of its own.
func sends(text string) func(net.Conn) {
	return func(c net.Conn) { io.WriteString(c, text) }
}

// stalls is a data connection that gets no further than text.
func stalls(text string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, text)
		io.Copy(io.Discard, c)
	}
}

func resets(c net.Conn) {
	io.WriteString(c, file)
	c.(*net.TCPConn).SetLinger(0)
}

func neverEnds(c net.Conn) {
	io.WriteString(c, file)
	for err := error(nil); err == nil; {
		_, err = io.WriteString(c, strings.Repeat("# more\n", 1000))
	}
}

// ftpOutcomes is the table of what an FTP server may do, and what comes of it. A row whose
// err is "within" waits for the time-out.
var ftpOutcomes = []struct {
	name   string
	site   ftpSite
	want   string
	status int
	err    string
}{
	// What goes well.
	{"as RFC 959 has it", ftpSite{}, "rules", 200, ""},
	{"ready after a while", ftpSite{says: map[string]string{"": "120 in 1 minute\r\n220 now\r\n"}}, "rules", 200, ""},
	{"a greeting of many lines", ftpSite{says: map[string]string{"": "220-Hello\r\n  230 no reply\r\n\r\n220-and\r\n220 ready\r\n"}}, "rules", 200, ""},
	{"no EPSV, PASV names another address", ftpSite{says: map[string]string{"EPSV": "500 what?\r\n"}}, "rules", 200, ""},
	{"PASV without parentheses", ftpSite{says: map[string]string{"EPSV": "502 no\r\n", "PASV": "227 Entering passive mode. 127,0,0,2,%s.\r\n"}}, "rules", 200, ""},
	{"EPSV with another delimiter", ftpSite{says: map[string]string{"EPSV": "229 go (!!!%d!)\r\n"}}, "rules", 200, ""},
	{"transfer connection open already", ftpSite{says: map[string]string{"RETR": "125 starting\r\n", "end": "250 done\r\n"}}, "rules", 200, ""},
	{"done before the data has come", ftpSite{says: map[string]string{"RETR": "150 here\r\n226 done\r\n", "end": ""}}, "rules", 200, ""},
	{"an empty file", ftpSite{data: sends("")}, "allow", 200, ""},

	// There is no file.
	{"550", ftpSite{says: map[string]string{"RETR": "550 no such file\r\n"}}, "allow", 404, ""},

	// The login fails.
	{"full", ftpSite{says: map[string]string{"": "421 too many users\r\n" + hangUp}}, "disallow", 0, "to the connection: 421"},
	{"530 to PASS", ftpSite{says: map[string]string{"PASS": "530 no\r\n"}}, "disallow", 0, "to PASS: 530"},
	{"530 to RETR", ftpSite{says: map[string]string{"RETR": "530 log in\r\n"}}, "disallow", 0, "to RETR: 530"},
	{"503 to RETR", ftpSite{says: map[string]string{"RETR": "503 bad sequence\r\n"}}, "disallow", 0, "to RETR: 503"},

	// It goes away, at each step.
	{"421 to PASV", ftpSite{says: map[string]string{"EPSV": "500 no\r\n", "PASV": "421 bye\r\n" + hangUp}}, "disallow", 0, "to PASV: 421"},
	{"421 to RETR", ftpSite{says: map[string]string{"RETR": "421 bye\r\n" + hangUp}}, "disallow", 0, "to RETR: 421"},
	{"closed after the data", ftpSite{says: map[string]string{"end": hangUp}}, "disallow", 200, "unexpected EOF"},

	// It stalls, at each step.
	{"silent", ftpSite{says: map[string]string{"": silence}}, "disallow", 0, "within"},
	{"a line without end", ftpSite{says: map[string]string{"": "220 ready" + silence}}, "disallow", 0, "within"},
	{"150, but no data connection", ftpSite{says: map[string]string{"RETR": "150 here\r\n" + silence}}, "disallow", 200, "within"},
	{"data that stalls", ftpSite{data: stalls(file)}, "disallow", 200, "within"},

	// It cannot send the file now, or breaks off.
	{"425 to RETR", ftpSite{says: map[string]string{"RETR": "425 no connection\r\n"}}, "disallow", 0, "to RETR: 425"},
	{"426 after the data", ftpSite{says: map[string]string{"end": "426 aborted\r\n"}}, "disallow", 200, "426"},
	{"another 2yz after the data", ftpSite{says: map[string]string{"end": "200 ok\r\n"}}, "disallow", 200, "the end of RETR: 200"},
	{"a data connection that is reset", ftpSite{data: resets}, "disallow", 200, "reset"},
	{"226 and no data", ftpSite{says: map[string]string{"RETR": "226 done\r\n"}}, "disallow", 0, "to RETR: 226"},
	{"425 and no data", ftpSite{says: map[string]string{"RETR": "150 here\r\n425 no connection\r\n" + silence}}, "disallow", 200, "the end of RETR: 425"},
	{"550 and no data", ftpSite{says: map[string]string{"RETR": "150 here\r\n550 gone\r\n" + silence}}, "disallow", 200, "the end of RETR: 550"},
	{"421 in the middle of data that stalls", ftpSite{says: map[string]string{"RETR": "150 here\r\n421 bye\r\n"}, data: stalls(file)}, "disallow", 200, "the end of RETR: 421"},

	// It speaks something else.
	{"HTTP", ftpSite{says: map[string]string{"": "HTTP/1.1 400 Bad Request\r\n\r\n" + hangUp}}, "disallow", 0, "no reply to"},
	{"SSH", ftpSite{says: map[string]string{"": "SSH-2.0-OpenSSH_9.2\r\n"}}, "disallow", 0, "no reply to"},

	// Where the data is.
	{"EPSV with garbage", ftpSite{says: map[string]string{"EPSV": "229 ok\r\n"}}, "disallow", 0, "to EPSV: 229"},
	{"EPSV with an address", ftpSite{says: map[string]string{"EPSV": "229 ok (|1|127.0.0.2|%d|)\r\n"}}, "disallow", 0, "to EPSV: 229"},
	{"EPSV with a port too high", ftpSite{says: map[string]string{"EPSV": "229 ok (|||65536|)\r\n"}}, "disallow", 0, "to EPSV: 229"},
	{"EPSV with a port of a service", ftpSite{says: map[string]string{"EPSV": "229 ok (|||22|)\r\n"}}, "disallow", 0, "below 1024"},
	{"EPSV with a port where nothing listens", ftpSite{says: map[string]string{"EPSV": "229 ok (|||1024|)\r\n"}}, "disallow", 0, "refused"},
	{"PASV with 256", ftpSite{says: map[string]string{"EPSV": "500 no\r\n", "PASV": "227 ok (127,0,0,256,%s)\r\n"}}, "disallow", 0, "to PASV: 227"},
	{"neither EPSV nor PASV", ftpSite{says: map[string]string{"EPSV": "500 no\r\n", "PASV": "500 no\r\n"}}, "disallow", 0, "to PASV: 500"},

	// It does not stop.
	{"endless banner", ftpSite{says: map[string]string{"": forEver + "220-" + strings.Repeat("welcome ", 100) + "\r\n"}}, "disallow", 0, "64 KiB"},
	{"endless reply of short lines", ftpSite{says: map[string]string{"PASS": forEver + "230-\n"}}, "disallow", 0, "1000 lines"},
	{"endless reply of empty lines", ftpSite{says: map[string]string{"PASS": "230-" + "\n\n" + strings.Repeat("\n", 1000) + silence}}, "disallow", 0, "1000 lines"},
	{"120 for ever", ftpSite{says: map[string]string{"": forEver + "120 soon\r\n"}}, "disallow", 0, "to the connection: 120"},
	{"a file of 500 KiB", ftpSite{data: sends(ofLength(maxFile))}, "rules", 200, ""},
	{"a file of 500 KiB, broken off", ftpSite{data: sends(ofLength(maxFile)), says: map[string]string{"end": hangUp}}, "disallow", 200, "EOF"},
	{"a longer file", ftpSite{data: sends(ofLength(maxFile + 1000))}, "rules", 200, ""},
	{"a longer file, aborted at its end", ftpSite{data: sends(ofLength(maxFile + 1000)), says: map[string]string{"end": "451 error\r\n"}}, "rules", 200, ""},
	{"data without end", ftpSite{data: neverEnds}, "rules", 200, ""},
}

func ofLength(n int) string { return file + strings.Repeat("#", n-len(file)) }

func TestFTPOutcomes(t *testing.T) {
	for i := range ftpOutcomes {
		row := &ftpOutcomes[i]
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := fetch.Fetcher{Transport: over(nil), Retries: -1, Timeout: 20 * time.Second}
			if row.err == "within" {
				f.Timeout = 500 * time.Millisecond
			}
			r := fetched(t, &f, row.site.start(t, "127.0.0.1"), row.want)
			if timedOut := row.err == "within"; !timedOut && r.StatusCode != row.status || row.err != "" && !strings.Contains(fmt.Sprint(r.Err), row.err) {
				t.Errorf("got status %d, Err %v, want %d and %q", r.StatusCode, r.Err, row.status, row.err)
			}
			if long := strings.Contains(row.name, "longer") || strings.Contains(row.name, "without end"); r.Err == nil && r.Truncated != long {
				t.Errorf("got Truncated %t, want %t", r.Truncated, long)
			}
			for d := policy.RFC9309; d <= policy.Original; d++ {
				if r.Truncated && d == policy.Yandex { // to whom a file that is too long allows all
					continue
				}
				if got := verdict(r.In(d)); got != row.want {
					t.Errorf("in %v: got %s, want %s", d, got, row.want)
				}
			}
		})
	}
}

// The commands are those of RFC 959 and no others, above all neither PORT nor EPRT.
func TestFTPCommands(t *testing.T) {
	const login = "USER anonymous,PASS anonymous@example.com,TYPE I,EPSV"
	for _, c := range []struct {
		name string
		site *ftpSite
		want string
	}{
		{"EPSV", &ftpSite{}, login + ",RETR robots.txt,QUIT"},
		{"PASV", &ftpSite{says: map[string]string{"EPSV": "500 no\r\n"}}, login + ",PASV,RETR robots.txt,QUIT"},
		{"no passive mode", &ftpSite{says: map[string]string{"EPSV": "500 no\r\n", "PASV": "502 no\r\n"}}, login + ",PASV,QUIT"},
		{"no file", &ftpSite{says: map[string]string{"RETR": "550 no\r\n"}}, login + ",RETR robots.txt,QUIT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Transport: over(nil), UserAgent: "a\tb", Retries: -1}
			if _, err := f.Fetch(t.Context(), originOf(t, c.site.start(t, "127.0.0.1")), nil); err != nil {
				t.Fatal(err)
			}
			got := ""
			for end := time.Now().Add(5 * time.Second); got != c.want && time.Now().Before(end); time.Sleep(time.Millisecond) {
				c.site.mu.Lock()
				got = strings.Join(c.site.commands, ",")
				c.site.mu.Unlock()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFTPOverIPv6(t *testing.T) {
	for _, says := range []map[string]string{nil, {"EPSV": "522 no\r\n"}} {
		s := &ftpSite{says: says}
		f := fetch.Fetcher{Transport: over(nil), Retries: -1}
		fetched(t, &f, s.start(t, "::1"), "rules")
	}
}

// A 4yz may pass, a 5yz would recur, and a file that broke off is asked for once more.
func TestFTPRetries(t *testing.T) {
	for _, c := range []struct {
		name     string
		says     map[string]string
		sessions int
	}{
		{"a good answer", nil, 1},
		{"no file", map[string]string{"RETR": "550 no\r\n"}, 1},
		{"full", map[string]string{"": "421 too many users\r\n"}, 3},
		{"no reply", map[string]string{"TYPE": hangUp}, 3},
		{"login refused", map[string]string{"PASS": "530 no\r\n"}, 1},
		{"no port", map[string]string{"EPSV": "229 ok\r\n"}, 3},
		{"broken off", map[string]string{"end": "426 aborted\r\n"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &ftpSite{says: c.says}
			f := fetch.Fetcher{Transport: over(nil)}
			if _, err := f.Fetch(t.Context(), originOf(t, s.start(t, "127.0.0.1")), nil); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.sessions != c.sessions {
				t.Errorf("got %d sessions, want %d", s.sessions, c.sessions)
			}
		})
	}
}

const file = "User-agent: *\nDisallow: /private\n"

// over is an http.Transport that speaks FTP over a dialer; nil is that of package net.
func over(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	t := new(http.Transport)
	t.RegisterProtocol("ftp", &ftp.Transport{DialContext: dial})
	return t
}

func originOf(t testing.TB, raw string) (o fetch.Origin) {
	t.Helper()
	u, err := url.Parse(raw)
	if err == nil {
		o, err = fetch.OriginOf(u)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ExampleTransport() {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.RegisterProtocol("ftp", &ftp.Transport{DialContext: base.DialContext})
	c := &http.Client{Transport: base} // for a crawler, with a client.Transport above base
	_, err := c.Get("ftp://ftp.example.com/")
	fmt.Println(err)
	// Output: Get "ftp://ftp.example.com/": ftp: the path "/" names no file
}

// verdict says in a word what a Result permits.
func verdict(r *fetch.Result) string {
	public, private := r.Policy.Decide("examplebot", "/public"), r.Policy.Decide("examplebot", "/private/x")
	switch {
	case public.Allowed && private.Allowed:
		return "allow"
	case public.Allowed:
		return "rules"
	}
	return "disallow"
}

// fetched is what f makes of the robots.txt for a URL.
func fetched(t *testing.T, f *fetch.Fetcher, url, want string) *fetch.Result {
	t.Helper()
	r, err := f.Fetch(t.Context(), originOf(t, url), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := verdict(r); got != want || (r.Err != nil) != (want == "disallow") {
		t.Errorf("got verdict %s, want %s (status %d, Err %v)", got, want, r.StatusCode, r.Err)
	}
	return r
}
