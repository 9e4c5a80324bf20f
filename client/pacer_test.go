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
