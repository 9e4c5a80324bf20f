package integration_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

const (
	// outage is how long a moody site holds or refuses requests when its mood is bad.
	outage = 4 * time.Second

	// grace is how old a permission may be when the site sees the request: the second that a request may
	// take to be sent without a new decision, and one for a busy machine.
	grace = 2 * time.Second
)

// moody is a site that changes its rules and misbehaves at the same moment: over HTTP/1.1 it holds
// requests back and new connections too, over HTTP/2 it refuses streams. Between its moods it
// hangs up on kept connections and redirects, at random.
type moody struct {
	url    string
	h2     bool
	every  int64        // a bad mood begins with each so many requests
	seen   atomic.Int64 // requests for pages
	moods  atomic.Int64
	others []*moody // where it redirects to

	mu     sync.Mutex
	good   time.Time // when the mood ends
	rules  []known   // as the Cache came to know them
	faults []string
}

// known is which half of the site is closed, known since some time.
type known struct {
	closed string
	since  time.Time
}

// halves are what a page's path begins with. Each change of the rules closes the other.
var halves = [2]string{"/even/", "/odd/"}

func (s *moody) closed() string { return halves[s.moods.Load()%2] }

// learned notes that the Cache has a new copy.
func (s *moody) learned(file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range halves {
		if n := len(s.rules); strings.Contains(file, h) && (n == 0 || s.rules[n-1].closed != h) {
			s.rules = append(s.rules, known{h, time.Now()})
		}
	}
}

// witness judges a request for a page, and returns when to answer it.
func (s *moody) witness(target string) time.Time {
	n, now := s.seen.Add(1), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	allowed := false
	for i, r := range s.rules {
		last := i+1 < len(s.rules) && now.Sub(s.rules[i+1].since) > grace // replaced long ago
		allowed = allowed || !last && !strings.HasPrefix(target, r.closed)
	}
	if !allowed {
		newest := s.rules[len(s.rules)-1]
		s.faults = append(s.faults, fmt.Sprintf("%s%s was sent %v after the cache knew that %s is closed",
			s.url, target, now.Sub(newest.since).Round(time.Millisecond), newest.closed))
	}
	if n%s.every == 0 && now.After(s.good) {
		s.moods.Add(1)
		s.good = now.Add(outage)
	}
	return s.good
}

// held waits until the mood is good.
func (s *moody) held(ctx context.Context) error {
	s.mu.Lock()
	t := time.NewTimer(time.Until(s.good))
	s.mu.Unlock()
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// serve answers one connection.
func (s *moody) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if c, ok := conn.(*tls.Conn); ok {
		if c.HandshakeContext(ctx) != nil {
			return
		}
		if c.ConnectionState().NegotiatedProtocol == "h2" {
			s.serveStreams(conn)
			return
		}
	}
	r := bufio.NewReader(conn)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if req.RequestURI == "/robots.txt" {
			file := "User-agent: *\nDisallow: " + s.closed() + "\n"
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nContent-Length: %d\r\n\r\n%s", len(file), file)
			continue
		}
		s.witness(req.RequestURI)
		if s.held(ctx) != nil || n > 0 && rand.IntN(50) == 0 {
			return // hangs up on a kept connection, the request unanswered
		}
		if rand.IntN(20) == 0 {
			to := s.others[rand.IntN(len(s.others))]
			fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nLocation: %s%sr%d\r\nContent-Length: 0\r\n\r\n", to.url, halves[n%2], n)
			continue
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

// serveStreams is serve for HTTP/2.
func (s *moody) serveStreams(conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	var block strings.Builder
	hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			if time.Now().Before(s.witness(frame.PseudoValue("path"))) {
				f.WriteRSTStream(frame.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: frame.StreamID, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true,
			})
		}
	}
}

// TestNothingForbiddenIsSentWhateverConnectionsDo asks moody sites for pages. What net/http sends
// again, or late, is allowed by what the Cache knows then.
func TestNothingForbiddenIsSentWhateverConnectionsDo(t *testing.T) {
	t.Parallel()
	total, moods := 4000, 1
	if *full {
		total, moods = 200_000, 5
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()

	some := httptest.NewTLSServer(nil) // has a certificate
	defer some.Close()
	sites := make([]*moody, 8)
	byHost := make(map[string]*moody)
	for i := range sites {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s := &moody{h2: i%2 == 1, every: int64(total * 2 / 5 / len(sites) / moods), url: "http://" + l.Addr().String()}
		if byHost[l.Addr().String()] = s; s.h2 {
			s.url = "https://" + l.Addr().String()
			l = tls.NewListener(l, &tls.Config{Certificates: some.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
		}
		sites[i] = s
		serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serving.Go(func() { s.serve(ctx, conn) })
			}
		})
	}
	for _, s := range sites {
		s.others = sites
	}

	base := some.Client().Transport.(*http.Transport).Clone()
	base.MaxConnsPerHost, base.ForceAttemptHTTP2 = 4, true
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s := byHost[address]; !s.h2 && rand.IntN(4) == 0 {
			if err := s.held(ctx); err != nil {
				return nil, err
			}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	defer base.CloseIdleConnections()
	gate := &client.Transport{
		Base:  base,
		Cache: &cache.Cache{MinTTL: time.Second},
		Trace: &client.Trace{Fetched: func(_ context.Context, f client.FetchedInfo) {
			if f.Result != nil && f.Result.StatusCode == http.StatusOK {
				byHost[strings.TrimPrefix(strings.TrimPrefix(f.Origin.String(), "http://"), "https://")].learned(string(f.Result.Body))
			}
		}},
	}
	c := &http.Client{Transport: gate, Timeout: time.Minute}
	var asked, sent atomic.Int64
	var asking sync.WaitGroup
	for _, s := range sites { // the rules become known while requests hang
		serving.Go(func() {
			u, _ := url.Parse(s.url + halves[0])
			for tick := time.Tick(100 * time.Millisecond); ctx.Err() == nil; <-tick {
				gate.Decide(ctx, u)
			}
		})
	}
	for range 128 {
		asking.Go(func() {
			for n := asked.Add(1); n <= int64(total) && ctx.Err() == nil; n = asked.Add(1) {
				var body io.Reader
				method := "GET"
				if n%10 == 0 {
					method, body = "POST", strings.NewReader("body")
				}
				req, _ := http.NewRequestWithContext(ctx, method, fmt.Sprintf("%s%s%d", sites[rand.IntN(len(sites))].url, halves[rand.IntN(2)], n), body)
				if resp, err := c.Do(req); err == nil {
					sent.Add(1)
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
	asking.Wait()
	cancel()
	var seen, changes int64
	for _, s := range sites {
		s.mu.Lock()
		seen, changes = seen+s.seen.Load(), changes+s.moods.Load()
		for _, fault := range s.faults[:min(3, len(s.faults))] {
			t.Errorf("%s (h2: %v, %d of this kind)", fault, s.h2, len(s.faults))
		}
		s.mu.Unlock()
	}
	t.Logf("%d questions, %d answered, %d requests seen by %d sites that changed their rules %d times",
		total, sent.Load(), seen, len(sites), changes)
	if changes < int64(len(sites)*moods) {
		t.Errorf("the sites changed their rules %d times, too seldom to see anything", changes)
	}
}
