package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// A Sign may set fields. What was decided on is not its to change, for pages and for robots.txt.
func TestSignChangesNothingThatWasDecidedOn(t *testing.T) {
	for name, c := range map[string]struct {
		sign func(*http.Request)
		sent bool
	}{
		"a field":            {func(r *http.Request) { r.Header.Set("Signature", "x") }, true},
		"the query":          {func(r *http.Request) { r.URL.RawQuery = "token=1" }, false},
		"the path":           {func(r *http.Request) { r.URL.Path = "/private" }, false},
		"the raw path":       {func(r *http.Request) { r.URL.RawPath = "/%70age" }, false},
		"the URL's host":     {func(r *http.Request) { r.URL.Host = "b.example" }, false},
		"the scheme":         {func(r *http.Request) { r.URL.Scheme = "https" }, false},
		"the URL":            {func(r *http.Request) { r.URL = nil }, false},
		"the Host":           {func(r *http.Request) { r.Host = "b.example" }, false},
		"the method":         {func(r *http.Request) { r.Method = "DELETE" }, false},
		"the User-Agent":     {func(r *http.Request) { r.Header.Set("User-Agent", "Other") }, false},
		"a second agent":     {func(r *http.Request) { r.Header["user-agent"] = []string{"Other"} }, false},
		"a second Host":      {func(r *http.Request) { r.Header["host"] = []string{"b.example"} }, false},
		"a second length":    {func(r *http.Request) { r.Header["content-length"] = []string{"9"} }, false},
		"a second coding":    {func(r *http.Request) { r.Header["TRANSFER-ENCODING"] = []string{"chunked"} }, false},
		"the caller's slice": {func(r *http.Request) { r.TransferEncoding[0] = "gzip" }, true},
		"the Trailer":        {func(r *http.Request) { r.Trailer.Set("Expires", "0") }, true},
	} {
		for _, path := range []string{"/page", "/robots.txt"} {
			t.Run(name+" of "+path, func(t *testing.T) {
				sent := 0
				gate := &client.Transport{
					Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
						if req.URL.Path == path {
							sent++
						}
						return answer(404, "", ""), nil
					}),
					Sign: func(r *http.Request) error {
						if r.URL.Path == path && (path == "/page" || r.Trailer == nil) {
							if r.Trailer == nil { // robots.txt
								r.Trailer, r.TransferEncoding = http.Header{}, []string{""}
							}
							c.sign(r)
						}
						return nil
					},
				}
				req := request("GET", "http://a.example/page", nil)
				req.Trailer, req.TransferEncoding = http.Header{"Expires": nil}, []string{"identity"}
				_, err := gate.RoundTrip(req)
				if _, refused := errors.AsType[*client.DisallowedError](err); c.sent != (err == nil) || c.sent != (sent == 1) || refused {
					t.Errorf("%d sent, %v", sent, err)
				}
				if req.URL.String() != "http://a.example/page" || req.Trailer.Get("Expires") != "" || req.TransferEncoding[0] != "identity" {
					t.Errorf("the caller's request is now %v", req)
				}
			})
		}
	}
}

// A Sign that fails for robots.txt is the caller's mistake: it is called once for a request, and once it works
// the site is read.
func TestAFailingSignIsNoOutage(t *testing.T) {
	vault := errors.New("key vault away")
	sent, signed := 0, 0
	fails := true
	gate := &client.Transport{
		Base: roundtrip.Func(func(*http.Request) (*http.Response, error) { sent++; return answer(404, "", ""), nil }),
		Sign: func(*http.Request) error {
			if signed++; fails {
				return vault
			}
			return nil
		},
	}
	req := request("GET", "http://a.example/page", nil)
	_, err := gate.RoundTrip(req)
	if _, refused := errors.AsType[*client.DisallowedError](err); refused || !errors.Is(err, vault) || sent != 0 || signed != 1 {
		t.Errorf("%v after %d sent and %d signed", err, sent, signed)
	}
	if _, err := gate.Decide(t.Context(), req.URL); !errors.Is(err, vault) {
		t.Errorf("decided: %v", err)
	}
	fails = false
	if _, err := gate.RoundTrip(req); err != nil || sent != 2 {
		t.Errorf("%v after %d sent", err, sent)
	}
}

// closedBody is a body that notes its Close.
type closedBody struct {
	io.Reader
	closed atomic.Bool
}

func (b *closedBody) Close() error { b.closed.Store(true); return nil }

// However RoundTrip ends, the body is closed.
func TestTheBodyIsClosedWhateverAHookDoes(t *testing.T) {
	for name, c := range map[string]struct {
		trace client.Trace
		sign  func(*http.Request) error
		slow  bool // the first Sign, so that it is called again
	}{
		"Waited ends the goroutine": {trace: client.Trace{Waited: func(context.Context, client.WaitedInfo) { runtime.Goexit() }}},
		"Sign panics":               {sign: func(*http.Request) error { panic("sign") }},
		"Sign ends the goroutine":   {sign: func(*http.Request) error { runtime.Goexit(); return nil }},
		"Sign fails":                {sign: func(*http.Request) error { return errors.New("sign") }},
		"Sign panics later":         {sign: func(*http.Request) error { panic("sign") }, slow: true},
	} {
		for _, paced := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				body := &closedBody{Reader: strings.NewReader("x")}
				gate := &client.Transport{Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
					if req.Body != nil {
						req.Body.Close()
					}
					return answer(404, "", ""), nil
				}), Trace: &c.trace}
				if paced {
					gate.Pacer = &client.Pacer{}
				}
				if c.sign != nil {
					slow := c.slow
					gate.Sign = func(r *http.Request) error {
						if r.URL.Path == "/robots.txt" {
							return nil
						}
						if slow {
							slow = false
							time.Sleep(2 * time.Second)
							return nil
						}
						return c.sign(r)
					}
				}
				go func() {
					defer func() { _ = recover() }()
					req := request("POST", "http://a.example/page", body)
					req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }
					gate.RoundTrip(req)
				}()
				time.Sleep(time.Minute)
				if !body.closed.Load() {
					t.Errorf("%s, paced %v: the body is still open", name, paced)
				}
			})
		}
	}
}

// A Base may return neither a response nor an error, or both. RoundTrip returns one of them, and closes the rest.
func TestWhatABaseReturnsIsAResponseOrAnError(t *testing.T) {
	for name, both := range map[string]bool{"neither": false, "both": true} {
		for _, pacer := range []*client.Pacer{nil, {Delay: -1}} {
			sent, received := &closedBody{Reader: strings.NewReader("x")}, &closedBody{Reader: strings.NewReader("x")}
			gate := &client.Transport{Pacer: pacer, Base: pagesOf(func(req *http.Request) (*http.Response, error) {
				if !both {
					return nil, nil
				}
				req.Body.Close()
				return &http.Response{StatusCode: 200, Body: received}, io.ErrUnexpectedEOF
			})}
			res, err := gate.RoundTrip(request("POST", "http://a.example/page", sent))
			if res != nil || err == nil || both != errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s, paced %v: got %v, %v, want an error alone", name, pacer != nil, res, err)
			}
			if !sent.closed.Load() || received.closed.Load() != both {
				t.Errorf("%s, paced %v: closed: the request's body %v, the response's %v", name, pacer != nil, sent.closed.Load(), received.closed.Load())
			}
		}
	}
}

// A Base of another type may have connections on several goroutines at once: the race detector sees it if their looks
// do not take turns.
func TestLooksTakeTurns(t *testing.T) {
	gate := &client.Transport{Fetcher: &fetch.Fetcher{PublicOnly: true}, Base: pagesOf(func(req *http.Request) (*http.Response, error) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{Conn: located{addr: &net.TCPAddr{IP: net.IPv4(8, 8, 8, 8)}}})
			})
		}
		all.Wait()
		return answer(200, "", ""), nil
	})}
	if _, err := gate.RoundTrip(request("GET", "http://a.example/page", nil)); err != nil {
		t.Error(err)
	}
}

// Request.Cancel ends a wait of the gate, as it ends a request.
func TestRequestCancelEndsTheWait(t *testing.T) {
	base := func(files int) roundtrip.Func { // which hangs after that many
		return func(req *http.Request) (*http.Response, error) {
			if files--; files < 0 {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			res := answer(404, "", "")
			res.Header.Set("Cache-Control", "max-age=0")
			return res, nil
		}
	}
	slow := func(req *http.Request) error {
		if req.URL.Path == "/page" {
			time.Sleep(time.Second)
		}
		return nil
	}
	for name, gate := range map[string]*client.Transport{
		"for a turn":                     {Base: base(1), Pacer: &client.Pacer{Delay: 20 * time.Second}},
		"for robots.txt":                 {Base: base(0)},
		"for robots.txt, before a turn":  {Base: base(0), Pacer: &client.Pacer{}},
		"for robots.txt, after its Sign": {Base: base(1), Sign: slow, Cache: &cache.Cache{MinTTL: -1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			req := request("GET", "http://a.example/page", nil)
			canceled := make(chan struct{})
			//lint:ignore SA1019 net/http honours it still
			req.Cancel = canceled
			time.AfterFunc(time.Second, func() { close(canceled) })
			begin := time.Now()
			if _, err := gate.RoundTrip(req); err == nil || time.Since(begin) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(begin))
			}
			time.Sleep(time.Hour) // the reading goes on without it
		})
	}
}

// A tunnel has no path that robots.txt could allow: HTTP/2 would send none.
func TestConnectIsAnError(t *testing.T) {
	gate := &client.Transport{Base: pagesOf(func(req *http.Request) (*http.Response, error) {
		t.Errorf("sent %s %s", req.Method, req.URL)
		return answer(200, "", ""), nil
	})}
	for _, path := range []string{"", "/page"} {
		req := request("CONNECT", "http://a.example"+path, nil)
		if _, err := gate.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "CONNECT") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// What Sign got is its own after it has returned, too: what it does to that later is not sent.
func TestWhatSignKeepsIsNotSent(t *testing.T) {
	var kept *http.Request
	var header http.Header
	gate := &client.Transport{
		Base: pagesOf(func(req *http.Request) (*http.Response, error) {
			kept.URL.Path, kept.Host = "/private", "b.example"
			header["User-Agent"], header["Signature"][0] = []string{"Other"}, "forged"
			if got := req.URL.Path + req.Host + req.UserAgent() + req.Header.Get("Signature"); got != "/pageexact" {
				t.Errorf("sent %q", got)
			}
			return answer(200, "", ""), nil
		}),
		Sign: func(r *http.Request) error {
			if kept, header = r, r.Header; r.URL.Path == "/page" {
				r.Header.Set("Signature", "exact")
			}
			return nil
		},
	}
	req := request("GET", "http://a.example/page", nil)
	req.Host = ""
	if _, err := gate.RoundTrip(req); err != nil {
		t.Error(err)
	}
}

// A Sign may take longer than the rules hold, and longer than another's: what is sent is decided on and paced
// after it, whatever Base is.
func TestASlowSignIsNoWayAround(t *testing.T) {
	for _, pacer := range []*client.Pacer{nil, {MaxUnderway: 4}} {
		synctest.Test(t, func(t *testing.T) { aSlowSignIsNoWayAround(t, pacer) })
	}
}

func aSlowSignIsNoWayAround(t *testing.T, pacer *client.Pacer) {
	start := time.Now()
	var mu sync.Mutex // guards what follows
	var sent []time.Duration
	signs := 0
	var told []bool // by Trace
	rules := func() string {
		if time.Since(start) < 30*time.Second {
			return "User-agent: *\nCrawl-delay: 2\n"
		}
		return "User-agent: *\nDisallow: /\n"
	}
	gate := &client.Transport{
		Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				res := answer(200, "", rules())
				res.Header.Set("Cache-Control", "max-age=20")
				return res, nil
			}
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, time.Since(start))
			return answer(200, "", ""), nil
		}),
		Cache: &cache.Cache{MinTTL: time.Second},
		Pacer: pacer,
		Trace: &client.Trace{Decided: func(_ context.Context, d client.DecidedInfo) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, d.Allowed)
		}},
		Sign: func(r *http.Request) error {
			if r.URL.Path != "/robots.txt" {
				mu.Lock()
				signs++
				n := signs
				mu.Unlock()
				if n < 4 {
					time.Sleep(time.Duration(8-2*n) * time.Second)
				} else if r.URL.Path == "/late" {
					time.Sleep(time.Minute)
				}
			}
			return nil
		},
	}
	get := func(path string) error {
		req := request("GET", "http://a.example"+path, nil)
		resp, err := gate.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := get("/page"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := 1; i < len(sent); i++ {
		if d := sent[i] - sent[i-1]; pacer != nil && d < 2*time.Second {
			t.Errorf("%v between two starts, Crawl-delay is 2 s: %v", d, sent)
		}
	}
	err := get("/late")
	if _, refused := errors.AsType[*client.DisallowedError](err); !refused || len(sent) != 3 {
		t.Errorf("%v, sent at %v", err, sent)
	}
	if n := len(told); n < 5 || !told[n-2] || told[n-1] {
		t.Errorf("Trace was told of %v, want a last permission that was withdrawn", told)
	}
}

// Uses are those of the first request: a slice that changes switches nothing off.
func TestUsesAreCopied(t *testing.T) {
	uses := []string{"train-ai"}
	gate := &client.Transport{Uses: uses, Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		return answer(200, "", "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"), nil
	})}
	for range 2 {
		req := request("GET", "http://a.example/page", nil)
		if _, err := gate.RoundTrip(req); err == nil || !strings.Contains(err.Error(), "train-ai") {
			t.Errorf("%s: got %v, want a refusal that names train-ai", req.URL, err)
		}
		uses[0] = "x"
	}
}

// A request that has to be decided on anew starts again with the whole body, or ends with an error that says why not.
func TestABodyThatMayHaveBeenReadIsNotSentAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			start, sent, signs := time.Now(), "", 0
			gate := &client.Transport{
				Pacer: &client.Pacer{Delay: -1, MaxUnderway: 2},
				Base: pagesOf(func(req *http.Request) (*http.Response, error) {
					if req.URL.Path == "/busy" {
						return answer(503, "60", ""), nil
					}
					body, _ := io.ReadAll(req.Body)
					sent += string(body) + time.Since(start).String()
					return answer(200, "", ""), nil
				}),
				Sign: func(r *http.Request) error { // so slow that the site is busy when it is done
					if r.URL.Path == "/post" {
						if signs++; signs == 1 {
							time.Sleep(2 * time.Second)
						}
					}
					return nil
				},
			}
			time.AfterFunc(time.Second, func() {
				req := request("GET", "http://a.example/busy", nil)
				gate.RoundTrip(req)
			})
			req := request("POST", "http://a.example/post", strings.NewReader("hello"))
			want := "hello1m1s"
			if !again {
				req.GetBody, want = nil, ""
			}
			_, err := gate.RoundTrip(req)
			if sent != want || again != (err == nil) || err != nil && !strings.Contains(err.Error(), "GetBody is nil") {
				t.Errorf("GetBody %v: sent %q, %v; want %q", again, sent, err, want)
			}
		})
	}
}

// Of two gates one over the other, each may have a Pacer of its own. With one for both a request would wait in the
// lower for its own end: that is a mistake of the caller's, not an outage of the site.
func TestTwoGatesNeedTwoPacers(t *testing.T) {
	for name, c := range map[string]struct {
		upper, lower *client.Pacer
		in           string // what has the lower one; "": both
		took         time.Duration
	}{
		"one for both":             {upper: &client.Pacer{}},
		"one for both, in Base":    {upper: &client.Pacer{}, in: "Base"},
		"one for both, in Fetcher": {upper: &client.Pacer{}, in: "Fetcher"},
		"two":                      {upper: &client.Pacer{}, lower: &client.Pacer{}, took: 2 * time.Second},
		"the upper's":              {upper: &client.Pacer{}, lower: nil, took: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			if strings.HasPrefix(name, "one") {
				c.lower = c.upper
			}
			lower := &client.Transport{Base: pagesOf(ok), Pacer: c.lower}
			upper := &client.Transport{Base: lower, Pacer: c.upper}
			switch c.in {
			case "Base":
				upper.Fetcher = &fetch.Fetcher{Transport: pagesOf(ok)}
			case "Fetcher":
				upper.Base, upper.Fetcher = pagesOf(ok), &fetch.Fetcher{Transport: lower}
			}
			req := request("GET", "http://a.example/page", nil)
			begin := time.Now()
			_, err := upper.RoundTrip(req)
			if took := time.Since(begin); took != c.took || (err == nil) != (c.took > 0) || err != nil && !strings.Contains(err.Error(), "same Pacer") {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			for _, gate := range []*client.Transport{upper, lower} {
				if err := gate.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// countedWrites counts what a request costs in writes, and whether files reach the connection as files.
type countedWrites struct {
	net.Conn
	writes *atomic.Int32
	file   *atomic.Bool
}

func (c countedWrites) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func (c countedWrites) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		r = l.R
	}
	if _, ok := r.(*os.File); ok {
		c.file.Store(true)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// With a Pacer, net/http gets bodies that it knows as it would without.
func TestABodyThatCannotFailReachesTheWireAsItIs(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	name := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		body func() io.Reader
		same bool
	}{
		{"strings.Reader", func() io.Reader { return strings.NewReader("hello") }, true},
		{"bytes.Buffer in a NopCloser", func() io.Reader { return io.NopCloser(strings.NewReader("hello")) }, true},
		{"a file", func() io.Reader { f, _ := os.Open(name); return f }, true},
		{"another reader", func() io.Reader { return struct{ io.Reader }{strings.NewReader("hello")} }, false},
		{"no body", func() io.Reader { return http.NoBody }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var writes atomic.Int32
			var file atomic.Bool
			gate := &client.Transport{Pacer: &client.Pacer{Delay: -1}, Base: &http.Transport{
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, addr)
					return countedWrites{conn, &writes, &file}, err
				}, DisableKeepAlives: true}}
			req := request("POST", s.URL+"/robots.txt", c.body())
			if c.name == "a file" {
				req.ContentLength = 1 << 20
			} else if req.Body != http.NoBody {
				req.ContentLength = 5
			}
			resp, err := gate.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if c.same != (resp.Request == req) {
				t.Errorf("the response's request is the caller's: %v", !c.same)
			}
			if c.same && c.name != "a file" && writes.Load() != 1 {
				t.Errorf("%d writes", writes.Load())
			}
			if c.name == "a file" && !file.Load() {
				t.Error("the connection got no file")
			}
		})
	}
}

// The header that holds our User-Agent alone is lent again, and nothing that others put into it is.
func TestALentHeaderIsOfOneRequestAtATime(t *testing.T) {
	var under atomic.Int64
	gate := &client.Transport{UserAgent: "ExampleBot/1.0", Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		res := answer(200, "", "")
		if req.URL.Path == "/robots.txt" {
			return res, nil
		}
		n := under.Add(1)
		if len(req.Header) != 1 || req.UserAgent() != "ExampleBot/1.0" {
			t.Errorf("request %d has the header %v", n, req.Header)
		}
		switch n % 4 {
		case 0: // what no Base may do
			req.Header.Set("Authorization", "secret")
			res.Request = req
		case 1:
			res.Request = req
		case 2:
			res.Request = req.WithContext(context.Background())
		}
		return res, nil
	})}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				req, err := http.NewRequest("GET", "http://a.example/page", nil)
				if err != nil {
					t.Error(err)
					return
				}
				res, err := gate.RoundTrip(req)
				if err != nil || len(req.Header) > 0 {
					t.Errorf("%v; the caller's header is %v", err, req.Header)
					return
				}
				if res.Request != nil { // what callers may do
					res.Request.Header.Set("X", "y")
				}
			}
		})
	}
	all.Wait()
}

// Base may have an answer from elsewhere while it connects: a look that waits for its turn then ends with it.
func TestNoAnswerWaitsForALookThatBaseNoLongerWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		conn := located{near, &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}}
		var looks sync.WaitGroup
		base := pagesOf(func(req *http.Request) (*http.Response, error) {
			connect := httptrace.ContextClientTrace(req.Context()).GotConn
			if req.URL.Path == "/first" {
				time.Sleep(90 * time.Second) // the other starts meanwhile, so this one has to wait again
				looks.Go(func() { connect(httptrace.GotConnInfo{Conn: conn}) })
				time.Sleep(time.Second)
			}
			return answer(200, "", "page"), nil
		})
		gate := &client.Transport{
			Base: base, Fetcher: &fetch.Fetcher{PublicOnly: true}, Pacer: &client.Pacer{Delay: time.Minute, MaxUnderway: 2},
		}
		var both sync.WaitGroup
		both.Go(func() {
			start := time.Now()
			if res, err := gate.RoundTrip(request("GET", "http://site.example/first", nil)); err != nil {
				t.Error(err)
			} else if res.Body.Close(); time.Since(start) > 155*time.Second {
				t.Errorf("answered after %v, want as soon as Base is", time.Since(start))
			}
			looks.Wait()
		})
		time.Sleep(time.Second)
		both.Go(func() {
			res, err := gate.RoundTrip(request("GET", "http://site.example/second", nil))
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		})
		both.Wait()
	})
}

// A hook that takes long is time that passes between a decision or a turn and its request.
func TestASlowHookIsNoWayAround(t *testing.T) {
	for name, pacer := range map[string]*client.Pacer{"Waited": {}, "Decided": nil, "Decided, at a pace": {Delay: -1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				robots := "User-agent: *\nDisallow:\n"
				base := func(req *http.Request) (*http.Response, error) {
					if req.URL.Path == "/robots.txt" {
						return answer(200, "max-age=3600", robots), nil
					}
					t.Error("sent")
					return ok(req)
				}
				slow := func() {
					if robots == "User-agent: *\nDisallow:\n" {
						robots = "User-agent: *\nDisallow: /\n"
						time.Sleep(25 * time.Hour)
					}
				}
				trace := &client.Trace{Waited: func(context.Context, client.WaitedInfo) { slow() }}
				if name != "Waited" {
					trace = &client.Trace{Decided: func(context.Context, client.DecidedInfo) { slow() }}
				}
				gate := &client.Transport{Base: roundtrip.Func(base), Pacer: pacer, Trace: trace}
				_, err := gate.RoundTrip(request("GET", "http://a.example/page", nil))
				if _, ok := errors.AsType[*client.DisallowedError](err); !ok {
					t.Errorf("%v, want a *DisallowedError: what allowed the request has expired", err)
				}
			})
		})
	}
}
