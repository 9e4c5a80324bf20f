package load_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

const (
	simProcesses = 4
	simCallers   = 64 // in each process
	simDaysRun   = 3
)

// simCrawler is one process that meets the simulated internet.
type simCrawler struct {
	self, sites int
	day         time.Duration
	net         *simNet
	gate        *client.Transport
	cache       *cache.Cache
	begin       time.Time // of the run, for all processes
	log         *simLog

	decisions, wrong atomic.Int64
	latency          [64]atomic.Int64 // decisions, by the logarithm of the nanoseconds
}

// simStats is what a process says of itself.
type simStats struct {
	Decisions, Fetches, Forbidden, Wrong, Bytes int64
	Seconds                                     float64
	Origins                                     int   // in memory
	CacheBytes                                  int64 // as counted against the bound
	Heap, RSS                                   int64
	StoreErrors                                 uint64
	Median, P99                                 time.Duration // of a decision, since the last simStats
}

// childMeetsMillion does what it is told, line by line.
func childMeetsMillion(redisURL string) {
	store, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	c := newSimCrawler(store)
	visits := c.plan()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		c.obey(in.Text(), visits)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(c.gate.Shutdown(ctx), c.cache.Shutdown(ctx), c.log.close()); err != nil {
		proc.Fail(err)
	}
}

func newSimCrawler(store cache.Store) *simCrawler {
	day := time.Duration(proc.Number("ROBOTSGATE_DAY_MS")) * time.Millisecond
	c := &simCrawler{self: proc.Number("ROBOTSGATE_SELF"), sites: proc.Number("ROBOTSGATE_ORIGINS"), day: day, net: newSimNet(day)}
	var err error
	if c.log, err = newSimLog(os.Getenv("ROBOTSGATE_FILE")); err != nil {
		proc.Fail(err)
	}
	c.net.fetched = func(i int) { c.log.fetch(time.Since(c.begin), i) }
	c.cache = &cache.Cache{
		Store: store, StoreTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
		MaxOrigins: min(50_000, c.sites/8), NoRefresh: true,
		MaxTTL: day, MinTTL: day / 1440, MinRetry: day / 2880,
	}
	c.gate = &client.Transport{
		Base: c.net, UserAgent: userAgent, Cache: c.cache,
		Fetcher: &fetch.Fetcher{Transport: c.net, UserAgent: userAgent, Retries: -1},
	}
	return c
}

// obey carries out "cold BEGIN", "days BEGIN FROM TO" or "warm", times in milliseconds, and says
// how it went.
func (c *simCrawler) obey(order string, visits []simVisit) {
	var begin, from, to int64
	start, stats := time.Now(), simStats{}
	what, args, _ := strings.Cut(order, " ")
	fmt.Sscan(args, &begin, &from, &to)
	if what == "warm" {
		stats.Decisions = c.warm(visits)
	} else {
		c.begin = time.UnixMilli(begin)
	}
	switch what {
	case "cold":
		c.cold()
	case "days":
		c.days(visits, time.Duration(from)*time.Millisecond, time.Duration(to)*time.Millisecond)
	}
	c.say(stats, time.Since(start))
}

// say prints the statistics of what was done in a time.
func (c *simCrawler) say(s simStats, took time.Duration) {
	s.Decisions += c.decisions.Swap(0)
	s.Fetches, s.Forbidden, s.Wrong = c.log.fetches.Swap(0), c.net.forbidden.Load(), c.wrong.Load()
	s.Bytes, s.Seconds = c.net.bytes.Swap(0), took.Seconds()
	stats := c.cache.Stats()
	s.Origins, s.CacheBytes, s.StoreErrors = stats.Origins, stats.Bytes, stats.StoreErrors
	runtime.GC()
	s.Heap, s.RSS = heapNow(), resident()
	s.Median, s.P99 = c.quantiles()
	line, err := json.Marshal(s)
	if err != nil {
		proc.Fail(err)
	}
	fmt.Printf("%s\n", line)
}

// quantiles forgets what it has seen.
func (c *simCrawler) quantiles() (median, p99 time.Duration) {
	var counts [64]int64
	all := int64(0)
	for i := range c.latency {
		counts[i] = c.latency[i].Swap(0)
		all += counts[i]
	}
	at := func(part float64) time.Duration {
		n := int64(part * float64(all))
		for i, count := range counts {
			if n -= count; n < 0 {
				return time.Duration(1) << i
			}
		}
		return 0
	}
	return at(0.5), at(0.99)
}

// visit is of a site, at a time after the days began.
type simVisit struct {
	due     uint32 // ms
	site    uint32
	private bool
}

// plan returns the visits that are this process's, in order. A site's visits are spread over all
// days and all processes.
func (c *simCrawler) plan() (all []simVisit) {
	for i := range c.sites {
		h := simHash(uint64(i) << 1)
		for range simSiteOf(i, c.day).visits {
			if h = simHash(h); int(h%simProcesses) == c.self {
				due := simUnit(simHash(h)) * simDaysRun * float64(c.day.Milliseconds())
				all = append(all, simVisit{uint32(due), uint32(i), h>>32&1 == 1})
			}
		}
	}
	slices.SortFunc(all, func(a, b simVisit) int { return int(a.due) - int(b.due) })
	return all
}

// each calls do for all that next returns, from many goroutines.
func (c *simCrawler) each(next func() (simVisit, bool)) {
	queue := make(chan simVisit, simCallers)
	var callers sync.WaitGroup
	for range simCallers {
		callers.Go(func() {
			for v := range queue {
				c.visit(v)
			}
		})
	}
	for v, ok := next(); ok; v, ok = next() {
		queue <- v
	}
	close(queue)
	callers.Wait()
}

// cold meets each site once: every process a part of them.
func (c *simCrawler) cold() {
	i := c.self - simProcesses
	c.each(func() (simVisit, bool) {
		i += simProcesses
		return simVisit{site: uint32(i)}, i < c.sites
	})
}

// days makes the visits that are due in a part of the days.
func (c *simCrawler) days(all []simVisit, from, to time.Duration) {
	due := func(v simVisit) time.Duration { return time.Duration(v.due) * time.Millisecond }
	n := 0
	start := time.Now().Add(-from)
	c.each(func() (simVisit, bool) {
		for n < len(all) && due(all[n]) < from {
			n++
		}
		if n == len(all) || due(all[n]) >= to {
			return simVisit{}, false
		}
		time.Sleep(time.Until(start.Add(due(all[n]))))
		n++
		return all[n-1], true
	})
}

// warm asks for the sites that were visited last again and again, for a while, and returns how
// often.
func (c *simCrawler) warm(all []simVisit) int64 {
	var known []*http.Request
	for _, v := range slices.Backward(all) {
		s := simSiteOf(int(v.site), c.day)
		if s.kind == simRules && (s.lifetime == 0 || s.lifetime >= c.day) && len(known) < min(1000, c.sites/40) {
			known = append(known, simRequest(v))
		}
	}
	for _, req := range known { // what has expired meanwhile
		c.gate.RoundTrip(req)
	}
	c.log.fetches.Store(0)
	var n atomic.Int64
	var callers sync.WaitGroup
	end := time.Now().Add(min(2*time.Second, c.day/2))
	for range runtime.GOMAXPROCS(0) {
		callers.Go(func() {
			for time.Now().Before(end) {
				for _, req := range known {
					c.gate.RoundTrip(req)
				}
				n.Add(int64(len(known)))
			}
		})
	}
	callers.Wait()
	return n.Load()
}

func simRequest(v simVisit) *http.Request {
	u := &url.URL{Scheme: "http", Host: fmt.Sprint("o", v.site, ".example"), Path: "/public"}
	if v.private {
		u.Path = "/private/page"
	}
	return &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}
}

// visit asks for a page, and compares what comes of it with what has to.
func (c *simCrawler) visit(v simVisit) {
	req := simRequest(v)
	start := time.Now()
	c.log.visit(start.Sub(c.begin), int(v.site))
	resp, err := c.gate.RoundTrip(req)
	c.latency[min(63, bitsOf(time.Since(start)))].Add(1)
	c.decisions.Add(1)
	if err == nil {
		resp.Body.Close()
	}
	_, refused := errors.AsType[*client.DisallowedError](err)
	if allowed := simSiteOf(int(v.site), c.day).allows(req.URL.Path); allowed != (err == nil) || refused == allowed {
		if c.wrong.Add(1) < 5 {
			fmt.Fprintln(os.Stderr, "wrong:", req.URL, err)
		}
	}
}

func bitsOf(d time.Duration) (n int) {
	for ; d > 1; d >>= 1 {
		n++
	}
	return n
}

// simLog is a file of visits and fetches: the millisecond, and the site.
type simLog struct {
	file    *os.File
	mu      sync.Mutex // guards out
	out     *bufio.Writer
	fetches atomic.Int64
}

const simFetch = 1 << 31 // in the site of a fetch

func newSimLog(path string) (*simLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &simLog{file: f, out: bufio.NewWriter(f)}, nil
}

func (l *simLog) visit(at time.Duration, site int) { l.write(at, uint32(site)) }

func (l *simLog) fetch(at time.Duration, site int) {
	l.fetches.Add(1)
	l.write(at, uint32(site)|simFetch)
}

func (l *simLog) write(at time.Duration, site uint32) {
	var line [8]byte
	binary.BigEndian.PutUint32(line[:], site)
	binary.BigEndian.PutUint32(line[4:], uint32(at.Milliseconds()))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Write(line[:])
}

func (l *simLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.out.Flush(), l.file.Close())
}

// resident is the memory that the system counts for this process; 0 elsewhere than on Linux.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}
