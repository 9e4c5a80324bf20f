package load_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
)

// The time-outs of the load tests. Machines that run a client and thousands of servers on
// few cores need some patience with honest ones.
const (
	robotsDial    = 3 * time.Second // also for TLS and a header
	robotsTimeout = 6 * time.Second // one attempt may have half of it
)

const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

// busy is how much longer than on a quiet machine the end of a rig may take.
const busy = time.Minute

// rig is an internet, a gate into it, and what the process held before there was either.
type rig struct {
	net    *origins.Net
	gate   *client.Transport
	robots gauge // connections that robots.txt is read over
	meter  meter
	before footprint
}

func newRig(t *testing.T, size scale, c *cache.Cache) *rig {
	t.Helper()
	// The first use of the network makes descriptors of the runtime's own.
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
	r := &rig{before: footprintNow()}
	var err error
	if r.net, err = origins.Start(size.listeners); err != nil {
		t.Fatal(err)
	}
	pages := r.net.Transport()
	pages.DialContext, pages.TLSHandshakeTimeout, pages.ResponseHeaderTimeout = r.net.DialContext, 0, 0
	pages.MaxIdleConns = 256
	robots := r.net.Transport()
	robots.TLSHandshakeTimeout, robots.ResponseHeaderTimeout = robotsDial, robotsDial
	robots.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, robotsDial)
		defer cancel()
		conn, err := r.net.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		r.robots.add(1)
		return &gaugedConn{Conn: conn, gauge: &r.robots}, nil
	}
	r.gate = &client.Transport{
		Base: pages, UserAgent: userAgent, Cache: c,
		Fetcher: &fetch.Fetcher{
			Transport: robots, UserAgent: userAgent,
			Timeout: robotsTimeout, Retries: 1, MaxFetches: size.fetches,
		},
	}
	return r
}

// end closes everything, and waits for the process to be what it was.
func (r *rig) end(t *testing.T) {
	t.Helper()
	if n, most := r.robots.most.Load(), int64(r.gate.Fetcher.MaxFetches); n > most {
		t.Errorf("%d connections for robots.txt were open at once, want %d at most", n, most)
	}
	if strays := r.net.Strays(); len(strays) > 0 {
		t.Errorf("dialled %q, which is nowhere", strays)
	}
	ctx, cancel := context.WithTimeout(context.Background(), busy)
	defer cancel()
	if err := r.gate.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	r.net.Close()
	now := footprintNow()
	for end := time.Now().Add(busy); now.exceeds(r.before) && time.Now().Before(end); now = footprintNow() {
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("goroutines %d, before %d; descriptors %d, before %d", now.goroutines, r.before.goroutines, now.descriptors, r.before.descriptors)
	if now.exceeds(r.before) {
		var stacks bytes.Buffer
		pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Errorf("something was left behind: %s", stacks.Bytes())
	}
}

// footprint is what a process holds beside memory.
type footprint struct{ goroutines, descriptors int }

func footprintNow() footprint {
	f := footprint{goroutines: runtime.NumGoroutine()}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil { // elsewhere than on Linux they are not counted
		f.descriptors = len(fds)
	}
	return f
}

func (f footprint) exceeds(other footprint) bool {
	return f.goroutines > other.goroutines || f.descriptors > other.descriptors
}

// gauge is a number that goes up and down, and the most it has been.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) add(n int64) { raise(&g.most, g.now.Add(n)) }

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); n > old && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// gaugedConn is a connection that its gauge counts until it is closed.
type gaugedConn struct {
	net.Conn
	gauge *gauge
	once  sync.Once
}

func (c *gaugedConn) Close() error {
	c.once.Do(func() { c.gauge.add(-1) })
	return c.Conn.Close()
}

// meter finds the most that the process held while it ran. The servers are part of it.
type meter struct {
	heap, goroutines, descriptors atomic.Int64
	rig                           int64 // heap before it started
	quit                          chan struct{}
	done                          sync.WaitGroup
}

func (m *meter) start() {
	runtime.GC()
	m.rig = heapNow()
	m.quit = make(chan struct{})
	m.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			raise(&m.heap, heapNow())
			if i%10 == 0 {
				f := footprintNow()
				raise(&m.goroutines, int64(f.goroutines))
				raise(&m.descriptors, int64(f.descriptors))
			}
			select {
			case <-tick.C:
			case <-m.quit:
				return
			}
		}
	})
}

func (m *meter) stop() {
	close(m.quit)
	m.done.Wait()
}

func (m *meter) String() string {
	const mib = 1 << 20
	return fmt.Sprintf("peak heap %.1f MiB (%.1f before the first request), %d goroutines, %d descriptors",
		float64(m.heap.Load())/mib, float64(m.rig)/mib, m.goroutines.Load(), m.descriptors.Load())
}

// heapNow is the memory of objects, dead ones that are not yet swept included.
func heapNow() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
