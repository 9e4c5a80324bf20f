package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// site is one origin of a pacedWeb, with the log that the claims are checked on.
type site struct {
	crawlDelay string        // in robots.txt; "": none
	delay      time.Duration // to be kept between requests
	most       int           // to be under way
	tight      int           // pairs of requests that kept the delay and not a moment more

	live     map[*http.Request]bool
	start    time.Time    // the latest
	ends     [2]time.Time // the latest two, at different times
	answered time.Time    // when Retry-After was last sent
	resume   time.Time    // and what it said
}

// pacedWeb is a Base: sites by host name, which answer at random and object to manners.
type pacedWeb struct {
	t     *testing.T
	mu    sync.Mutex
	rand  *rand.Rand
	sites map[string]*site
	seen  int
}

func (w *pacedWeb) RoundTrip(req *http.Request) (*http.Response, error) {
	s := w.sites[req.URL.Host]
	w.arrive(s, req)
	if req.URL.Path == "/robots.txt" {
		body := "User-agent: *\nAllow: /\n"
		if s.crawlDelay != "" {
			body += "Crawl-delay: " + s.crawlDelay + "\n"
		}
		return w.answer(s, req, 200, http.Header{}, body), nil
	}
	select {
	case <-time.After(w.upTo(3 * time.Second)):
	case <-req.Context().Done():
		w.leave(s, req)
		return nil, req.Context().Err()
	}
	switch w.pick(12) {
	case 0:
		w.leave(s, req)
		return nil, errors.New("connection refused")
	case 1:
		return w.answer(s, req, 500, http.Header{}, "oh"), nil
	case 2:
		return w.answer(s, req, 429, http.Header{}, "too much"), nil
	case 3:
		return w.answer(s, req, 503, http.Header{"Retry-After": {"20"}}, "later"), nil
	case 4:
		return w.answer(s, req, 204, http.Header{}, ""), nil
	}
	return w.answer(s, req, 200, http.Header{}, "page"), nil
}

// arrive is where a site checks what the Pacer promises.
func (w *pacedWeb) arrive(s *site, req *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.seen++
	live := 0
	for r := range s.live {
		if r.Context().Err() == nil { // else it is over, though we have not been told yet
			live++
		}
	}
	if live >= s.most {
		w.t.Errorf("%s: %d requests under way already, want at most %d", req.URL, live, s.most)
	}
	if gap := now.Sub(s.start); gap < s.delay {
		w.t.Errorf("%s: started %v after the start before, want %v", req.URL, gap, s.delay)
	}
	end := s.ends[0]
	if end.Equal(now) && s.most > 1 { // neither is before the other
		end = s.ends[1]
	}
	gap := now.Sub(end)
	if gap < s.delay {
		w.t.Errorf("%s: started %v after the end before, want %v", req.URL, gap, s.delay)
	}
	if now.After(s.answered) && now.Before(s.resume) {
		w.t.Errorf("%s: started %v before the time that Retry-After names", req.URL, s.resume.Sub(now))
	}
	if gap == s.delay {
		s.tight++
	}
	s.live[req] = true
	s.start = now
	context.AfterFunc(req.Context(), func() { w.leave(s, req) })
}

func (w *pacedWeb) leave(s *site, req *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.live[req] {
		delete(s.live, req)
		if now := time.Now(); now.After(s.ends[0]) {
			s.ends = [2]time.Time{now, s.ends[0]}
		}
	}
}

func (w *pacedWeb) answer(s *site, req *http.Request, status int, h http.Header, body string) *http.Response {
	if h.Get("Retry-After") != "" {
		w.mu.Lock()
		s.answered = time.Now()
		s.resume = s.answered.Add(20 * time.Second)
		w.mu.Unlock()
	}
	res := &http.Response{StatusCode: status, Header: h, Request: req, ContentLength: int64(len(body)), Body: http.NoBody}
	if body == "" {
		w.leave(s, req)
		return res
	}
	res.Body = &pageBody{Reader: strings.NewReader(body), over: func() { w.leave(s, req) }}
	return res
}

// pageBody tells its site when it is done with.
type pageBody struct {
	io.Reader
	over func()
}

func (b *pageBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		b.over()
	}
	return n, err
}

func (b *pageBody) Close() error { b.over(); return nil }

func (w *pacedWeb) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

func (w *pacedWeb) upTo(d time.Duration) time.Duration {
	return time.Duration(w.pick(int(d/time.Millisecond)+1)) * time.Millisecond
}

// Whatever 100 workers do (wait first or not, give up, read, close, forget), no site
// sees two starts closer than its delay, a start closer than that to the end of another
// request, or more requests under way than allowed.
func TestPacerKeepsDelayAndPlacesWhateverWorkersDo(t *testing.T) {
	tier.Gate(t)
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { workAtRandom(t, seed) })
	}
}

func workAtRandom(t *testing.T, seed uint64) {
	w := &pacedWeb{t: t, rand: rand.New(rand.NewPCG(seed, 7)), sites: map[string]*site{}}
	most := 1 + int(seed%3)
	for crawlDelay, delay := range map[string]time.Duration{
		"": time.Second, "0": 0, "0.05": 50 * time.Millisecond, ".5": 500 * time.Millisecond,
		"3": 3 * time.Second, "3600": 30 * time.Second,
	} {
		host := fmt.Sprintf("delay%d.example", delay.Milliseconds())
		w.sites[host] = &site{crawlDelay: crawlDelay, delay: delay, most: most, live: map[*http.Request]bool{}}
	}
	pacer := over(&client.Pacer{MaxUnderway: most})
	c := &http.Client{Transport: &client.Transport{Base: w, UserAgent: "ExampleBot/1.0", Pacer: pacer}}
	var hosts []string
	for host := range w.sites {
		hosts = append(hosts, host)
	}
	var workers sync.WaitGroup
	for range 100 {
		workers.Go(func() {
			for range 12 {
				w.work(c, pacer, hosts[w.pick(len(hosts))])
			}
		})
	}
	workers.Wait()
	for host, s := range w.sites {
		if s.tight == 0 && s.delay > 0 {
			t.Errorf("%s: no request came as soon as it was due", host)
		}
	}
	if w.seen < 400 {
		t.Errorf("seed %d: only %d requests were sent", seed, w.seen)
	}
}

// work asks for one page in one of many ways.
func (w *pacedWeb) work(c *http.Client, pacer *client.Pacer, host string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch w.pick(4) {
	case 0:
		ctx, cancel = context.WithTimeout(ctx, w.upTo(time.Minute))
		defer cancel()
	case 1:
		time.AfterFunc(w.upTo(time.Minute), cancel)
	}
	u := &url.URL{Scheme: "https", Host: host, Path: "/page"}
	if w.pick(3) == 0 && pacer.Wait(ctx, u) != nil {
		return
	}
	time.Sleep(w.upTo(time.Second) * time.Duration(w.pick(2)))
	req, _ := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	res, err := c.Do(req)
	if err != nil {
		return
	}
	time.Sleep(w.upTo(2 * time.Second))
	switch w.pick(4) {
	case 0: // forgets to close, as those do who only defer cancel
	case 1:
		io.Copy(io.Discard, res.Body)
	default:
		res.Body.Close()
	}
}

// pagesOf is a Base with no robots.txt and the pages that the function gives.
func pagesOf(page roundtrip.Func) roundtrip.Func {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/robots.txt" {
			return answer(404, "", "no such file"), nil
		}
		return page(req)
	}
}

// answer is a response; retryAfter "" for none.
func answer(status int, retryAfter, body string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	if retryAfter != "" {
		res.Header.Set("Retry-After", retryAfter)
	}
	if body != "" {
		res.Body = io.NopCloser(strings.NewReader(body))
	}
	return res
}

func ok(*http.Request) (*http.Response, error) { return answer(200, "", ""), nil }

func paced(p *client.Pacer, base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Pacer: p}}
}

// get asks for a page and says how long that took until the header came.
func get(t *testing.T, c *http.Client, url string) (*http.Response, time.Duration) {
	t.Helper()
	start := time.Now()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return res, time.Since(start)
}

func parse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func TestPacerFieldsOfEveryValue(t *testing.T) {
	for i, c := range []struct {
		pacer *client.Pacer
		want  time.Duration // between two requests
	}{
		{nil, 0},
		{over(&client.Pacer{}), time.Second},
		{over(&client.Pacer{Delay: -1}), 0},
		{over(&client.Pacer{Delay: 250 * time.Millisecond}), 250 * time.Millisecond},
		{over(&client.Pacer{Delay: time.Minute}), time.Minute}, // the cap is on what robots.txt asks
	} {
		synctest.Test(t, func(t *testing.T) {
			web := paced(c.pacer, pagesOf(ok))
			get(t, web, "http://a.example/")
			if _, took := get(t, web, "http://a.example/"); took != c.want {
				t.Errorf("case %d: waited %v, want %v", i, took, c.want)
			}
		})
	}
}

// Ten ask in a row while the first page is open; the third and the first waiting give up.
func TestPacerFirstComeFirstServedAndWhoGivesUpLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(over(&client.Pacer{}), pagesOf(ok))
		begin := time.Now()
		var mu sync.Mutex
		var served []string
		var workers sync.WaitGroup
		for i := range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			workers.Go(func() {
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
				if _, err := c.Do(req); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				served = append(served, fmt.Sprint(i, " at ", time.Since(begin)))
			})
			synctest.Wait() // it is in line
			if i == 0 || i == 3 {
				defer time.AfterFunc(500*time.Millisecond, cancel).Stop()
			}
		}
		workers.Wait()
		want := []string{"1 at 1s", "2 at 2s", "4 at 3s", "5 at 4s", "6 at 5s", "7 at 6s", "8 at 7s", "9 at 8s"}
		if !slices.Equal(served, want) {
			t.Errorf("got %v, want %v", served, want)
		}
	})
}

func TestPacerOneOriginNeverDelaysAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(over(&client.Pacer{}), pagesOf(func(req *http.Request) (*http.Response, error) {
			switch req.URL.Host {
			case "pausing.example":
				return answer(503, "3600", ""), nil
			case "open.example":
				return answer(200, "", "a body that is not read"), nil
			case "hanging.example":
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return answer(200, "", ""), nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		for _, host := range []string{"pausing", "open", "hanging"} {
			for range 10 {
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+host+".example/", nil)
				go c.Do(req)
			}
		}
		time.Sleep(time.Minute)
		for _, u := range []string{"http://a.example/", "https://a.example/", "http://a.example:8080/", "http://b.example/"} {
			if _, took := get(t, c, u); took != time.Second {
				t.Errorf("%s: waited %v, want 1s after its robots.txt", u, took)
			}
		}
		cancel()
	})
}

func TestWaitObtainsTheTurnOfTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := over(&client.Pacer{})
		c := paced(pacer, pagesOf(ok))
		u := parse("http://a.example/")
		get(t, c, u.String())
		var workers sync.WaitGroup
		for range 5 {
			workers.Go(func() {
				if err := pacer.Wait(t.Context(), u); err != nil {
					t.Error(err)
				}
				if _, took := get(t, c, u.String()); took != 0 {
					t.Errorf("after Wait the request waited %v", took)
				}
			})
		}
		workers.Wait()
		begin := time.Now()
		if pacer.Wait(t.Context(), u); time.Since(begin) != time.Second {
			t.Errorf("Wait took %v, want 1s", time.Since(begin))
		}
		time.Sleep(5 * time.Second) // late, and another turn has been given since
		pacer.Wait(t.Context(), u)
		if _, took := get(t, c, u.String()); took != 0 {
			t.Errorf("on a turn five seconds old the request waited %v", took)
		}
		if _, took := get(t, c, u.String()); took != time.Second {
			t.Errorf("on the other turn the request waited %v after the first, want 1s", took)
		}
	})
}

func TestWaitAloneSpacesStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := over(&client.Pacer{Delay: 100 * time.Millisecond})
		begin := time.Now()
		for range 50 {
			pacer.Wait(t.Context(), parse("ftp://a.example/file"))
		}
		if took := time.Since(begin); took != 4900*time.Millisecond {
			t.Errorf("50 turns took %v, want 4.9s", took)
		}
	})
}

func TestWaitSaysWhyItDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := over(&client.Pacer{Delay: time.Minute})
		if err := pacer.Wait(t.Context(), &url.URL{Scheme: "mailto", Opaque: "a@b.example"}); err == nil {
			t.Error("a URL without an origin: no error")
		}
		u := parse("http://a.example/")
		if err := pacer.Wait(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := pacer.Wait(gone, u); err != context.Canceled {
			t.Errorf("cancelled while waiting: got %v, want %v", err, context.Canceled)
		}
		if err := pacer.Wait(gone, parse("http://new.example/")); err != context.Canceled {
			t.Errorf("cancelled before: got %v, want %v", err, context.Canceled)
		}
		begin := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := pacer.Wait(short, u)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 0 {
			t.Errorf("no turn before the deadline: got %v after %v, want DeadlineExceeded at once", err, time.Since(begin))
		}
		if !strings.Contains(fmt.Sprint(err), "http://a.example") {
			t.Errorf("%v does not name the origin", err)
		}
	})
}

// Waiting inside RoundTrip is on the account of http.Client.Timeout; what cannot be had
// in time is refused at once, and the request's body is closed.
func TestRoundTripRefusesATurnAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(over(&client.Pacer{}), pagesOf(func(*http.Request) (*http.Response, error) {
			return answer(429, "120", ""), nil
		}))
		get(t, c, "http://a.example/")
		c.Timeout = time.Minute
		begin := time.Now()
		closed := &pageBody{Reader: strings.NewReader("x")}
		isClosed := false
		closed.over = func() { isClosed = true }
		_, err := c.Post("http://a.example/", "text/plain", closed)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v, want DeadlineExceeded at once", err, time.Since(begin))
		}
		if !isClosed {
			t.Error("the request's body is not closed")
		}
	})
}

// A pause that comes up while others wait is news to them as well.
func TestPacerTellsWaitersOfANewPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := over(&client.Pacer{})
		c := paced(pacer, pagesOf(func(*http.Request) (*http.Response, error) {
			time.Sleep(10 * time.Second)
			return answer(503, "600", "a body that is not read"), nil
		}))
		begin := time.Now()
		under, stop := context.WithCancel(t.Context())
		defer stop()
		req, _ := http.NewRequestWithContext(under, "GET", "http://a.example/", nil)
		go c.Do(req)
		time.Sleep(2 * time.Second) // it is under way
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := pacer.Wait(ctx, parse("http://a.example/")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if took := time.Since(begin); took != 11*time.Second {
			t.Errorf("told after %v, want at the answer, after 11s", took)
		}
	})
}

func TestNextIsWhenTheNextRequestStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := over(&client.Pacer{Delay: 2 * time.Second})
		u := parse("http://a.example/")
		for _, s := range []string{"http://new.example/", "mailto:a@b.example", "/relative"} {
			if got := pacer.Next(parse(s)); !got.Equal(time.Now()) {
				t.Errorf("%s: got %v, want now", s, time.Until(got))
			}
		}
		pacer.Wait(t.Context(), u)
		time.Sleep(500 * time.Millisecond)
		for waiting := range 4 {
			want := time.Duration(waiting)*2*time.Second + 1500*time.Millisecond
			if got := time.Until(pacer.Next(u)); got != want {
				t.Errorf("with %d ahead: in %v, want %v", waiting, got, want)
			}
			go pacer.Wait(t.Context(), u)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		endless := over(&client.Pacer{Delay: 1 << 62})
		endless.Wait(t.Context(), u)
		if got := time.Until(endless.Next(u)); got != 24*time.Hour {
			t.Errorf("the longest delay there is: next in %v, want a day", got)
		}
		if got := pacer.Next(u); !got.Equal(time.Now()) {
			t.Errorf("long after: in %v, want now", time.Until(got))
		}
	})
}

// Try waits for nothing, and says when to come back: a queue that does has all pages at the pace of their site,
// each after few questions.
func TestTrySaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := over(&client.Pacer{Delay: 2 * time.Second})
		c := paced(pacer, pagesOf(ok))
		get(t, c, "http://a.example/first")
		if err := pacer.Try(t.Context(), parse("mailto:a@b.example")); err == nil {
			t.Error("a URL without an origin: no error")
		}
		begin, asked := time.Now(), 0
		for page := range 10 {
			u := parse(fmt.Sprint("http://a.example/", page))
			for {
				asked++
				err := pacer.Try(t.Context(), u)
				if err == nil {
					break
				}
				late, ok := errors.AsType[*client.LateError](err)
				if !ok || !late.At.After(time.Now()) || late.Paused || late.Origin.String() != "http://a.example" {
					t.Fatalf("got %#v", err)
				}
				time.Sleep(time.Until(late.At))
			}
			if _, took := get(t, c, u.String()); took != 0 {
				t.Errorf("after Try the request waited %v", took)
			}
		}
		if took := time.Since(begin); took != 20*time.Second || asked > 20 {
			t.Errorf("%v and %d questions, want 20s and two for each page", took, asked)
		}
		for _, c := range []struct { // while a body is open
			pacer  *client.Pacer
			status int
			paused bool
			want   time.Duration
		}{
			{pacer, 429, true, time.Minute},
			{over(&client.Pacer{Delay: -1}), 200, false, 100 * time.Millisecond},
		} {
			open := paced(c.pacer, pagesOf(func(*http.Request) (*http.Response, error) { return answer(c.status, "60", "body"), nil }))
			res, err := open.Get("http://a.example/open")
			if err != nil {
				t.Fatal(err)
			}
			late, ok := errors.AsType[*client.LateError](c.pacer.Try(t.Context(), parse("http://a.example/")))
			if !ok || late.Paused != c.paused || time.Until(late.At) != c.want {
				t.Errorf("after a status %d: %+v, want another call in %v", c.status, late, c.want)
			}
			res.Body.Close()
		}
		synctest.Wait()
	})
}

// Trace.Waited says what the Pacer did, and is silent where it did nothing.
func TestTraceWaitedSaysHowLongARequestWasHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(chan string, 9)
		c := paced(over(&client.Pacer{}), pagesOf(ok))
		c.Transport.(*client.Transport).Trace = &client.Trace{Waited: func(ctx context.Context, w client.WaitedInfo) {
			log <- fmt.Sprint(w.URL, " ", w.Took, " ", w.Err)
		}}
		get(t, c, "http://a.example/1") // a second after robots.txt
		time.Sleep(time.Minute)
		get(t, c, "http://a.example/2")
		time.Sleep(400 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/3", nil)
		c.Do(req)
		get(t, c, "http://a.example/4")
		want := []string{
			"http://a.example/1 1s <nil>",
			"http://a.example/3 100ms context canceled",
			"http://a.example/4 500ms <nil>",
		}
		synctest.Wait()
		for _, want := range want {
			if got := <-log; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if len(log) > 0 {
			t.Errorf("and then %q", <-log)
		}
	})
}

func TestPacerMaxUnderway(t *testing.T) {
	for _, c := range []struct{ max, want int }{{0, 1}, {1, 1}, {2, 2}, {7, 7}, {-1, 50}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var mu sync.Mutex
			underway := 0
			web := paced(over(&client.Pacer{Delay: -1, MaxUnderway: c.max}), pagesOf(func(req *http.Request) (*http.Response, error) {
				mu.Lock()
				underway++
				mu.Unlock()
				<-req.Context().Done()
				return nil, req.Context().Err()
			}))
			for range 50 {
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
				go web.Do(req)
			}
			time.Sleep(time.Hour)
			mu.Lock()
			defer mu.Unlock()
			if underway != c.want {
				t.Errorf("MaxUnderway %d: %d under way, want %d", c.max, underway, c.want)
			}
		})
	}
}
