package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

var moodSeed = flag.Uint64("seed", 0, "`seed` of the questions and of what happens to them; 0: another one each time")

const (
	// grace is how old a permission may be when a request has its connection, which is when it is written: a
	// second, and what a busy machine takes from the gate's look at the clock to ours.
	grace = 1250 * time.Millisecond

	// sections are the first segment of a page's path. Each version of robots.txt closes three of them.
	sections = 6
)

// outing is one question, over all hops and sendings.
type outing struct {
	conn    atomic.Int64            // when it had its latest connection, in Unix nanoseconds
	allowed atomic.Pointer[url.URL] // what it was let through for last
}

type outingKey struct{}

// moody is a site that changes its rules again and again, and misbehaves. It holds answers, and over HTTP/1.1
// new connections, or refuses streams; it hangs up on kept connections, and redirects.
type moody struct {
	number int
	url    string
	seed   uint64
	visits []outing
	others []*moody // where it redirects to
	seen   atomic.Int64
	odd    atomic.Int64 // requests that were not just answered

	mu     sync.Mutex
	good   time.Time // until then it holds and refuses
	rules  []version // that it has had; the last one is served
	newest int       // that was fetched
	faults []string
}

// version is a robots.txt.
type version struct {
	closed   [sections]bool
	received int64     // Result.Time, in Unix nanoseconds; 0: not fetched
	held     time.Time // when it was decided by first, so the Cache has held it or a later one since; zero: never
}

// file is a version in words: its number, and what it closes.
func (v *version) file(n int) string {
	file := fmt.Sprintf("# %d\nUser-agent: *\n", n)
	for i, closed := range v.closed {
		if closed {
			file += fmt.Sprintf("Disallow: /%d/\n", i)
		}
	}
	return file
}

// change closes other sections.
func (s *moody) change(random *rand.Rand) {
	var v version
	for _, i := range random.Perm(sections)[:sections/2] {
		v.closed[i] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, v)
}

// served is the robots.txt of now.
func (s *moody) served() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.rules) - 1
	return s.rules[n].file(n)
}

// fetched notes which version a Result has.
func (s *moody) fetched(file []byte, received time.Time) {
	line, _, _ := bytes.Cut(file, []byte("\n"))
	n, err := strconv.Atoi(strings.TrimPrefix(string(line), "# "))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || n >= len(s.rules) {
		s.faults = append(s.faults, fmt.Sprintf("robots.txt begins with %q", line))
		return
	}
	s.newest, s.rules[n].received = n, received.UnixNano()
}

// decided notes that there was a decision by the version that was received then.
func (s *moody) decided(received time.Time) {
	at := received.UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := s.newest; n >= 0; n-- {
		if v := &s.rules[n]; v.received == at && v.held.IsZero() {
			v.held = time.Now()
		}
		if !s.rules[n].held.IsZero() {
			return
		}
	}
}

// witness judges a request for a page that has arrived: a version that the Cache held while the permission was
// young enough has to allow it. Which of those it was, nobody can tell from here.
func (s *moody) witness(target, id string) (v *outing, until time.Time) {
	s.seen.Add(1)
	section, _ := strconv.Atoi(target[1:2])
	n, _ := strconv.Atoi(id)
	v = &s.visits[n]
	written := time.Unix(0, v.conn.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	allowed, oldest := false, s.newest
	for ; oldest >= 0 && !allowed; oldest-- {
		r := &s.rules[oldest]
		allowed = r.received != 0 && !r.closed[section]
		if !r.held.IsZero() && r.held.Before(written.Add(-grace)) {
			break // an earlier one was not decided by any more
		}
	}
	if !allowed && oldest >= 0 {
		held := s.rules[oldest].held
		s.faults = append(s.faults, fmt.Sprintf("%s%s was sent %v after the Cache had version %d, and all since close it:\n%s",
			s.url, target, written.Sub(held).Round(time.Millisecond), oldest, s.rules[oldest].file(oldest)))
	}
	if id == "" || !allowed && oldest < 0 {
		s.faults = append(s.faults, fmt.Sprintf("%s%s was sent before there was a robots.txt", s.url, target))
	}
	return v, s.good
}

// sulk begins a bad mood.
func (s *moody) sulk(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good = time.Now().Add(d)
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

// fate is what becomes of a request that has arrived.
type fate int

const (
	answered fate = iota
	redirected
	stalled
	dropped // hung up on, or its stream refused
)

// fateOf draws it, from the question and the sending.
func (s *moody) fateOf(id string, v *outing) (fate, *rand.Rand) {
	n, _ := strconv.ParseUint(id, 10, 64)
	random := rand.New(rand.NewPCG(s.seed^n, uint64(v.conn.Load())))
	f := answered
	switch p := random.IntN(1000); {
	case p < 50:
		f = redirected
	case p < 55:
		f = stalled
	case p < 70:
		f = dropped
	}
	if f != answered {
		s.odd.Add(1)
	}
	return f, random
}

// elsewhere is where a redirect leads.
func (s *moody) elsewhere(random *rand.Rand) string {
	return fmt.Sprintf("%s/%d/r", s.others[random.IntN(len(s.others))].url, random.IntN(sections))
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
			file := s.served()
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nContent-Length: %d\r\n\r\n%s", len(file), file)
			continue
		}
		id := req.Header.Get("X-Question")
		v, _ := s.witness(req.RequestURI, id)
		if s.held(ctx) != nil {
			return
		}
		location := ""
		switch f, random := s.fateOf(id, v); {
		case f == dropped && n > 0:
			return // a kept connection, and the request is not answered
		case f == stalled:
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		case f == redirected:
			location = "Location: " + s.elsewhere(random) + "\r\n"
		}
		status := "200 OK"
		if location != "" {
			status = "302 Found"
		}
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\n%sContent-Length: 0\r\n\r\n", status, location)
	}
}

// serveStreams is serve for HTTP/2.
func (s *moody) serveStreams(conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	var mu sync.Mutex // guards what is written
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		mu.Lock()
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
			id := ""
			for _, field := range frame.RegularFields() {
				if field.Name == "x-question" {
					id = field.Value
				}
			}
			v, bad := s.witness(frame.PseudoValue("path"), id)
			s.answer(f, &mu, frame.StreamID, id, v, time.Now().Before(bad))
		}
		mu.Unlock()
	}
}

// answer answers a stream, or refuses it.
func (s *moody) answer(f *http2.Framer, mu *sync.Mutex, stream uint32, id string, v *outing, bad bool) {
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	what, random := s.fateOf(id, v)
	switch {
	case bad || what == dropped:
		f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		return
	case what == redirected:
		fields.WriteField(hpack.HeaderField{Name: ":status", Value: "302"})
		fields.WriteField(hpack.HeaderField{Name: "location", Value: s.elsewhere(random)})
	default:
		fields.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	}
	write := func() {
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	}
	if what != stalled {
		write()
		return
	}
	time.AfterFunc(time.Duration(random.Int64N(int64(2*time.Second))), func() {
		mu.Lock()
		defer mu.Unlock()
		write()
	})
}

// live changes the rules of the site until ctx ends, and now and then its mood: what is held over a change is what the
// test is about.
func (s *moody) live(ctx context.Context) {
	random := rand.New(rand.NewPCG(s.seed, uint64(s.number)))
	for n := 0; ctx.Err() == nil; n++ {
		s.change(random)
		next := time.Second
		if n == 0 || random.IntN(8) == 0 {
			s.sulk(2500*time.Millisecond + time.Duration(random.Int64N(int64(time.Second))))
		} else {
			next += time.Duration(random.Int64N(int64(3 * time.Second)))
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

// TestNothingForbiddenIsSentWhateverConnectionsDo asks moody sites for pages, 200,000 times with -full. The sites
// judge: no request that an *http.Transport sends, sends again or sends late is forbidden by all the rules that the
// Cache held within the last second.
func TestNothingForbiddenIsSentWhateverConnectionsDo(t *testing.T) {
	tier.Gate(t)
	aside(t)
	total := sizes.Of(200_000)
	seed := *moodSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()

	some := httptest.NewTLSServer(nil) // has a certificate
	defer some.Close()
	sites, visits := make([]*moody, 8), make([]outing, total+1)
	byHost := make(map[string]*moody)
	for i := range sites {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s := &moody{number: i, seed: seed, visits: visits, others: sites, newest: -1, url: "http://" + l.Addr().String()}
		if sites[i], byHost[l.Addr().String()] = s, s; i%2 == 1 {
			s.url = "https://" + l.Addr().String()
			l = tls.NewListener(l, &tls.Config{Certificates: some.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}})
		}
		s.change(rand.New(rand.NewPCG(seed, uint64(i)<<32)))
		serving.Go(func() { s.live(ctx) })
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

	base := some.Client().Transport.(*http.Transport).Clone()
	base.MaxConnsPerHost, base.ForceAttemptHTTP2 = 4, true
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s := byHost[address]; s.number%2 == 0 && rand.IntN(4) == 0 {
			if err := s.held(ctx); err != nil {
				return nil, err
			}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	defer base.CloseIdleConnections()
	var stopped atomic.Int64 // let through, and refused when there was a connection
	gate := &client.Transport{
		Base:  base,
		Cache: &cache.Cache{MinTTL: time.Second},
		Trace: &client.Trace{
			Fetched: func(_ context.Context, f client.FetchedInfo) {
				if f.Result != nil && f.Result.StatusCode == http.StatusOK {
					byHost[strings.TrimPrefix(strings.TrimPrefix(f.Origin.String(), "http://"), "https://")].fetched(f.Result.Body, f.Result.Time)
				}
			},
			Decided: func(ctx context.Context, d client.DecidedInfo) {
				byHost[d.URL.Host].decided(d.Received)
				v, _ := ctx.Value(outingKey{}).(*outing)
				switch {
				case v == nil:
				case d.Allowed:
					v.allowed.Store(d.URL)
				case v.allowed.Load() == d.URL:
					stopped.Add(1)
				}
			},
		},
	}
	for _, s := range sites { // what is new becomes known while requests hang
		serving.Go(func() {
			u, _ := url.Parse(s.url + "/0/")
			for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-tick {
				gate.Decide(ctx, u)
			}
		})
	}
	c := &http.Client{Transport: gate, Timeout: 2 * time.Minute}
	var asked, sent, refused atomic.Int64
	var asking sync.WaitGroup
	for range 512 {
		asking.Go(func() {
			for n := asked.Add(1); n <= int64(total); n = asked.Add(1) {
				random, v := rand.New(rand.NewPCG(seed, uint64(n))), &visits[n]
				ctx := httptrace.WithClientTrace(context.WithValue(ctx, outingKey{}, v), &httptrace.ClientTrace{
					GotConn: func(httptrace.GotConnInfo) { v.conn.Store(time.Now().UnixNano()) }, // after the gate's own
				})
				method, body := "GET", io.Reader(nil)
				if random.IntN(10) == 0 {
					method, body = "POST", strings.NewReader("body")
				}
				page := fmt.Sprintf("%s/%d/%d", sites[random.IntN(len(sites))].url, random.IntN(sections), n)
				req, _ := http.NewRequestWithContext(ctx, method, page, body)
				req.Header.Set("X-Question", strconv.FormatInt(n, 10))
				resp, err := c.Do(req)
				if err == nil {
					sent.Add(1)
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				} else if errors.Is(err, client.ErrNotSent) {
					refused.Add(1)
				}
			}
		})
	}
	start := time.Now()
	asking.Wait()
	cancel()
	var seen, odd, changes int64
	for _, s := range sites {
		s.mu.Lock()
		seen, odd, changes = seen+s.seen.Load(), odd+s.odd.Load(), changes+int64(len(s.rules))
		for _, fault := range s.faults[:min(3, len(s.faults))] {
			t.Errorf("%s(HTTP/2: %v, %d faults of this site)", fault, s.number%2 == 1, len(s.faults))
		}
		s.mu.Unlock()
	}
	t.Logf("seed %d, %v: %d questions, %d answered, %d refused, %d of them with a connection; %d requests seen, %d of them "+
		"redirected, stalled or dropped; %d versions of robots.txt", seed, time.Since(start).Round(time.Second),
		total, sent.Load(), refused.Load(), stopped.Load(), seen, odd, changes)
	if stopped.Load() == 0 {
		t.Error("no rule changed while a request waited: nothing is shown")
	}
}
