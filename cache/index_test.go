package cache

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
)

func testOrigin(t testing.TB, scheme string, i int) fetch.Origin {
	o, err := fetch.OriginOf(&url.URL{Scheme: scheme, Host: fmt.Sprintf("www%d.example", i)})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Whatever is added and removed in whatever order, the index has what a map has.
func TestIndexIsAMap(t *testing.T) {
	const origins = 300
	var x index
	x.init()
	want := map[fetch.Origin]*entry{}
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 50_000 {
		// Two schemes for one hash; few origins at times, many at others.
		o := testOrigin(t, [...]string{"http", "https"}[random.IntN(2)], random.IntN(1+step%origins))
		switch e := want[o]; {
		case e == nil && random.IntN(3) > 0:
			e = &entry{origin: o}
			want[o] = e
			x.add(e)
		case e != nil && random.IntN(3) == 0:
			want[o] = &entry{origin: o}
			x.slot(e).entry.Store(want[o])
			x.remove(e) // is not in any more
		case e != nil && random.IntN(3) > 0:
			delete(want, o)
			x.remove(e)
		}
		if x.lookup(o, new(Source)) != want[o] || x.live != len(want) {
			t.Fatalf("step %d: %p, want %p; %d entries, want %d", step, x.lookup(o, new(Source)), want[o], x.live, len(want))
		}
	}
	for i := range origins {
		for _, scheme := range []string{"http", "https"} {
			if o := testOrigin(t, scheme, i); x.lookup(o, new(Source)) != want[o] {
				t.Errorf("%v: %p, want %p", o, x.lookup(o, new(Source)), want[o])
			}
		}
	}
	if n := len(*x.slots.Load()); n > 4*2*origins || x.lookup(fetch.Origin{}, new(Source)) != nil {
		t.Errorf("%d slots for %d entries", n, x.live)
	}
}

// Entries that stay are found at any time, whatever happens to the others.
func TestIndexIsReadWhileItChanges(t *testing.T) {
	var x index
	x.init()
	var origins [200]fetch.Origin
	for i := range origins {
		origins[i] = testOrigin(t, "https", i)
		if i < 100 {
			x.add(&entry{origin: origins[i]})
		}
	}
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				for i := range 100 {
					if e := x.lookup(origins[i], new(Source)); e == nil || e.origin != origins[i] {
						t.Errorf("%v is not there", origins[i])
						return
					}
				}
			}
		})
	}
	for range 400 {
		for i := 100; i < 200; i++ {
			x.add(&entry{origin: origins[i]})
		}
		for i := 100; i < 200; i++ {
			x.remove(x.lookup(origins[i], new(Source)))
		}
	}
	stop.Store(true)
	readers.Wait()
}
