package integration_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

var moodSeed = flag.Uint64("seed", 0, "`seed` of the questions and of what happens to them; 0: another one each time")

const (
	// grace is what a busy machine may take from a decision to the look at the clock when its request is handed on.
	grace = time.Second

	// sections are the first segment of a page's path. Each version of robots.txt closes three of them.
	sections = 6
)

// moody is a site that changes its rules again and again, redirects, stalls and hangs up.
type moody struct {
	url    string
	seed   uint64
	others []*moody // where it redirects to
	seen   atomic.Int64

	mu     sync.Mutex
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

// witness judges a request that is handed on: a version that the Cache held while the decision was young enough has to
// allow it. The test cannot tell which of the two it was.
func (s *moody) witness(target string) {
	s.seen.Add(1)
	section, _ := strconv.Atoi(target[1:2])
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := s.newest; n >= 0; n-- {
		r := &s.rules[n]
		if r.received != 0 && !r.closed[section] {
			return
		}
		if age := now.Sub(r.held); !r.held.IsZero() && age > grace {
			s.faults = append(s.faults, fmt.Sprintf("%s%s was sent %v after the Cache had version %d, and all since close it:\n%s",
				s.url, target, age.Round(time.Millisecond), n, r.file(n)))
			return // an earlier one was not decided by any more
		}
	}
	s.faults = append(s.faults, fmt.Sprintf("%s%s was sent before there was a robots.txt", s.url, target))
}

// ServeHTTP answers, redirects, stalls or hangs up.
func (s *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		s.mu.Lock()
		n := len(s.rules) - 1
		file := s.rules[n].file(n)
		s.mu.Unlock()
		w.Header().Set("Cache-Control", "max-age=1")
		io.WriteString(w, file)
		return
	}
	io.Copy(io.Discard, r.Body)
	switch p := rand.IntN(1000); {
	case p < 50:
		http.Redirect(w, r, fmt.Sprintf("%s/%d/r", s.others[rand.IntN(len(s.others))].url, rand.IntN(sections)), http.StatusFound)
	case p < 55:
		time.Sleep(rand.N(2 * time.Second))
	case p < 70:
		panic(http.ErrAbortHandler) // net/http may send it again
	}
}

// live changes the rules of the site until ctx ends.
func (s *moody) live(ctx context.Context) {
	for random := rand.New(rand.NewPCG(s.seed, 0)); ctx.Err() == nil; {
		s.change(random)
		select {
		case <-time.After(time.Duration(random.Int64N(int64(2 * time.Second)))):
		case <-ctx.Done():
		}
	}
}

// handedOn lets the sites judge what the gate hands on.
type handedOn struct {
	http.RoundTripper
	byHost map[string]*moody
}

func (h handedOn) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/robots.txt" {
		h.byHost[req.URL.Host].witness(req.URL.Path)
	}
	return h.RoundTripper.RoundTrip(req)
}

// moodySites are eight, every second of which speaks HTTP/2.
func moodySites(t *testing.T, seed uint64) (byHost map[string]*moody, sites []*moody, base http.RoundTripper) {
	byHost, sites = map[string]*moody{}, make([]*moody, 8)
	for i := range sites {
		s := &moody{seed: seed + uint64(i), others: sites, newest: -1}
		s.change(rand.New(rand.NewPCG(s.seed, 1)))
		server := httptest.NewUnstartedServer(s)
		if server.EnableHTTP2 = i%2 == 1; server.EnableHTTP2 {
			server.StartTLS()
			base = server.Client().Transport // all have the same certificate
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		s.url, sites[i], byHost[server.Listener.Addr().String()] = server.URL, s, s
	}
	return byHost, sites, base
}

// TestNothingForbiddenIsSentWhateverConnectionsDo asks moody sites for pages, 200,000 times with -full. They judge: no
// request that is handed on, of whatever redirect, is forbidden by all the rules that the Cache held within the last
// second. What net/http does with it then, on whatever connection, is one sending of one request.
func TestNothingForbiddenIsSentWhateverConnectionsDo(t *testing.T) {
	tier.Gate(t)
	aside(t)
	total, seed := int64(4000), *moodSeed
	if *full {
		total = 200_000
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	byHost, sites, base := moodySites(t, seed)
	gate := &client.Transport{
		Base:  handedOn{base, byHost},
		Cache: &cache.Cache{MinTTL: time.Second},
		Trace: &client.Trace{
			Fetched: func(_ context.Context, o fetch.Origin, r *fetch.Result, _ time.Duration, _ error) {
				if r != nil && r.StatusCode == http.StatusOK {
					_, host, _ := strings.Cut(o.String(), "://")
					byHost[host].fetched(r.Body, r.Time)
				}
			},
			Decided: func(_ context.Context, u *url.URL, a client.Answer, _ time.Duration, _ error) {
				byHost[u.Host].decided(a.Received)
			},
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var living, asking sync.WaitGroup
	defer living.Wait()
	defer cancel()
	for _, s := range sites {
		living.Go(func() { s.live(ctx) })
	}
	c := &http.Client{Transport: gate, Timeout: 2 * time.Minute}
	var asked, answered, refused atomic.Int64
	for range 512 {
		asking.Go(func() {
			for n := asked.Add(1); n <= total; n = asked.Add(1) {
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				method, body := "GET", io.Reader(nil)
				if random.IntN(10) == 0 {
					method, body = "POST", strings.NewReader("body")
				}
				page := fmt.Sprintf("%s/%d/%d", sites[random.IntN(len(sites))].url, random.IntN(sections), n)
				req, err := http.NewRequestWithContext(ctx, method, page, body)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := c.Do(req)
				if err == nil {
					answered.Add(1)
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
	var seen, changes int64
	for _, s := range sites {
		s.mu.Lock()
		seen, changes = seen+s.seen.Load(), changes+int64(len(s.rules))
		for _, fault := range s.faults[:min(3, len(s.faults))] {
			t.Errorf("%s(%d faults of this site)", fault, len(s.faults))
		}
		s.mu.Unlock()
	}
	t.Logf("seed %d, %v: %d questions, %d answered, %d refused; %d requests seen; %d versions of robots.txt",
		seed, time.Since(start).Round(time.Second), total, answered.Load(), refused.Load(), seen, changes)
	if answered.Load() == 0 || refused.Load() == 0 || changes < 2*int64(len(sites)) {
		t.Error("nothing is shown")
	}
}
