package fetch_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/origins"
	"github.com/robotsgate/robotsgate/policy"
)

// piped is a transport whose server reads a request, writes the bytes of message, and
// closes, in memory.
func piped(message func() []byte) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				server.Write(message())
			}
		}()
		return client, nil
	}}
}

func chunks(s string) string {
	half := len(s) / 2
	return fmt.Sprintf("%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\nTrailer: x\r\n\r\n", half, s[:half], len(s)-half, s[half:])
}

// Half of a file permits what the other half forbids, so nothing of it may count.
func TestAnAnswerThatIsCutAnywhereGivesNoPermission(t *testing.T) {
	for _, c := range []struct {
		name, message string
		until         int // cuts after this offset are harmless; 0: none is
	}{
		{"length", origins.Reply(200, file), 0},
		{"empty file", origins.Reply(200, ""), 0},
		{"chunked", origins.Head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + chunks(file), 0},
		{"gzip", origins.Reply(200, origins.Gzip(file), "Content-Encoding: gzip"), 0},
		{"gzip, chunked", origins.Head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Encoding: gzip") + chunks(origins.Gzip(file)), 0},
		{"gzip, to the end of the connection", origins.Head("HTTP/1.1 200 OK", "Content-Encoding: gzip") + origins.Gzip(file), 0},
		{"after an interim response", origins.Head("HTTP/1.1 103 Early Hints") + origins.Reply(200, file), 0},
		{"404", origins.Reply(404, ""), 0},
		{"404 with a body", origins.Reply(404, file), len(origins.Reply(404, file)) - len(file)},
		{"204", origins.Head("HTTP/1.1 204 No Content", "X: y"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut := len(c.message)
			f := fetch.Fetcher{Retries: -1, Transport: piped(func() []byte { return []byte(c.message[:cut]) })}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			if err != nil || r.Err != nil {
				t.Fatalf("whole: %v, %v", err, r.Err)
			}
			last := len(c.message)
			if c.until > 0 {
				last = c.until
			}
			for cut = range last {
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				if err != nil || verdict(r) != "disallow" || r.Err == nil {
					t.Fatalf("cut after %q: %s, %v", c.message[:cut], verdict(r), err)
				}
			}
		})
	}
}

// program makes up a misbehaving server.
func program(rnd *rand.Rand) origins.Program {
	texts := []string{
		"HTTP/1.1 200 OK\r\n", "HTTP/1.1 302 Found\r\nLocation: /robots.txt?", "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n",
		"HTTP/1.1 103 Early\r\n\r\n", "Content-Length: 100\r\n", "Content-Encoding: gzip\r\n", "Transfer-Encoding: chunked\r\n",
		"Connection: close\r\n", "\r\n", file, "5\r\n# abc\r\n", "0\r\n\r\n", origins.Gzip(file), strings.Repeat("# x\n", 50_000),
		origins.Reply(200, file), origins.Reply(404, ""), origins.Reply(302, "", "Location: /other"), "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	}
	var p origins.Program
	for range 1 + rnd.IntN(7) {
		switch rnd.IntN(12) {
		case 0:
			p = append(p, origins.Pause(time.Duration(rnd.IntN(200))*time.Millisecond))
		case 1:
			p = append(p, origins.Close)
		case 2:
			p = append(p, origins.Reset)
		case 3:
			p = append(p, origins.HalfClose)
		case 4:
			p = append(p, origins.Hang)
		case 5:
			p = append(p, origins.Drip("HTTP/1", 100*time.Millisecond))
		case 6:
			p = append(p, origins.Flood(texts[rnd.IntN(len(texts))]))
		default:
			p = append(p, origins.Write(texts[rnd.IntN(len(texts))]))
		}
	}
	return p
}

func TestNoServerExceedsTheBudget(t *testing.T) {
	const (
		servers = 200
		timeout = 2 * time.Second
		retries = 2
	)
	n, err := origins.Start(4)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	base := n.Transport()
	f := fetch.Fetcher{Transport: base, Timeout: timeout, Retries: retries}
	slots := make(chan struct{}, 32)
	sites := make([]*origins.Origin, servers)
	took := make([]time.Duration, servers)
	var all sync.WaitGroup
	for i := range servers {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		o := &origins.Origin{Name: fmt.Sprintf("s%d.test", i), Paths: map[string][]origins.Program{
			"/robots.txt": {program(rnd), program(rnd)}, "/other": {program(rnd)},
		}}
		if rnd.IntN(4) == 0 {
			o.Accept = []origins.Program{program(rnd), nil}
		}
		n.Add(o)
		sites[i] = o
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start := time.Now()
			r, err := f.Fetch(context.Background(), originOf(t, "http://"+o.Name), nil)
			took[i] = time.Since(start)
			if err != nil || r.Policy == nil || (r.Err != nil) != (verdict(r) == "disallow") || len(r.Body) > fetch.MaxBytes+1 {
				t.Errorf("server %d: %v, %v", i, r, err)
			}
		})
	}
	all.Wait()
	for i, o := range sites {
		c := o.Counts()
		if limit := (1 + retries) * 6; c.Dials > limit || c.Dials > 18 {
			t.Errorf("server %d: %d dials", i, c.Dials)
		}
		for path, n := range c.Requests {
			if n > 1+retries && !strings.HasPrefix(path, "/robots.txt") { // the query is not counted apart
				t.Errorf("server %d: %d requests for %s", i, n, path)
			}
		}
		if c.Octets > int64(c.Dials)*(4<<20) {
			t.Errorf("server %d: %d bytes over %d connections", i, c.Octets, c.Dials)
		}
		if took[i] > timeout+3*time.Second { // patience for a busy machine: without a bound, many would never end
			t.Errorf("server %d: took %v", i, took[i])
		}
	}
}

// FuzzResponse: whatever a server sends, the Result is complete, bounded, and consistent.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(origins.Reply(200, file)), uint8(0))
	f.Add([]byte(origins.Reply(200, origins.Gzip(file), "Content-Encoding: gzip")), uint8(1))
	f.Add([]byte(origins.Head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")+chunks(file)), uint8(2))
	f.Add([]byte(origins.Reply(302, "", "Location: //b.test/x?y#z")), uint8(3))
	f.Add([]byte(origins.Reply(503, "", "Retry-After: 99999999999999999999", "Date: x")), uint8(4))
	f.Add([]byte(origins.Reply(304, "", `ETag: "x"`)), uint8(0))
	f.Add([]byte(origins.Head("HTTP/1.1 103 Early Hints")+origins.Reply(200, "")), uint8(0))
	f.Fuzz(func(t *testing.T, message []byte, dialect uint8) {
		fetcher := fetch.Fetcher{
			Retries: -1, Dialect: policy.Dialect(dialect % 5), Timeout: 5 * time.Second,
			Transport: piped(func() []byte { return message }),
		}
		r, err := fetcher.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, err, verdict(r))
		if r.RetryAfter < 0 || r.RetryAfter > 24*time.Hour {
			t.Errorf("RetryAfter is %v", r.RetryAfter)
		}
		if ok := bytes.HasPrefix(message, []byte("HTTP/1.")); verdict(r) != "disallow" && !ok && !strings.HasPrefix(string(message), "HTTP/") {
			t.Errorf("%q gives %s", message, verdict(r))
		}
	})
}

// BenchmarkFetch is what a Fetch costs above the same exchange by net/http alone.
func BenchmarkFetch(b *testing.B) {
	base := piped(func() []byte { return []byte(origins.Reply(200, file, "Connection: close")) })
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			res, err := (&http.Client{Transport: base}).Get("http://a.test/robots.txt")
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	b.Run("Fetcher", func(b *testing.B) {
		f, o := fetch.Fetcher{Transport: base}, originOf(b, "http://a.test")
		b.ReportAllocs()
		for b.Loop() {
			if r, err := f.Fetch(b.Context(), o, nil); err != nil || r.Err != nil {
				b.Fatal(err, r.Err)
			}
		}
	})
}
