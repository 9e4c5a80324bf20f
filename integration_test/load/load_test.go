// Package load_test is what the library does under load: many origins and callers, few of them well-behaved.
// Its sizes are small, unless told otherwise: go test ./integration_test/load -load=full -timeout 20m -v
package load_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

var loadSize = flag.String("load", "small", "`size` of the load tests: small, or full (10,000 origins and 1,000 callers, without -race)")

// scale is how much load there is.
type scale struct {
	healthy, hostile int // sites
	callers          int // goroutines that ask
	fetches          int // of robots.txt at a time
	listeners        int
}

func loadScale(t *testing.T) scale {
	t.Helper()
	switch *loadSize {
	case "small": // each misbehaviour about once
		hostile := len(origins.Faults())
		return scale{healthy: hostile * 3 / 2, hostile: hostile, callers: 100, fetches: 64, listeners: 4}
	case "full":
		return scale{healthy: 6000, hostile: 4000, callers: 1000, fetches: 256, listeners: 8}
	}
	t.Fatalf("-load=%s: want small or full", *loadSize)
	return scale{}
}

// TestLoadHostileMix is a crawl in which four sites of ten misbehave, in all ways there
// are. Whatever they do, nothing is sent that robots.txt forbids or that is not known to
// be allowed, no healthy site suffers, and a caller in a hurry has an answer or the end of his context.
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

// shuffle puts the errands in an order that is the same in each run.
func shuffle(work []errand) {
	rand.New(rand.NewPCG(9309, 2022)).Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
}
