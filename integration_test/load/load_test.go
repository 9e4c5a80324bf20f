// Package load_test is what the library does under load: many origins, callers and processes, few of them well-behaved.
// Its sizes are small, unless told otherwise: go test ./integration_test/load -load=full -full -timeout 20m -v
package load_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

var loadSize = flag.String("load", "small", "`size` of the load tests: small, or full (10,000 origins and 1,000 callers, without -race)")

// scale is how much load there is.
type scale struct {
	healthy, hostile int // sites
	callers          int // goroutines that ask
	herd             int // goroutines that ask one site at once
	fetches          int // of robots.txt at a time
	listeners        int
}

func loadScale(t *testing.T) scale {
	t.Helper()
	switch *loadSize {
	case "small": // each misbehaviour about once
		hostile := len(origins.Faults())
		return scale{healthy: hostile * 3 / 2, hostile: hostile, callers: 100, herd: 1000, fetches: 64, listeners: 4}
	case "full":
		return scale{healthy: 6000, hostile: 4000, callers: 1000, herd: 10_000, fetches: 256, listeners: 8}
	}
	t.Fatalf("-load=%s: want small or full", *loadSize)
	return scale{}
}

// TestLoadHostileMix is a crawl in which four sites of ten misbehave, in all ways there
// are. Whatever they do, nothing is sent that robots.txt forbids or that is not known to
// be allowed, no healthy site suffers, and no caller waits longer than it wants to.
func TestLoadHostileMix(t *testing.T) {
	tier.Gate(t)
	size := loadScale(t)
	r := newRig(t, size, nil)
	sites := hostileSites(size.hostile)
	for i := range size.healthy {
		sites = append(sites, healthySite(i))
	}

	// Each page of each site for a patient caller, and every tenth for one in a hurry as well.
	var work []errand
	for _, s := range sites {
		r.net.Add(s.origins...)
		for _, p := range s.pages {
			work = append(work, errand{s, p, patience})
			if n := len(work); n%10 == 0 {
				work = append(work, errand{s, p, hurries[n/10%len(hurries)]})
			}
		}
	}
	shuffle(work)
	r.meter.start()
	c := crowd{client: http.Client{Transport: r.gate}}
	took := c.run(t, size.callers, work)
	r.meter.stop()

	t.Logf("%d sites, %d of them hostile, %d requests by %d callers: %v", len(sites), size.hostile, len(work), size.callers, took)
	t.Log(&c)
	t.Log(&r.meter)
	checkSites(t, sites, took)
	r.end(t)
}

// TestLoadWideColdStart asks many healthy sites for one page each.
func TestLoadWideColdStart(t *testing.T) {
	tier.Gate(t)
	size := loadScale(t)
	n := size.healthy + size.hostile
	r := newRig(t, size, nil)
	var sites []*loadSite
	var work []errand
	for i := range n {
		s := healthySite(i)
		r.net.Add(s.origins...)
		sites = append(sites, s)
		work = append(work, errand{s, s.pages[i%len(s.pages)], patience})
	}
	r.meter.start()
	c := crowd{client: http.Client{Transport: r.gate}}
	took := c.run(t, size.callers, work)
	r.meter.stop()

	t.Logf("%d sites, a page each, by %d callers: %v", n, size.callers, took)
	t.Log(&r.meter)
	checkSites(t, sites, took)
	fetches := 0
	for _, s := range sites {
		fetches += s.origins[0].Counts().Requests["/robots.txt"]
	}
	if fetches != n {
		t.Errorf("robots.txt was fetched %d times, want %d", fetches, n)
	}
	if peak := r.meter.heap.Load(); *loadSize == "full" && peak > 128<<20 {
		t.Errorf("the heap had %d MiB, want 128 at most", peak>>20)
	}
	r.end(t)
}

// TestLoadOutageAfterAGoodCopy asks sites again that were good once and no longer are: an
// outage leaves their rules in force (RFC 9309 §2.4), a 404 drops them (§2.3.1.3).
func TestLoadOutageAfterAGoodCopy(t *testing.T) {
	tier.Gate(t)
	size := loadScale(t)
	kept := &cache.Cache{MinTTL: -1, MaxTTL: time.Nanosecond} // so that "later" is now
	r := newRig(t, size, kept)
	r.gate.Fetcher.Timeout = 2 * time.Second // an outage, not patience, is what this is about
	c := crowd{client: http.Client{Transport: r.gate}}
	var all sync.WaitGroup
	for i, f := range origins.Faults() {
		if f.Then == "" {
			continue
		}
		for j := range max(1, size.hostile/200) {
			site := faultSite(f, fmt.Sprintf("t%d-%d.test", i, j))
			r.net.Add(site.origins...)
			all.Go(func() {
				c.ask(t, errand{site, loadPage{"/private/x", false}, patience}) // reads the good copy
				if f.Then == origins.Allow {
					site = site.turned(origins.Allow)
				}
				for _, p := range site.pages {
					c.ask(t, errand{site, p, patience})
				}
			})
		}
	}
	all.Wait()
	t.Log(&c)
	if err := kept.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	r.end(t)
}

// TestLoadDeadlines has callers in a hurry ask sites that stall, in each way there is.
// Each goes when his time is up, and the fetch goes on to its own end.
func TestLoadDeadlines(t *testing.T) {
	tier.Nightly(t)
	size := loadScale(t)
	r := newRig(t, size, nil)
	if *loadSize == "small" {
		r.gate.Fetcher.Timeout /= 2
	}
	var read, slowest atomic.Int64
	r.gate.Trace = &client.Trace{Fetched: func(_ context.Context, f client.FetchedInfo) {
		read.Add(1)
		raise(&slowest, int64(f.Took))
	}}
	c := crowd{client: http.Client{Transport: r.gate}}
	var all sync.WaitGroup
	busyBy := proc.WatchMachine()
	var sites []*loadSite
	for i, f := range origins.Faults() {
		if f.Class < 40 || f.Class > 45 || f.Site("")[0].TLS == origins.TLSNone { // the last is over at once
			continue
		}
		for _, hurry := range hurries {
			s := faultSite(f, fmt.Sprintf("d%d-%v.test", i, hurry))
			r.net.Add(s.origins...)
			sites = append(sites, s)
			for range size.callers / 50 {
				all.Go(func() { c.ask(t, errand{s, s.pages[0], hurry}) })
			}
			all.Go(func() { c.ask(t, errand{s, s.pages[0], patience}) })
		}
	}
	all.Wait()
	excuse := 4 * busyBy()
	t.Log(&c)
	if want := int64(len(sites) * (size.callers / 50)); c.gaveUp.Load() != want {
		t.Errorf("%d callers gave up, want %d", c.gaveUp.Load(), want)
	}
	if late := c.usual(); late > 3*lateness+excuse {
		t.Errorf("the more punctual half returned up to %v after the deadline, want %v at most, and what the machine takes (%v)", late, 3*lateness, excuse)
	} else {
		t.Logf("the more punctual half returned up to %v after the deadline", late)
	}
	checkSites(t, sites, r.gate.Fetcher.Timeout)
	r.end(t)
	most := r.gate.Fetcher.Timeout + time.Second + excuse
	took, n := time.Duration(slowest.Load()), int(read.Load())
	t.Logf("%d fetches, the longest %v", n, took)
	if took > most || n != len(sites) {
		t.Errorf("%d fetches, the longest took %v, want %d, and %v at most", n, took, len(sites), most)
	}
}

// TestLoadColdHerd has a herd ask about one site that takes half a second to answer.
func TestLoadColdHerd(t *testing.T) {
	size := loadScale(t)
	r := newRig(t, size, nil)
	site := &origins.Origin{Name: "herd.test", Paths: map[string][]origins.Program{
		"/robots.txt": {{origins.Pause(500 * time.Millisecond), origins.Write(origins.Reply(200, origins.File))}},
	}}
	r.net.Add(site)
	c := http.Client{Transport: r.gate}
	var all sync.WaitGroup
	var slowest atomic.Int64
	v := keepVigil(time.Now().Add(700 * time.Millisecond))
	r.meter.start()
	for range size.herd {
		all.Go(func() {
			start := time.Now()
			resp, err := c.Get("http://herd.test/private")
			raise(&slowest, int64(time.Since(start)))
			if refusal, ok := errors.AsType[*client.DisallowedError](err); !ok || refusal.Decision.Rule.Line != 2 {
				t.Errorf("got %v, %v, want a refusal by line 2", resp, err)
			}
		})
	}
	all.Wait()
	r.meter.stop()
	took := time.Duration(slowest.Load())
	v.control.Stop()
	excuse := v.excuse()
	t.Logf("%d callers, none later than %v; the scheduler can have had %v of it", size.herd, took, excuse)
	t.Log(&r.meter)
	if took > 700*time.Millisecond+excuse {
		t.Errorf("a caller waited %v, want 700ms at most, and what the scheduler takes (%v)", took, excuse)
	}
	if got := site.Counts().Requests; len(got) != 1 || got["/robots.txt"] != 1 {
		t.Errorf("the site saw %v, want one request for robots.txt", got)
	}
	r.end(t)
}

// shuffle puts the errands in an order that is the same in each run.
func shuffle(work []errand) {
	rand.New(rand.NewPCG(9309, 2022)).Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
}
