package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
)

// witness is the site of all origins of a fleet: it knows who came when.
type witness struct {
	*httptest.Server
	delay  time.Duration
	status func(r *http.Request) (status int, retryAfter string) // nil: always 200

	mu  sync.Mutex // guards log
	log map[string][]arrival
}

func newWitness(t *testing.T, delay time.Duration) *witness {
	w := &witness{delay: delay, log: map[string][]arrival{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	v := arrival{path: r.URL.Path, start: time.Now()}
	body := "page"
	if r.URL.Path == "/robots.txt" {
		body = fmt.Sprintf("User-agent: *\nAllow: /\nCrawl-delay: %.3f\n", w.delay.Seconds())
	} else if w.status != nil {
		status, retryAfter := w.status(r)
		if retryAfter != "" {
			rw.Header().Set("Retry-After", retryAfter)
		}
		defer func() { _ = status }()
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		rw.WriteHeader(status)
	}
	v.end = time.Now() // the client cannot be done with it yet
	w.mu.Lock()
	w.log[r.Host] = append(w.log[r.Host], v)
	w.mu.Unlock()
	io.WriteString(rw, body)
}

// early returns the requests that came too early, the least gap, and the part of the possible
// pages that was fetched: each takes its own time at the site and the delay.
func (w *witness) early() (early []string, least time.Duration, part float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	least = time.Hour
	var fetched, possible float64
	for host, log := range w.log {
		slices.SortFunc(log, func(a, b arrival) int { return a.start.Compare(b.start) })
		var own time.Duration
		for i := 1; i < len(log); i++ {
			gap := log[i].start.Sub(log[i-1].end)
			if least = min(least, gap); gap < w.delay-5*time.Millisecond {
				early = append(early, fmt.Sprintf("%s%s at %s, %v after %s", host, log[i].path,
					log[i].start.Format("05.000"), gap, log[i-1].path))
			}
			own += log[i].end.Sub(log[i].start)
		}
		n := float64(len(log) - 1)
		if n > 0 {
			fetched += n
			possible += float64(log[len(log)-1].start.Sub(log[0].end)) / (float64(w.delay) + float64(own)/n)
		}
	}
	return early, least, fetched / possible
}

// fleet is how many processes ask for what.
type fleet struct {
	processes, callers, origins int
	time                        time.Duration
	env                         []string
}

// start starts the processes, each of which waits for the others.
func (f fleet) start(t *testing.T, redisURL string, w *witness) []*exec.Cmd {
	begin := time.Now().Add(time.Second)
	var all []*exec.Cmd
	for i := range f.processes {
		cmd, out := child(t, "pacer", append([]string{
			"ROBOTSGATE_REDIS=" + redisURL, "ROBOTSGATE_SITE=" + w.Listener.Addr().String(),
			fmt.Sprint("ROBOTSGATE_CALLERS=", f.callers), fmt.Sprint("ROBOTSGATE_FIRST=", i*f.callers),
			fmt.Sprint("ROBOTSGATE_ORIGINS=", f.origins),
			fmt.Sprint("ROBOTSGATE_BEGIN=", begin.UnixMilli()), fmt.Sprint("ROBOTSGATE_MS=", f.time.Milliseconds()),
		}, f.env...)...)
		all = append(all, cmd)
		go logAll(t, out)
		t.Cleanup(func() { cmd.Process.Kill() })
	}
	return all
}

func logAll(t *testing.T, out *bufio.Scanner) {
	for out.Scan() {
		t.Log(out.Text())
	}
}

func (f fleet) wait(t *testing.T, all []*exec.Cmd) {
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil && err.Error() != "signal: killed" {
			t.Error(err)
		}
	}
}

func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	return n
}

// childPaces asks for pages of all origins as fast as it may.
func childPaces(redisURL, site string) {
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		fail(err)
	}
	opt.ContextTimeoutEnabled, opt.MaxRetries, opt.PoolSize = true, -1, 16
	c := redis.NewClient(opt)
	store := &redisturns.Store{Client: c, Prefix: os.Getenv("ROBOTSGATE_PREFIX")}
	pacer := &client.Pacer{Turns: store}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	transport := &client.Transport{
		UserAgent: userAgent, Pacer: pacer,
		Cache: &cache.Cache{Store: &redisstore.Store{Client: c}, StoreTimeout: 2 * time.Second},
		Base: &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", site)
		}},
	}
	httpClient := &http.Client{Transport: transport}
	begin := time.UnixMilli(int64(number("ROBOTSGATE_BEGIN")))
	time.Sleep(time.Until(begin))
	ctx, cancel := context.WithDeadline(context.Background(), begin.Add(time.Duration(number("ROBOTSGATE_MS"))*time.Millisecond))
	defer cancel()
	first, origins := number("ROBOTSGATE_FIRST"), number("ROBOTSGATE_ORIGINS")
	var callers sync.WaitGroup
	for i := range number("ROBOTSGATE_CALLERS") {
		callers.Go(func() {
			for ctx.Err() == nil {
				u := siteURL((first + i) % origins)
				u.Path = fmt.Sprint("/", os.Getpid(), "/", i)
				req, _ := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
				if res, err := httpClient.Do(req); err == nil {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
	callers.Wait()
}

// Sites as witnesses: however many processes ask, each origin keeps its delay, and little of
// it is lost.
func TestFleetKeepsOnePace(t *testing.T) {
	s := startRedis(t)
	w := newWitness(t, 100*time.Millisecond)
	f := fleet{4, 16, 40, 4 * time.Second, nil}
	if *full {
		f = fleet{4, 64, 200, 15 * time.Second, nil}
	}
	before := s.commands(t)
	f.wait(t, f.start(t, s.url, w))
	early, least, part := w.early()
	pages := 0
	for _, log := range w.log {
		pages += len(log)
	}
	t.Logf("%d requests at %d origins, least gap %v, %.1f %% of the possible, %.2f commands a request",
		pages, len(w.log), least, 100*part, float64(s.commands(t)-before)/float64(pages))
	if len(early) > 0 {
		t.Errorf("%d requests came too early, such as %v", len(early), early[:min(5, len(early))])
	}
	if part < 0.9 {
		t.Errorf("%.3f of the possible pages, want 0.9", part)
	}
}

func (s *redisServer) commands(t *testing.T) int {
	t.Helper()
	info, err := s.client.InfoMap(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(info["Stats"]["total_commands_processed"])
	return n
}

var _ = syscall.SIGSTOP
