package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// aside runs a test that mostly waits beside others of its kind. With -full it runs alone, for its figures.
func aside(t *testing.T) {
	if !*sizes.Full {
		t.Parallel()
	}
}

// TestMain lets copies of this test binary play the other processes of a test.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // by default go-redis reports every failed dial
	switch proc.Role() {
	case "":
		// Set before anything may read it: a client of Redis that has no server dials on when its test is over.
		net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dialNames}
		flag.Parse()
		if waiting := flag.Lookup("test.parallel"); waiting.Value.String() == waiting.DefValue {
			waiting.Value.Set("8") // tests that wait, see aside
		}
		os.Exit(m.Run())
	case "asker":
		childAsks(os.Getenv("ROBOTSGATE_REDIS"), os.Getenv("ROBOTSGATE_SITE"))
	case "engine":
		childTriesEngine(os.Getenv("ROBOTSGATE_REDIS"))
	case "meeter":
		childMeets(os.Getenv("ROBOTSGATE_REDIS"), os.Getenv("ROBOTSGATE_SITE"))
	case "holder":
		childHoldsLock(os.Getenv("ROBOTSGATE_REDIS"))
	case "crawler":
		childCrawls(os.Getenv("ROBOTSGATE_REDIS"), os.Getenv("ROBOTSGATE_SITE"))
	case "pacer":
		childPaces(os.Getenv("ROBOTSGATE_REDIS"), os.Getenv("ROBOTSGATE_SITE"))
	case "writer":
		childWrites(os.Getenv("ROBOTSGATE_FILE"), os.Getenv("ROBOTSGATE_VERSION"))
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// child starts a copy of this test binary in a role.
func child(t *testing.T, role string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := proc.Child(t, role, env...)
	return cmd, proc.Lines(t, cmd)
}

const sharedOrigins = 100

func siteURL(i int) *url.URL {
	return &url.URL{Scheme: "http", Host: fmt.Sprintf("a%d.example", i), Path: "/"}
}

// childAsks looks up all origins of a site at once, through one Redis, and prints those
// whose rules it did not get.
func childAsks(redisURL, site string) {
	store, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	f := &fetch.Fetcher{UserAgent: "examplebot/1.0", Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", site)
		},
	}}
	c := &cache.Cache{Store: store, Logger: slog.New(slog.DiscardHandler)}
	var askers sync.WaitGroup
	turns := make(chan struct{}, 20)
	for i := range sharedOrigins {
		askers.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			o, err := fetch.OriginOf(siteURL(i))
			if err != nil {
				proc.Fail(err)
			}
			r, _, err := c.Get(context.Background(), o, &cache.Source{Load: f.Fetch, Reader: f.Reader()})
			if err != nil || r.Err != nil || r.Policy.Decide("examplebot", fmt.Sprint("/private", i)).Allowed {
				fmt.Println("wrong:", i, err, r)
			}
		})
	}
	askers.Wait()
	fmt.Println("errors:", c.Stats().StoreErrors)
	if err := c.Shutdown(context.Background()); err != nil {
		proc.Fail(err)
	}
}

// The promise is for a Redis that answers within 100 ms: to wait longer would be worse
// than to fetch twice. Where the machine is too busy for that, it is tried again.
func TestCacheProcessesFetchOnceForAll(t *testing.T) {
	tier.Gate(t)
	for range 5 {
		fetches, errors := fetchesOfThree(t)
		if fetches == sharedOrigins {
			return
		}
		if errors == 0 {
			t.Fatalf("%d fetches of %d origins by 3 processes, want one for each origin", fetches, sharedOrigins)
		}
		t.Logf("%d fetches: Redis took too long %d times", fetches, errors)
	}
	t.Skip("this machine is too busy for Redis to answer in time")
}

// fetchesOfThree lets three processes look up all origins, and returns how many files
// were fetched and how many calls of Redis failed.
func fetchesOfThree(t *testing.T) (int, int64) {
	server := startRedis(t)
	var failed atomic.Int64
	var fetches atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		time.Sleep(100 * time.Millisecond) // long enough for all to ask meanwhile
		i := strings.TrimSuffix(strings.TrimPrefix(r.Host, "a"), ".example")
		fmt.Fprintf(w, "User-agent: *\nDisallow: /private%s\n", i)
	}))
	defer site.Close()
	var processes sync.WaitGroup
	for range 3 {
		cmd, out := child(t, "asker", "ROBOTSGATE_REDIS="+server.url, "ROBOTSGATE_SITE="+site.Listener.Addr().String())
		processes.Go(func() {
			for out.Scan() {
				n, ok := strings.CutPrefix(out.Text(), "errors: ")
				if count, err := strconv.ParseInt(n, 10, 64); ok && err == nil {
					failed.Add(count)
				} else {
					t.Error(out.Text())
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	return int(fetches.Load()), failed.Load()
}

// childHoldsLock begins to fetch and never ends.
func childHoldsLock(redisURL string) {
	store, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	o, err := fetch.OriginOf(siteURL(0))
	if err != nil {
		proc.Fail(err)
	}
	c := &cache.Cache{Store: store}
	_, _, err = c.Get(context.Background(), o, &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		fmt.Println("fetching")
		select {}
	}})
	proc.Fail(err)
}

func TestCacheKilledFetcherCostsOneLockLifetime(t *testing.T) {
	tier.Gate(t)
	aside(t)
	server := startRedis(t)
	cmd, out := child(t, "holder", "ROBOTSGATE_REDIS="+server.url)
	if !out.Scan() || out.Text() != "fetching" {
		t.Fatalf("%q, %v", out.Text(), out.Err())
	}
	var fetches atomic.Int32
	c := &cache.Cache{Store: openRedis(t, server.url)}
	defer c.Shutdown(t.Context())
	start := time.Now()
	time.AfterFunc(time.Second, func() { cmd.Process.Kill() })
	askAndCheck(t, c, 0, &fetches)
	cmd.Wait()
	if took := time.Since(start); fetches.Load() != 1 || took < time.Second || took > 10*time.Second {
		t.Errorf("%d fetches after %v, want one within a lock lifetime of 5 s after the kill", fetches.Load(), took)
	}
}

const (
	killedOrigins = 20
	killedRules   = 400 // some pages of the file, so that it could tear
)

// telling is a Store that prints the version that a value has, once it is on the disk.
type telling struct{ *dirstore.Store }

func (s telling) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	err := s.Store.Put(ctx, key, data, ttl)
	if _, rules, ok := bytes.Cut(data, []byte("Disallow: /")); ok && err == nil {
		version, _, _ := bytes.Cut(rules, []byte("/"))
		fmt.Printf("put %s\n", version)
	}
	return err
}

// childWrites puts versions of the rules of some origins, in turn, as fast as it can
// fetch: every lookup is a fetch. It prints each version before it is queued, and once it has
// been put.
func childWrites(file, first string) {
	store, err := dirstore.Open(file)
	if err != nil {
		proc.Fail(err)
	}
	version, err := strconv.Atoi(first)
	if err != nil {
		proc.Fail(err)
	}
	c := &cache.Cache{Store: telling{store}, MinTTL: -1}
	for ; ; version++ {
		i := version % killedOrigins
		o, err := fetch.OriginOf(siteURL(i))
		if err != nil {
			proc.Fail(err)
		}
		_, _, err = c.Get(context.Background(), o, &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			fmt.Printf("got %d\n", version)
			var b strings.Builder
			b.WriteString("User-agent: *\n")
			for line := range killedRules {
				fmt.Fprintf(&b, "Disallow: /%d/%d/\n", version, line)
			}
			body := []byte(b.String())
			return &fetch.Result{StatusCode: 200, Policy: policy.Parse(body), Body: body, Time: time.Now()}, nil
		}})
		if err != nil {
			proc.Fail(err)
		}
		time.Sleep(5 * time.Millisecond) // some 100 to 200 a second
	}
}

// written is what a writer has said about the versions of one origin.
type written struct {
	got []int // fetched, and about to be queued
	put int   // the latest on the disk
	old int   // of those got, the latest that maxPuts others have overtaken
}

// maxPuts is after how many later writes a version has to be there, too: three for each
// origin. Seconds would measure how busy the machine is.
const maxPuts = 3 * killedOrigins

func TestCacheKilledWriterLeavesEveryEntryOldOrNew(t *testing.T) {
	tier.Gate(t)
	aside(t)
	file := t.TempDir()
	found := slices.Repeat([]int{-1}, killedOrigins)
	kills, next, puts, entries := max(3, sizes.Of(100)), 0, 0, 0
	for kill := range kills {
		// Moments that are spread over what a writer does, from its start on.
		life := 30*time.Millisecond + time.Duration(kill*7919%1000)*time.Millisecond
		said, n := untilKilled(t, file, next, life)
		for i, v := range readVersions(t, file) {
			if w := said[i]; v < max(found[i], w.put, w.old) || v != found[i] && !slices.Contains(w.got, v) {
				t.Errorf("kill %d, origin %d: version %d is there; before it was %d, then %d was put, %d was due, and %d were fetched",
					kill, i, v, found[i], w.put, w.old, w.got)
			}
			if found[i] = v; v >= 0 {
				entries++
			}
			next += len(said[i].got)
		}
		puts += n
	}
	if puts < kills {
		t.Errorf("%d versions put in %d lives, want some in each", puts, kills)
	}
	t.Logf("%d kills, %d versions fetched, %d put, %d entries read back whole", kills, next, puts, entries)
}

// untilKilled runs a writer for a while. It returns what that said, and how many versions it
// has put.
func untilKilled(t *testing.T, file string, first int, life time.Duration) (said []written, puts int) {
	t.Helper()
	cmd, out := child(t, "writer", "ROBOTSGATE_FILE="+file, "ROBOTSGATE_VERSION="+strconv.Itoa(first))
	time.AfterFunc(life, func() { cmd.Process.Kill() })
	said = slices.Repeat([]written{{put: -1, old: -1}}, killedOrigins)
	var since []int // how many were put before each version from first on was queued
	for out.Scan() {
		what, number, _ := strings.Cut(out.Text(), " ")
		v, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("the writer says %q", out.Text())
		}
		w := &said[v%killedOrigins]
		if what == "got" {
			w.got, since = append(w.got, v), append(since, puts)
		} else {
			w.put, puts = max(w.put, v), puts+1
		}
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	for i, before := range since {
		if w := &said[(first+i)%killedOrigins]; puts-before > maxPuts {
			w.old = first + i
		}
	}
	return said, puts
}

// readVersions opens the file as a process after the crash does, and returns the version
// of each origin's rules, -1 if there is none. Rules of two versions are an error.
func readVersions(t *testing.T, file string) []int {
	t.Helper()
	store, err := dirstore.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &cache.Cache{Store: store, MinTTL: 24 * time.Hour, StoreTimeout: time.Minute} // a slow disk is no miss
	all := make([]int, killedOrigins)
	for i := range all {
		missing := false
		r, _, err := c.Get(t.Context(), originOf(t, siteURL(i).String()), &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			missing = true // and not to be put either: the next check would find it
			return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Header: http.Header{"Cache-Control": {"no-store"}}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if all[i] = -1; missing {
			continue
		}
		rules := 0
		for rule := range r.Policy.Group("x").Rules() {
			v, err := strconv.Atoi(strings.Split(rule.Pattern, "/")[1])
			if err != nil || all[i] != -1 && v != all[i] {
				t.Errorf("origin %d: rule %q among those of version %d", i, rule.Pattern, all[i])
			}
			all[i] = v
			rules++
		}
		if rules != killedRules {
			t.Errorf("origin %d: %d rules of %d", i, rules, killedRules)
		}
	}
	return all
}
