package origins

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Verdict is what a robots.txt answer permits.
type Verdict string

// The verdicts. Rules are those of File: /private is disallowed and all else is not.
const (
	Allow    Verdict = "allow"
	Disallow Verdict = "disallow"
	Rules    Verdict = "rules"
)

// File is the robots.txt of a good origin.
const File = "User-agent: *\nDisallow: /private\n"

// Fault is a way in which a site can misbehave.
type Fault struct {
	Class int // the kind of misbehaviour
	Name  string

	RFC9309, Google Verdict // of the first fetch, without retries unless Retry
	Then            Verdict // of a second fetch, if that differs
	Retry           bool    // whether one retry is what it takes
	HTTPS           bool    // whether the site is asked over https

	// Site makes the origins of it. The first is the site; the names of the others begin
	// with what it is called, so that many sites with the same fault share nothing.
	Site func(name string) []*Origin
}

// InTurn returns a site that answers the nth request for robots.txt with the nth program,
// and later ones with the last.
func InTurn(of ...Program) func(name string) []*Origin {
	return func(name string) []*Origin {
		return []*Origin{{Name: name, Paths: map[string][]Program{"/robots.txt": of}}}
	}
}

// Answer returns a site that answers requests for robots.txt with one message: see Reply.
func Answer(status any, body string, fields ...string) func(name string) []*Origin {
	return InTurn(Program{Write(Reply(status, body, fields...))})
}

// OnAccept returns a good site but for what it does to the nth connection before anything
// is read of it: see Origin.Accept.
func OnAccept(of ...Program) func(name string) []*Origin {
	return func(name string) []*Origin {
		return []*Origin{{Name: name, Accept: of, Paths: map[string][]Program{"/robots.txt": {good}}}}
	}
}

// WithTLS returns a good site but for its port 443.
func WithTLS(f TLSFault) func(name string) []*Origin {
	return func(name string) []*Origin {
		return []*Origin{{Name: name, TLS: f, Paths: map[string][]Program{"/robots.txt": {good}}}}
	}
}

// Nowhere is a site whose name does not exist.
func Nowhere(name string) []*Origin { return dead(dnsmessage.RCodeNameError, 0)(name) }

// Hops returns a site that redirects n times with code, from path to path or from host to
// host, and then serves File.
func Hops(n int, code int, hosts bool) func(name string) []*Origin {
	return func(name string) []*Origin {
		all := []*Origin{{Name: name, Paths: map[string][]Program{}}}
		path := func(i int) string {
			if i == 0 {
				return "/robots.txt"
			}
			return fmt.Sprintf("/hop%d.txt", i)
		}
		for i := range n {
			at, to := all[len(all)-1], path(i+1)
			if hosts {
				host := fmt.Sprintf("h%d.%s", i+1, name)
				all = append(all, &Origin{Name: host, Paths: map[string][]Program{}})
				to = "http://" + host + to
			}
			at.Paths[path(i)] = []Program{{Write(Reply(code, "", "Location: "+to))}}
		}
		all[len(all)-1].Paths[path(n)] = []Program{good}
		return all
	}
}

var good = Program{Write(Reply(200, File))}

// one is a site that answers every request for robots.txt with p.
func one(p ...Step) func(string) []*Origin { return InTurn(p) }

// broken answers with s, which says how it ends itself, and closes.
func broken(s string) func(string) []*Origin { return one(Write(s), Close) }

// stalled answers with s, and hangs.
func stalled(s string) func(string) []*Origin { return one(Write(s), Hang) }

// slowHops takes d for each of five redirects.
func slowHops(d time.Duration) func(string) []*Origin {
	return func(name string) []*Origin {
		all := Hops(5, 302, false)(name)
		for path, of := range all[0].Paths {
			all[0].Paths[path] = []Program{append(Program{Pause(d)}, of[0]...)}
		}
		return all
	}
}

// inside redirects to a name that resolves to addr.
func inside(addr string) func(string) []*Origin {
	return func(name string) []*Origin {
		host := "inside." + name
		return []*Origin{
			Answer(302, "", "Location: http://"+host+"/robots.txt")(name)[0],
			{Name: host, Addr: netip.MustParseAddr(addr), Paths: map[string][]Program{"/robots.txt": {good}}},
		}
	}
}

// dead is a name that cannot be connected to.
func dead(code dnsmessage.RCode, addresses int) func(string) []*Origin {
	return func(name string) []*Origin {
		var addrs []netip.Addr
		for i := range addresses {
			addrs = append(addrs, netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}))
		}
		return []*Origin{{Name: name, Dial: Resolved(code, addrs...)}}
	}
}

// Gzip returns s in that coding.
func Gzip(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// Bomb returns File and 100 MiB of comment, packed into 100 KB.
var Bomb = sync.OnceValue(func() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, File)
	hashes := bytes.Repeat([]byte("#"), 1<<20)
	for range 100 {
		z.Write(hashes)
	}
	z.Close()
	return b.String()
})

// emptyMember is a gzip member that holds nothing.
var emptyMember = Gzip("")

// wrongSum is File in gzip, with a checksum of something else.
func wrongSum() string {
	b := []byte(Gzip(File))
	b[len(b)-8] ^= 0xFF // RFC 1952 §2.3.1: CRC32, then ISIZE
	return string(b)
}

// utf16 returns s in UTF-16, big-endian, with a byte order mark or without.
func utf16(s string, mark bool) string {
	var b strings.Builder
	if mark {
		b.WriteString("\xFE\xFF")
	}
	for i := range len(s) {
		b.WriteByte(0)
		b.WriteByte(s[i])
	}
	return b.String()
}

// crowded returns a file of about half a megabyte: File among n groups of other robots,
// each with the given rules.
func crowded(n int, rules string) string {
	var b strings.Builder
	b.WriteString(File)
	for i := 0; i < n && b.Len() < 490_000; i++ {
		fmt.Fprintf(&b, "User-agent: other%d\n%s\n", i, rules)
	}
	return b.String()
}

// chunked returns body in chunks of size bytes, with the given extension and end.
func chunked(body string, size int, extension, end string) string {
	var b strings.Builder
	b.WriteString(Head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"))
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x%s\r\n%s\r\n", n, extension, body[:n])
		body = body[n:]
	}
	return b.String() + end
}

// frame returns an HTTP/2 frame (RFC 9113 §4.1).
func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags,
		byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}

// The frames that a server of HTTP/2 begins with, and that ask the client to try again
// elsewhere: GOAWAY for all streams, and a stream that is refused.
var (
	settings = frame(4, 0, 0, "")
	goAway   = frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")
	refused  = frame(3, 0, 1, "\x00\x00\x00\x07")
)
