package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
)

// sent is a request as it came over the wire.
type sent struct {
	at        time.Duration
	target    string
	signature string
	body      string // over HTTP/1.1
}

// stubborn is a site on pipes. It reads requests itself, over HTTP/1.1 or HTTP/2, and does to the first of
// them what makes net/http send them again: it refuses a stream, or hangs up on a kept connection.
type stubborn struct {
	cert   tls.Certificate
	h2     bool
	refuse int                                  // so many requests for pages; with HTTP/1.1, each second one of a connection
	robots func(at time.Duration) (file string) // at a time
	dial   func(n int) time.Duration            // what the nth connection takes; nil: nothing

	begin time.Time
	mu    sync.Mutex
	conns int
	log   []sent
}

func newStubborn(t *testing.T, h2 bool, robots string) *stubborn {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	srv.Close()
	return &stubborn{cert: srv.TLS.Certificates[0], h2: h2, robots: func(time.Duration) string { return robots }}
}

func (s *stubborn) transport() *http.Transport {
	s.begin = time.Now()
	return &http.Transport{
		ForceAttemptHTTP2: s.h2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			s.mu.Lock()
			s.conns++
			n := s.conns
			s.mu.Unlock()
			if s.dial != nil {
				time.Sleep(s.dial(n))
			}
			near, far := net.Pipe()
			go s.serve(far)
			return near, nil
		},
	}
}

func (s *stubborn) url(path string) string {
	if s.h2 {
		return "https://a.example" + path
	}
	return "http://a.example" + path
}

// arrive notes a request, and reports whether it is to be refused.
// What comes first on a connection of HTTP/1.1 never is: net/http would not send it again.
func (s *stubborn) arrive(target, signature, body string, first bool) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, sent{time.Since(s.begin), target, signature, body})
	if first || target == "/robots.txt" || s.refuse == 0 {
		return false
	}
	s.refuse--
	return true
}

// pages are the requests for pages.
func (s *stubborn) pages() (all []sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.log {
		if r.target != "/robots.txt" {
			all = append(all, r)
		}
	}
	return all
}

func (s *stubborn) serve(conn net.Conn) {
	defer conn.Close()
	if s.h2 {
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.cert}, NextProtos: []string{"h2", "http/1.1"}})
		if secure.Handshake() != nil {
			return
		}
		if conn = secure; secure.ConnectionState().NegotiatedProtocol == "h2" {
			s.serve2(conn)
			return
		}
	}
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		whole, _ := io.ReadAll(req.Body)
		if s.arrive(req.RequestURI, req.Header.Get("Signature"), string(whole), n == 0) {
			return
		}
		body := ""
		if req.RequestURI == "/robots.txt" {
			body = s.robots(time.Since(s.begin))
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nCache-Control: max-age=2\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

func (s *stubborn) serve2(conn net.Conn) {
	out := make(chan func(*http2.Framer), 100) // a pipe has no room: who writes must not keep from reading
	defer close(out)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	go func() {
		for write := range out {
			write(framer)
		}
	}()
	io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
	out <- func(f *http2.Framer) { f.WriteSettings() }
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				out <- func(f *http2.Framer) { f.WriteSettingsAck() }
			}
		case *http2.MetaHeadersFrame:
			id, signature := frame.StreamID, ""
			for _, field := range frame.RegularFields() {
				if field.Name == "signature" {
					signature = field.Value
				}
			}
			if s.arrive(frame.PseudoValue("path"), signature, "", false) {
				out <- func(f *http2.Framer) { f.WriteRSTStream(id, http2.ErrCodeRefusedStream) }
				continue
			}
			var block bytes.Buffer
			hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			out <- func(f *http2.Framer) {
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
			}
		}
	}
}

// ask asks for pages one after the other, and returns the last error.
func ask(t *testing.T, ctx context.Context, gate *client.Transport, urls ...string) (err error) {
	t.Helper()
	for _, u := range urls {
		req, e := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if e != nil {
			t.Fatal(e)
		}
		resp, e := gate.RoundTrip(req)
		if err = e; err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	return err
}

// counting signs each request with the number of the call.
func counting() func(*http.Request) error {
	var mu sync.Mutex
	n := 0
	return func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		n++
		r.Header.Set("Signature", fmt.Sprint(n))
		return nil
	}
}

// Each sending of a request is decided on, keeps the pace and is signed, however often net/http would send
// it by itself.
func TestEverySendingIsDecidedPacedAndSigned(t *testing.T) {
	plain := func(ctx context.Context) context.Context { return ctx }
	for _, c := range []struct {
		name   string
		h2     bool
		refuse int
		pacer  *client.Pacer
		sign   bool
		ctx    func(context.Context) context.Context
		pages  int           // that reach the wire, of three
		apart  time.Duration // at least, from one to the next
		fails  bool
	}{
		{"hung up on, paced", false, 1, &client.Pacer{}, false, plain, 4, 5 * time.Second, false},
		{"hung up on, signed", false, 2, nil, true, plain, 5, 0, false},
		{"hung up on, paced and signed", false, 2, &client.Pacer{}, true, plain, 5, 5 * time.Second, false},
		{"hung up on, signed without robots", false, 2, nil, true, client.WithoutRobots, 5, 0, false},
		{"hung up on", false, 2, nil, false, plain, 5, 0, false},
		{"refused, paced", true, 3, &client.Pacer{}, false, plain, 6, 5 * time.Second, false},
		{"refused, signed", true, 3, nil, true, plain, 6, 0, false},
		{"refused, paced and signed", true, 3, &client.Pacer{}, true, plain, 6, 5 * time.Second, false},
		{"refused, signed without robots", true, 3, nil, true, client.WithoutRobots, 6, 0, false},
		{"always refused, paced", true, 1000, &client.Pacer{}, false, plain, 3 * 7, 5 * time.Second, true},
		{"always refused, signed", true, 1000, nil, true, plain, 3 * 7, 0, true},
		{"always refused", true, 1000, nil, false, plain, 3 * 8, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := newStubborn(t, c.h2, "User-agent: *\nCrawl-delay: 5\n")
			site.refuse = c.refuse
			synctest.Test(t, func(t *testing.T) {
				gate := &client.Transport{Base: site.transport(), Pacer: c.pacer, Cache: &cache.Cache{MinTTL: time.Hour}}
				if c.sign {
					gate.Sign = counting()
				}
				err := ask(t, c.ctx(t.Context()), gate, site.url("/1"), site.url("/2"), site.url("/3"))
				if (err != nil) != c.fails {
					t.Errorf("error %v", err)
				}
				all := site.pages()
				if len(all) != c.pages {
					t.Errorf("%d pages on the wire, want %d: %v", len(all), c.pages, all)
				}
				seen := make(map[string]bool)
				for i, r := range all {
					if i > 0 && r.at-all[i-1].at < c.apart {
						t.Errorf("%v after %v", r, all[i-1])
					}
					if c.sign && seen[r.signature] {
						t.Errorf("%v is signed as another was", r)
					}
					seen[r.signature] = true
				}
				if gap := all[1].at - all[0].at; c.h2 && c.pacer != nil && gap < 8*time.Second { // twice the delay, less a fifth
					t.Errorf("again %v after the server has refused it", gap)
				}
				if n := len(all); c.fails && all[n-1].at-all[n-7].at < 15*time.Second {
					t.Errorf("seven sendings within %v", all[n-1].at-all[n-7].at)
				}
				synctest.Wait()
				gate.CloseIdleConnections()
				synctest.Wait()
			})
		})
	}
}

// Rules that change while net/http repeats a request, or lets it wait for a connection, hold for it.
func TestRulesHoldAtEverySending(t *testing.T) {
	for _, c := range []struct {
		name   string
		h2     bool
		refuse int
		dial   time.Duration // of the page
		closed time.Duration // when robots.txt disallows all
		pages  int
		sent   bool
	}{
		{"refused", true, 1000, 0, 2500 * time.Millisecond, 4, false},
		{"refused, and not disallowed", true, 3, 0, time.Hour, 4, true},
		{"a slow dial", false, 0, 8 * time.Second, 4 * time.Second, 0, false},
		{"a slow dial over HTTP/2", true, 0, 8 * time.Second, 4 * time.Second, 0, false},
		{"a slow dial, and not disallowed", false, 0, 8 * time.Second, time.Hour, 1, true},
	} {
		for i := range 4 {
			signed, readers := i&1 != 0, i&2 != 0
			t.Run(fmt.Sprint(c.name, ", signed ", signed, ", other readers ", readers), func(t *testing.T) {
				site := newStubborn(t, c.h2, "")
				site.refuse = c.refuse
				site.robots = func(at time.Duration) string {
					if at < c.closed {
						return "User-agent: *\nDisallow:\n"
					}
					return "User-agent: *\nDisallow: /\n"
				}
				site.dial = func(n int) time.Duration {
					if n == 2 {
						return c.dial
					}
					return 0
				}
				synctest.Test(t, func(t *testing.T) {
					gate := &client.Transport{Base: site.transport(), Cache: &cache.Cache{MinTTL: time.Second}}
					if signed {
						gate.Sign = counting()
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if readers {
						go func() { // for another page of the site, robots.txt is read again
							for ctx.Err() == nil {
								time.Sleep(700 * time.Millisecond)
								req, _ := http.NewRequest(http.MethodGet, site.url("/other"), nil)
								gate.Decide(ctx, req.URL)
							}
						}()
					}
					closed := false // the connection, when it would be written to
					watched := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
						GotConn: func(got httptrace.GotConnInfo) { closed = got.Conn.SetDeadline(time.Time{}) != nil },
					})
					err := ask(t, watched, gate, site.url("/page"))
					if closed != (!c.sent && !c.h2) {
						t.Errorf("the connection is closed: %v", closed) // others may be on that of HTTP/2
					}
					refusal, ok := errors.AsType[*client.DisallowedError](err)
					if c.sent != (err == nil) || !c.sent && (!ok || refusal.Rule.Pattern != "/" || refusal.Received.IsZero()) {
						t.Errorf("error %v", err)
					}
					all := site.pages()
					if len(all) > c.pages || c.sent && len(all) < c.pages {
						t.Errorf("%d pages on the wire, want %d: %v", len(all), c.pages, all)
					}
					for _, r := range all {
						if r.at > c.closed+2500*time.Millisecond {
							t.Errorf("%v, and all is disallowed since %v", r, c.closed)
						}
					}
					// robots.txt is the first that is signed, and the page before and after its dial the next two.
					if signed && c.dial > 0 && c.sent && all[0].signature == "2" {
						t.Errorf("the signature is as old as the dial: %v", all)
					}
					cancel()
					time.Sleep(time.Second)
					synctest.Wait()
					gate.CloseIdleConnections()
					synctest.Wait()
				})
			})
		}
	}
}

// A start is when the request is sent, not when its turn came: a slow dial brings no two of them together.
func TestASlowDialKeepsTheDelay(t *testing.T) {
	site := newStubborn(t, false, "User-agent: *\nCrawl-delay: 2\n")
	site.dial = func(n int) time.Duration {
		if n == 2 {
			return 2500 * time.Millisecond // half a second after the next one has started
		}
		return 0
	}
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Base: site.transport(), Pacer: &client.Pacer{MaxUnderway: 3}, Cache: &cache.Cache{MinTTL: time.Hour}}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { ask(t, t.Context(), gate, site.url(fmt.Sprint("/", i))) })
		}
		wg.Wait()
		all := site.pages()
		for i := range all {
			if i > 0 && all[i].at-all[i-1].at < 2*time.Second {
				t.Errorf("%v after %v", all[i], all[i-1])
			}
		}
		if len(all) != 3 {
			t.Errorf("%v", all)
		}
		synctest.Wait()
		gate.CloseIdleConnections()
		synctest.Wait()
	})
}

// What is signed anew, because its connection took long, has the whole body: Sign may read it. A body that can be had
// once only keeps the signature that it has.
func TestABodyIsWholeAtEverySending(t *testing.T) {
	for _, again := range []bool{false, true} {
		site := newStubborn(t, false, "")
		site.dial = func(n int) time.Duration { return time.Duration(n-1) * 2 * time.Second }
		synctest.Test(t, func(t *testing.T) {
			sign := counting()
			gate := &client.Transport{Base: site.transport(), Sign: func(r *http.Request) error {
				if again && r.Body != nil {
					if whole, err := io.ReadAll(r.Body); err != nil || string(whole) != "hello" {
						t.Errorf("Sign got %q, %v", whole, err)
					}
					r.Body, _ = r.GetBody()
				}
				return sign(r)
			}}
			req, err := http.NewRequest(http.MethodPost, site.url("/1"), strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			want := "3" // after robots.txt, and the first for the page
			if !again {
				req.GetBody, want = nil, "2"
			}
			resp, err := gate.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if all := site.pages(); len(all) != 1 || all[0].body != "hello" || all[0].signature != want {
				t.Errorf("GetBody %v: sent %v, want signature %s", again, all, want)
			}
			gate.CloseIdleConnections()
			synctest.Wait()
		})
	}
}

// Request.Cancel ends the wait of a request that has its connection, and whose turn others have had meanwhile.
func TestRequestCancelEndsTheWaitAtAConnection(t *testing.T) {
	site := newStubborn(t, false, "User-agent: *\nCrawl-delay: 20\n")
	site.dial = func(n int) time.Duration {
		if n == 2 {
			return 25 * time.Second // the next page starts after 20
		}
		return 0
	}
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Base: site.transport(), Pacer: &client.Pacer{MaxUnderway: 2}, Cache: &cache.Cache{MinTTL: time.Hour}}
		defer gate.CloseIdleConnections()
		req, _ := http.NewRequest(http.MethodGet, site.url("/slow"), nil)
		canceled := make(chan struct{})
		//lint:ignore SA1019 net/http honours it still
		req.Cancel = canceled
		var wg sync.WaitGroup
		wg.Go(func() { // starts after 20 s, and would after 60
			if _, err := gate.RoundTrip(req); err == nil || time.Since(site.begin) != 50*time.Second {
				t.Errorf("%v after %v", err, time.Since(site.begin))
			}
		})
		time.Sleep(time.Second)
		wg.Go(func() { ask(t, t.Context(), gate, site.url("/next")) })
		time.Sleep(49 * time.Second)
		close(canceled)
		wg.Wait()
		if all := site.pages(); len(all) != 1 {
			t.Errorf("sent: %v", all)
		}
		gate.CloseIdleConnections()
		synctest.Wait()
	})
}

// A request whose context ends while its rules are read anew is not written.
func TestNothingIsWrittenWhenTheContextEndsAtAConnection(t *testing.T) {
	site := newStubborn(t, false, "")
	site.dial = func(n int) time.Duration { return time.Duration(n-1) * 8 * time.Second }
	site.robots = func(at time.Duration) string {
		if at > 0 {
			time.Sleep(time.Minute)
		}
		return "User-agent: *\nDisallow: /private/\n"
	}
	synctest.Test(t, func(t *testing.T) {
		gate := &client.Transport{Base: site.transport(), Cache: &cache.Cache{MinTTL: time.Second}}
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		closed := false
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { closed = got.Conn.SetDeadline(time.Time{}) != nil },
		})
		if err := ask(t, ctx, gate, site.url("/page")); !errors.Is(err, context.DeadlineExceeded) || !closed {
			t.Errorf("%v, and the connection is closed: %v", err, closed)
		}
		gate.Close()
		gate.CloseIdleConnections()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if all := site.pages(); len(all) != 0 {
			t.Errorf("sent: %v", all)
		}
	})
}
