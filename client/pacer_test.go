package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
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

// Whatever 100 workers do (wait first or not, give up, read, close, forget), no site sees two starts closer than its
// delay, a start closer than that to the end of another request, or more requests under way than allowed.
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
	pacer := &client.Pacer{MaxUnderway: most}
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
	if w.pick(3) == 0 && pacer.Pass(ctx, u) != nil {
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

func TestPacerFieldsOfEveryValue(t *testing.T) {
	for i, c := range []struct {
		pacer *client.Pacer
		want  time.Duration // between two requests
	}{
		{nil, 0},
		{&client.Pacer{}, time.Second},
		{&client.Pacer{Delay: -1}, 0},
		{&client.Pacer{Delay: 250 * time.Millisecond}, 250 * time.Millisecond},
		{&client.Pacer{Delay: time.Minute}, time.Minute}, // the cap is on what robots.txt asks
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

func TestPacerOneOriginNeverDelaysAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(&client.Pacer{}, pagesOf(func(req *http.Request) (*http.Response, error) {
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

// Waiting inside RoundTrip is on the account of http.Client.Timeout; what cannot be had
// in time is refused at once, and the request's body is closed.
func TestRoundTripRefusesATurnAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(&client.Pacer{}, pagesOf(func(*http.Request) (*http.Response, error) {
			return answer(429, "120", ""), nil
		}))
		get(t, c, "http://a.example/")
		c.Timeout = time.Minute
		begin := time.Now()
		closed := &pageBody{Reader: strings.NewReader("x")}
		isClosed := false
		closed.over = func() { isClosed = true }
		_, err := c.Post("http://a.example/", "text/plain", closed)
		if !errors.As(err, new(*client.LateError)) || errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v, want a *LateError at once", err, time.Since(begin))
		}
		if !isClosed {
			t.Error("the request's body is not closed")
		}
	})
}

// A pause that comes up while others wait is news to them as well.
func TestPacerTellsWaitersOfANewPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := &client.Pacer{}
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
		if err := pacer.Pass(ctx, parse("http://a.example/")); !errors.As(err, new(*client.LateError)) {
			t.Errorf("got %v, want a *LateError", err)
		}
		if took := time.Since(begin); took != 11*time.Second {
			t.Errorf("told after %v, want at the answer, after 11s", took)
		}
	})
}

// Trace.Waited says what the Pacer did, and is silent where it did nothing.
func TestTraceWaitedSaysHowLongARequestWasHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(chan string, 9)
		c := paced(&client.Pacer{}, pagesOf(ok))
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
