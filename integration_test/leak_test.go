package integration_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
)

// TestNothingIsLeftOf5000Origins reads the robots.txt of 5,000 sites with -full, else of 1,000,
// one in ten of which misbehaves, and then counts goroutines and descriptors.
func TestNothingIsLeftOf5000Origins(t *testing.T) {
	sites := 1000
	if *full {
		sites = 5000
	}
	goroutines, descriptors := runtime.NumGoroutine(), openFiles(t)
	n, err := origins.Start(4)
	if err != nil {
		t.Fatal(err)
	}
	faults := origins.Faults()
	f := fetch.Fetcher{Transport: n.Transport(), Timeout: 6 * time.Second, Retries: -1}
	var mu sync.Mutex
	peak, healthy, unreachable := 0, 0, 0
	slots := make(chan struct{}, 128) // with all at once, a busy machine makes healthy sites late
	var all sync.WaitGroup
	for i := range sites {
		site := origins.Answer(200, origins.File)
		if i%10 == 0 {
			site = faults[i/10%len(faults)].Site
		}
		name := fmt.Sprintf("o%d.test", i)
		n.Add(site(name)...)
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			o, err := fetch.OriginOf(&url.URL{Scheme: "http", Host: name})
			if err != nil {
				t.Error(err)
				return
			}
			r, err := f.Fetch(context.Background(), o, nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if i%10 != 0 {
				healthy++
				if r.Err != nil {
					unreachable++
				}
			}
			if i%500 == 0 {
				peak = max(peak, openFiles(t))
			}
		})
	}
	all.Wait()
	n.Close()
	// A healthy site that is late on a busy machine is no leak, but if most were, the test would
	// not do what it says.
	if healthy != sites*9/10 || unreachable > sites/2 {
		t.Errorf("of %d healthy sites, %d are unreachable", healthy, unreachable)
	}
	settled := func() bool { return runtime.NumGoroutine() <= goroutines && openFiles(t) <= descriptors }
	for end := time.Now().Add(busy); !settled() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("goroutines %d before, %d after; descriptors %d before, %d seen, %d after",
		goroutines, runtime.NumGoroutine(), descriptors, peak, openFiles(t))
	if !settled() {
		stacks := make([]byte, 1<<20)
		t.Errorf("something is left:\n%.4000s", stacks[:runtime.Stack(stacks, true)])
	}
}

// openFiles counts the descriptors of this process.
func openFiles(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("this system does not list the descriptors of a process: %v", err)
	}
	return len(files)
}
