package integration_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// sites are the origins that a fleet visits while all sorts of things fail. They alone say what became of it.
type sites struct {
	*httptest.Server
	body time.Duration        // that a page takes from its first byte to its last
	late func() time.Duration // of the machine, which may hold a process between its turn and the write

	mu  sync.Mutex // guards log
	log map[string][]coming
}

// arrival is one request as its server saw it.
type arrival struct {
	path       string
	left       time.Time // the process, as that says; a connection may have to be made yet
	start, end time.Time // before the answer is written, and just before its last byte
}

// coming is a request that has come, and until when the site asked to be left alone.
type coming struct {
	arrival
	until time.Time
}

// delayAt is what an origin asks for. Some ask for less than the Pacer keeps before it has read that, some for more.
func delayAt(i int) time.Duration {
	switch i = i * 11 % 30; {
	case i == 0:
		return 100 * time.Millisecond
	case i < 3:
		return 200 * time.Millisecond
	case i < 10:
		return 500 * time.Millisecond
	case i < 20:
		return time.Second
	}
	return 2 * time.Second
}

func numberOf(host string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(host, "a"), ".example"))
	return n
}

func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	left, _ := strconv.ParseInt(r.Header.Get("Left"), 10, 64)
	v := coming{arrival: arrival{path: r.URL.Path, left: time.Unix(0, left), start: time.Now()}}
	i, rest := numberOf(r.Host), "page"
	s.mu.Lock()
	turn, until := len(s.log[r.Host]), time.Time{}
	for _, e := range s.log[r.Host] {
		until = later(until, e.until)
	}
	s.mu.Unlock()
	pause := 0
	switch {
	case v.path == "/robots.txt":
		rest = fmt.Sprintf("User-agent: *\nAllow: /\nCrawl-delay: %.3f\n", delayAt(i).Seconds())
	case i%10 == 3 && turn%7 == 6 || v.start.Before(until): // who does not heed it hears it again
		pause = max(1+rand.IntN(3), 1+int(until.Sub(v.start).Seconds()))
		w.Header().Set("Retry-After", fmt.Sprint(pause))
		w.WriteHeader(http.StatusTooManyRequests)
	case s.body > 0:
		io.WriteString(w, "half a ")
		http.NewResponseController(w).Flush()
		time.Sleep(s.body)
	}
	v.end = time.Now() // the client cannot be done with it yet
	if pause > 0 {
		v.until = v.end.Add(time.Duration(pause) * time.Second)
	}
	s.mu.Lock()
	s.log[r.Host] = append(s.log[r.Host], v)
	s.mu.Unlock()
	io.WriteString(w, rest)
}

// judged is what the sites say of a run.
type judged struct {
	early    map[string][]string // requests before their time, by host
	begged   int                 // of these, before the time of a Retry-After
	underway int                 // pages of one process at one origin at a time, at most
	robots   int                 // requests for robots.txt
	origins  int
	requests int
}

// judge does not blame a request for one before it that was long on its way: what is a delay apart is the starts.
func (s *sites) judge() (j judged) {
	slack, late := 20*time.Millisecond, s.late() // a process may be held between its turn and the write, too
	if !*full {
		slack += late // others use the machine
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j = judged{early: map[string][]string{}, origins: len(s.log)}
	for host, log := range s.log {
		slices.SortFunc(log, func(a, b coming) int { return a.start.Compare(b.start) })
		j.requests += len(log)
		var until time.Time
		for i, v := range log {
			robots := v.path == "/robots.txt"
			if robots {
				j.robots++
			}
			last, underway := time.Time{}, 1
			for _, e := range log[:i] {
				switch {
				case !robots && by(e) == by(v):
					last = later(last, e.end)
				default:
					last = later(last, e.left) // none waits for what is under way elsewhere, robots.txt for nothing
				}
				if !robots && by(e) == by(v) && e.end.After(v.start) {
					underway++
				}
			}
			j.underway = max(j.underway, underway)
			begged := v.start.Before(until.Add(-slack))
			if begged {
				j.begged++
			}
			if gap := v.start.Sub(last); begged || i > 0 && gap < delayAt(numberOf(host))-slack {
				j.early[host] = append(j.early[host], fmt.Sprintf("%s%s at %s, %v on its way, %v after another, asked to wait until %s",
					host, v.path, v.start.Format("05.000"), v.start.Sub(v.left), gap, until.Format("05.000")))
			}
			until = later(until, v.until)
		}
	}
	return j
}

// What is early is what comes too soon after another left its process, not after a connection that took long.
func TestWhatTheSitesCallEarly(t *testing.T) {
	begin := time.Now()
	at := func(path string, left, start, end int) coming {
		ms := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Millisecond) }
		return coming{arrival: arrival{path: path, left: ms(left), start: ms(start), end: ms(end)}}
	}
	for _, tt := range []struct {
		name          string
		before, after coming
		early         int
	}{
		{"a delay apart", at("/robots.txt", 0, 0, 1), at("/1/a", 1000, 1000, 1001), 0},
		{"a connection that took long", at("/robots.txt", 0, 90, 91), at("/1/a", 1000, 1000, 1001), 0},
		{"one that left late", at("/robots.txt", 90, 90, 91), at("/1/a", 1000, 1000, 1001), 1},
		{"one that left early", at("/robots.txt", 0, 90, 91), at("/1/a", 910, 910, 911), 1},
		{"a body of another process", at("/1/a", 0, 0, 500), at("/2/a", 1000, 1000, 1001), 0},
		{"its own body", at("/1/a", 0, 0, 500), at("/1/b", 1000, 1000, 1001), 1},
	} {
		host := siteURL(7).Host // asks for a second
		s := &sites{late: func() time.Duration { return 0 }, log: map[string][]coming{host: {tt.before, tt.after}}}
		if got := s.judge().early[host]; len(got) != tt.early {
			t.Errorf("%s: early are %q, want %d", tt.name, got, tt.early)
		}
	}
}

// by is the process that a page was for.
func by(v coming) string { return strings.Split(v.path, "/")[1] }

func (s *sites) met() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// rate returns what part of the possible requests came in a time to those of the origins that were met before it.
func (s *sites) rate(from, to time.Time, of func(host string) bool) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var came, possible float64
	for host, log := range s.log {
		if of != nil && !of(host) {
			continue
		}
		span, own, n, met := to.Sub(from), time.Duration(0), 0, false
		for _, v := range log {
			met = met || v.end.Before(from)
			if !v.start.Before(from) && v.start.Before(to) {
				n++
				own += v.end.Sub(v.start)
			}
			pause, end := later(from, v.end.Add(delayAt(numberOf(host)))), v.until
			if to.Before(end) {
				end = to
			}
			span -= max(0, end.Sub(pause))
		}
		if met {
			came += float64(n)
			possible += span.Seconds() / (delayAt(numberOf(host)) + own/time.Duration(max(1, n))).Seconds()
		}
	}
	return came / max(possible, 1)
}

// rate2s returns the best rate of all times of two seconds between two moments: a busy machine has bad moments.
func (s *sites) rate2s(from, to time.Time, of func(host string) bool) (best float64) {
	for ; to.Sub(from) >= 2*time.Second; from = from.Add(500 * time.Millisecond) {
		best = max(best, s.rate(from, from.Add(2*time.Second), of))
	}
	return best
}

// strand is the line of one process to Redis.
type strand struct {
	latency                  time.Duration
	hangs, refuses, swallows atomic.Bool

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

// lay returns the URL of the near end.
func (w *strand) lay(t *testing.T, s *redisServer) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); w.cut(1) })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			var far net.Conn
			if !w.refuses.Load() {
				far, err = net.Dial("tcp", s.client.Options().Addr)
			}
			if far == nil || err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			go carry(far, near, w.latency/2, w.hang)
			go carry(near, w.answers(far), w.latency/2, w.hang)
		}
	}()
	return "redis://" + l.Addr().String()
}

func (w *strand) hang() {
	for w.hangs.Load() {
		time.Sleep(20 * time.Millisecond)
	}
}

// answers reads those that the line does not swallow.
func (w *strand) answers(far net.Conn) net.Conn { return &greedy{far, w} }

type greedy struct {
	net.Conn
	wire *strand
}

func (g *greedy) Read(p []byte) (int, error) {
	for {
		n, err := g.Conn.Read(p)
		if err != nil || !g.wire.swallows.Load() {
			return n, err
		}
	}
}

// carry takes what comes from one connection to the other, so much later.
func carry(to, from net.Conn, latency time.Duration, hang func()) {
	type parcel struct {
		due  time.Time
		data []byte
	}
	way := make(chan parcel, 1000)
	go func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			to.Write(p.data)
		}
		to.Close()
	}()
	defer close(way)
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		hang()
		way <- parcel{time.Now().Add(latency), bytes.Clone(buf[:n])}
	}
}

// cut cuts a part of the connections.
func (w *strand) cut(part float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.conns {
		if c != nil && rand.Float64() < part {
			c.Close()
			w.conns[i] = nil
		}
	}
}

// trial is a fleet that something happens to.
type trial struct {
	*testing.T
	server  *redisServer // nil: sentinel or cluster
	url     string
	wires   []*strand // one for each process; nil: none
	sites   *sites
	origins int
	callers int // in each process
	skewed  func() (program string, err error)
	program string          // if empty, this one
	skew    []time.Duration // of the processes' clocks
	begin   time.Time
	fail    func()                 // of a sentinel or cluster
	others  func(host string) bool // the origins that what failed has nothing to do with
	all     []*exec.Cmd
	closed  chan string
}

const crew = 4

// start starts a process, or starts it again.
func (r *trial) start(i int) {
	r.Helper()
	to := r.url
	if r.wires != nil {
		to = r.wires[i].lay(r.T, r.server)
	}
	cmd := proc.Child(r.T, "crawler", "ROBOTSGATE_REDIS="+to, "ROBOTSGATE_SITE="+r.sites.Listener.Addr().String(),
		fmt.Sprint("ROBOTSGATE_CALLERS=", r.callers), fmt.Sprint("ROBOTSGATE_FIRST=", i*r.callers),
		fmt.Sprint("ROBOTSGATE_ORIGINS=", r.origins), fmt.Sprint("ROBOTSGATE_BEGIN=", r.begin.Add(r.skewOf(i)).UnixMilli()),
		fmt.Sprint("ROBOTSGATE_SKEW=", int(r.skewOf(i).Seconds())))
	if r.program != "" {
		cmd.Path, cmd.Args[0] = r.program, r.program
	}
	out := proc.Lines(r.T, cmd)
	go func() {
		for out.Scan() {
			r.closed <- out.Text()
		}
	}()
	if i < len(r.all) {
		r.all[i] = cmd
	} else {
		r.all = append(r.all, cmd)
	}
}

func (r *trial) skewOf(i int) time.Duration {
	if r.skew == nil {
		return 0
	}
	return r.skew[i]
}

func (r *trial) signal(s os.Signal, which ...int) {
	for _, i := range which {
		r.all[i].Process.Signal(s)
	}
}

// heal waits for a time and then has what failed work again.
func heal(d time.Duration, again func()) {
	time.Sleep(d)
	again()
}

func (r *trial) refuse(sicken, heal [][]any) {
	admin := r.server.client.Conn()
	defer admin.Close()
	do := func(all [][]any) {
		for _, args := range all {
			if err := admin.Do(context.Background(), args...).Err(); err != nil {
				r.Error(err)
			}
		}
	}
	do(sicken)
	time.Sleep(6 * time.Second)
	do(heal)
}

func (s *redisServer) restart(t *testing.T) {
	t.Helper()
	s.Kill()
	s.Server = proc.Serve(t, exec.Command(s.Cmd.Args[0], s.Cmd.Args[1:]...), s.client.Options().Addr)
}

// often does something five times a second until the test ends.
func (s *redisServer) often(t *testing.T, args ...any) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			s.client.Do(ctx, args...)
			time.Sleep(200 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
}

// withWires gives each process a line of its own.
func withWires(latency func(process int) time.Duration) func(r *trial) {
	return func(r *trial) {
		for i := range crew {
			r.wires = append(r.wires, &strand{latency: latency(i)})
		}
	}
}

func straight(int) time.Duration { return 0 }

func far(d time.Duration) func(r *trial) {
	return withWires(func(int) time.Duration { return d })
}

func clocks(skew ...time.Duration) func(r *trial) {
	return func(r *trial) {
		program, err := r.skewed()
		if err != nil {
			r.Fatal(err)
		}
		r.skew, r.program = skew, program
	}
}

// fleetFaults is what may happen to a fleet: the table "What holds" that its reviewers made, row by row.
var fleetFaults = []struct {
	name  string
	tier  func(testing.TB) // that tries it without -full too; nil: none
	set   func(r *trial)   // before the processes start
	fault func(r *trial)   // in the middle; it returns when that is over
	early int              // at each origin: where Redis loses its memory, one start, and one that was reserved just then; -1: one for each eviction
	most  float64          // fetches of robots.txt for each origin
}{
	{name: "calm"},
	{name: "kill -9 and restart of one process a second", tier: tier.Gate, fault: func(r *trial) {
		for i := range 9 {
			r.all[i%crew].Process.Kill()
			r.all[i%crew].Wait()
			r.start(i % crew)
			time.Sleep(time.Second)
		}
	}},
	// One that is stopped between its turn and the write comes late, and then another may follow too soon: early.
	{name: "SIGSTOP of two for 7 s", tier: tier.Gate, early: 1, fault: func(r *trial) {
		r.signal(syscall.SIGSTOP, 0, 1)
		heal(7*time.Second, func() { r.signal(syscall.SIGCONT, 0, 1) })
	}},
	{name: "random stops", fault: func(r *trial) {
		for i := range 2 {
			r.signal(syscall.SIGSTOP, i)
			heal(4500*time.Millisecond+rand.N(1500*time.Millisecond), func() { r.signal(syscall.SIGCONT, i) })
		}
	}},
	{name: "Redis restarted empty", tier: tier.Gate, early: 2, fault: func(r *trial) { r.server.restart(r.T) }},
	{name: "FLUSHALL", tier: tier.Nightly, early: 2, fault: func(r *trial) { r.server.do(r.T, "FLUSHALL") }},
	{name: "FLUSHALL with bodies of 3 s in flight", tier: tier.Nightly, early: 2, set: func(r *trial) { r.sites.body = 3 * time.Second },
		fault: func(r *trial) { r.server.do(r.T, "FLUSHALL") }},
	{name: "Redis away for 6 s, back empty", tier: tier.Nightly, fault: func(r *trial) {
		r.server.Kill()
		heal(6*time.Second, func() { r.server.restart(r.T) })
	}},
	{name: "SIGSTOP of Redis for 7 s", tier: tier.Nightly, fault: func(r *trial) {
		r.server.Cmd.Process.Signal(syscall.SIGSTOP)
		heal(7*time.Second, func() { r.server.Cmd.Process.Signal(syscall.SIGCONT) })
	}},
	{name: "the line of one hangs for 8 s", tier: tier.Nightly, set: withWires(straight), fault: func(r *trial) {
		r.wires[0].hangs.Store(true)
		heal(8*time.Second, func() { r.wires[0].hangs.Store(false) })
	}},
	{name: "the line of one refuses", set: withWires(straight), fault: func(r *trial) {
		r.wires[0].refuses.Store(true)
		r.wires[0].cut(1)
		heal(8*time.Second, func() { r.wires[0].refuses.Store(false) })
	}},
	{name: "the line of one swallows answers", tier: tier.Nightly, set: withWires(straight), fault: func(r *trial) {
		r.wires[0].swallows.Store(true)
		heal(8*time.Second, func() { r.wires[0].swallows.Store(false) })
	}},
	{name: "the line of one is cut", set: withWires(straight), fault: func(r *trial) { r.wires[0].cut(1) }},
	{name: "connections cut at random", tier: tier.Nightly, set: withWires(straight), fault: func(r *trial) {
		for range 40 {
			for _, w := range r.wires {
				w.cut(0.2)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}},
	{name: "each 0 to 300 ms away", set: withWires(func(i int) time.Duration { return time.Duration(i) * 100 * time.Millisecond })},
	{name: "one 300 ms away", tier: tier.Nightly, set: withWires(func(i int) time.Duration { return time.Duration(i/3) * 300 * time.Millisecond })},
	{name: "Redis full", fault: func(r *trial) { r.refuse(redisRefusals[2].sicken, redisRefusals[2].heal) }},
	{name: "Redis READONLY", fault: func(r *trial) { r.refuse(redisRefusals[1].sicken, redisRefusals[1].heal) }},
	{name: "an ACL without scripts", fault: func(r *trial) { r.refuse(redisRefusals[3].sicken, redisRefusals[3].heal) }},
	{name: "SCRIPT FLUSH five times a second", set: func(r *trial) { r.server.often(r.T, "SCRIPT", "FLUSH") }},
	{name: "Redis 5 ms away", set: far(5 * time.Millisecond)},
	{name: "Redis 20 ms away", set: far(20 * time.Millisecond)},
	{name: "Redis 30 ms away", set: far(30 * time.Millisecond)},
	{name: "Redis 50 ms away", tier: tier.Nightly, set: far(50 * time.Millisecond)},
	{name: "Redis 300 ms away", most: 1.3, set: far(300 * time.Millisecond)}, // 64 connections are full: locks come late
	{name: "clocks 2 s apart to each side", set: clocks(0, 2*time.Second, -2*time.Second, 0)},
	// A process that takes the file for too old reads it before it knows the delay: early.
	{name: "clocks an hour apart to each side", most: 3, early: 1, set: clocks(0, time.Hour, -time.Hour, 0)},
	{name: "a cluster of three, some of whose slots move", tier: tier.Nightly, set: func(r *trial) {
		c := startCluster(r.T)
		r.url, r.fail = c.url, func() {
			for i := range 9 {
				c.move(r.T, "{"+siteURL(i).Scheme+"://"+siteURL(i).Host+"}")
			}
		}
	}, fault: func(r *trial) { r.fail() }},
	{name: "Sentinel failover", tier: tier.Nightly, early: 2, set: func(r *trial) {
		s := startSentinel(r.T)
		r.url, r.fail = s.url, func() { s.failover(r.T) }
	}, fault: func(r *trial) { r.fail() }},
	{name: "a master of a cluster killed", tier: tier.Nightly, set: losesMaster(syscall.SIGKILL), fault: func(r *trial) { r.fail() }},
	{name: "a master of a cluster stopped", tier: tier.Nightly, set: losesMaster(syscall.SIGSTOP), fault: func(r *trial) { r.fail() }},
	{name: "allkeys-lru at 16 MB, filled all the time", early: -1, most: 9, set: func(r *trial) {
		r.server.do(r.T, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
		r.server.do(r.T, "CONFIG", "SET", "maxmemory", "16mb")
		end := make(chan struct{})
		var done sync.WaitGroup
		r.Cleanup(func() { close(end); done.Wait() })
		done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				case <-time.After(20 * time.Millisecond):
					r.server.client.Set(context.Background(), fmt.Sprint("filler", i%1000), strings.Repeat("x", 50_000), 0)
				}
			}
		})
	}},
}

// losesMaster stops or kills a master of a cluster in the middle, for good.
func losesMaster(how syscall.Signal) func(r *trial) {
	return func(r *trial) {
		c := startCluster(r.T)
		for _, n := range c.nodes {
			n.do(r.T, "CONFIG", "SET", "cluster-require-full-coverage", "no")
		}
		has := map[string]bool{}
		for i := range r.origins {
			u := siteURL(i)
			slot, err := c.nodes[1].client.ClusterKeySlot(r.Context(), "{"+u.Scheme+"://"+u.Host+"}").Result()
			if err != nil {
				r.Fatal(err)
			}
			has[u.Host] = slot*3/16384 != 0
		}
		r.url, r.others = c.url, func(host string) bool { return has[host] }
		r.fail = func() {
			c.nodes[0].Cmd.Process.Signal(how)
			time.Sleep(6 * time.Second)
		}
	}
}

// middle is how long after the begin something happens.
func middle() time.Duration {
	if *full {
		return 9 * time.Second
	}
	return 4 * time.Second
}

// Whatever fails, no site sees two visitors where it asked for one: four processes that are set up as README shows,
// 27 seconds each with -full, 300 origins that ask for what is above and below the delay that a Pacer begins with.
func TestFleetWhateverFails(t *testing.T) {
	tier.Gate(t)
	aside(t)
	dir := t.TempDir()
	skewed := sync.OnceValues(func() (string, error) { return skewedProgram(dir) })
	for _, tt := range fleetFaults {
		t.Run(tt.name, func(t *testing.T) {
			aside(t)
			switch {
			case *full:
			case tt.tier == nil:
				t.Skip("with -full")
			default:
				tt.tier(t)
			}
			r := &trial{T: t, sites: &sites{log: map[string][]coming{}, late: sync.OnceValue(proc.WatchMachine())}, origins: 9, callers: 9, skewed: skewed, closed: make(chan string, 99)}
			if *full {
				r.origins, r.callers = 300, 300
			}
			r.sites.Server = httptest.NewServer(r.sites)
			t.Cleanup(r.sites.Close)
			r.server = startRedis(t)
			r.url = r.server.url
			if tt.set != nil {
				tt.set(r)
			}
			r.begin = time.Now().Add(2 * time.Second)
			for i := range crew {
				r.start(i)
			}
			mid := r.begin.Add(middle())
			time.Sleep(time.Until(mid))
			if tt.fault != nil {
				tt.fault(r)
			}
			healed := time.Now()
			time.Sleep(time.Until(later(r.begin.Add(3*middle()), healed.Add(4*time.Second))))
			stuck := func() (all []int) { // processes that no site has seen since
				r.sites.mu.Lock()
				defer r.sites.mu.Unlock()
				seen := map[string]bool{}
				for _, log := range r.sites.log {
					for _, v := range log {
						if pid := strings.Split(v.path, "/")[1]; v.start.After(healed) {
							seen[pid] = true
						}
					}
				}
				for _, cmd := range r.all {
					if !seen[fmt.Sprint(cmd.Process.Pid)] {
						all = append(all, cmd.Process.Pid)
					}
				}
				return all
			}
			slow := func() bool { // those that what failed has nothing to do with
				return r.others != nil && r.sites.rate2s(mid, time.Now(), r.others) < 0.9*r.sites.rate(r.begin.Add(2*time.Second), mid, r.others)
			}
			lacks := func() bool { return len(stuck()) > 0 || r.sites.met() < r.origins || slow() }
			for late := time.Now(); lacks() && time.Since(late) < busy; {
				time.Sleep(200 * time.Millisecond)
			}
			end, still, fell := time.Now(), stuck(), slow()
			r.signal(syscall.SIGTERM, 0, 1, 2, 3)
			longest := time.Duration(0)
			for range crew {
				select {
				case line := <-r.closed:
					text, problem, _ := strings.Cut(line, " ")
					took, err := time.ParseDuration(text)
					if longest = max(longest, took); err != nil || problem != "" {
						t.Log("a process says", line)
					}
				case <-time.After(busy):
					t.Error("a process does not end")
				}
			}
			for _, cmd := range r.all {
				cmd.Wait()
			}
			j := r.sites.judge()
			early, worst := 0, ""
			evicted := 0
			if tt.early < 0 {
				evicted = int(r.server.number(t, "stats", "evicted_keys"))
			}
			for host, all := range j.early {
				early += len(all)
				if n := len(all); n > tt.early && tt.early >= 0 {
					t.Errorf("%d requests too early at %s: %s", n, host, strings.Join(all[:min(n, 4)], "; "))
				}
				worst = cmp.Or(worst, all[0])
			}
			t.Logf("%d early at %d origins, %d of them in Retry-After, %d in flight, robots.txt %d times for %d origins, %d requests, "+
				"%.1f %% of the possible (before %.1f, meanwhile %.1f, after %.1f), ended in %v", early, len(j.early), j.begged, j.underway, j.robots,
				j.origins, j.requests, 100*r.sites.rate(r.begin.Add(3*time.Second), end, nil),
				100*r.sites.rate(r.begin.Add(3*time.Second), mid, nil), 100*r.sites.rate(mid, healed, nil),
				100*r.sites.rate(healed.Add(time.Second), end, nil), longest.Round(time.Millisecond))
			if tt.early < 0 && early > evicted {
				t.Errorf("%d requests too early, %d keys evicted; such as %s", early, evicted, worst)
			}
			most := cmp.Or(tt.most, 1.05) * float64(r.origins)
			if !*full {
				most += 2 // a fetch that was killed, and a Redis that a busy machine keeps from answering in time
			}
			if float64(j.robots) > most {
				t.Errorf("%d fetches of robots.txt for %d origins, want %.0f at most", j.robots, j.origins, most)
			}
			if j.underway > 1 {
				t.Errorf("%d pages of one process in flight at one origin", j.underway)
			}
			if len(still) > 0 || j.origins < r.origins {
				t.Errorf("%d of %d origins visited; processes %v sent nothing when all worked again", j.origins, r.origins, still)
			}
			if r.others != nil {
				t.Logf("origins of the other masters: %.1f %% of the possible before, then %.1f",
					100*r.sites.rate(r.begin.Add(2*time.Second), mid, r.others), 100*r.sites.rate(mid, end, r.others))
			}
			if fell {
				t.Error("origins of the other masters never had 90 % of their rate again")
			}
		})
	}
}

// childCrawls is set up as README shows. It asks for pages of all origins as fast as it may until it is told to end;
// half of its callers wait first. It prints how long the end took, and what went wrong with that.
func childCrawls(redisURL, site string) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	shared := &cache.Cache{Store: store}
	c := fleetClient(&client.Pacer{Turns: &redisturns.Store{Client: store.Client}}, site)
	gate := c.Transport.(*client.Transport)
	gate.Cache = shared
	skew := time.Duration(proc.Number("ROBOTSGATE_SKEW")) * time.Second
	gate.Sign = func(req *http.Request) error {
		req.Header.Set("Left", fmt.Sprint(time.Now().Add(-skew).UnixNano()))
		return nil
	}
	time.Sleep(time.Until(time.UnixMilli(int64(proc.Number("ROBOTSGATE_BEGIN")))))
	first, origins := proc.Number("ROBOTSGATE_FIRST"), proc.Number("ROBOTSGATE_ORIGINS")
	var callers sync.WaitGroup
	for i := range proc.Number("ROBOTSGATE_CALLERS") {
		callers.Go(func() {
			u := siteURL((first + i) % origins)
			u.Path = fmt.Sprint("/", os.Getpid(), "/", i)
			for ctx.Err() == nil {
				if err := once(ctx, c, u, i%2 == 1); err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	callers.Wait()
	begin := time.Now()
	ending, cancel := context.WithTimeout(context.Background(), busy)
	defer cancel()
	err = errors.Join(gate.Shutdown(ending), shared.Shutdown(ending))
	fmt.Print(time.Since(begin), " ")
	if err != nil {
		fmt.Printf("%q", err)
	}
	fmt.Println()
}

// fleetClient is a client for which all sites are at one address.
func fleetClient(p *client.Pacer, site string) *http.Client {
	return &http.Client{Transport: &client.Transport{
		UserAgent: userAgent, Pacer: p,
		Base: &http.Transport{MaxIdleConnsPerHost: 100, DialContext: dialTo(site)},
	}}
}

// once fetches a page, and waits for its turn first or in doing so.
func once(ctx context.Context, c *http.Client, u *url.URL, wait bool) error {
	if gate := c.Transport.(*client.Transport); wait {
		turn, err := gate.Turn(ctx, u)
		if err != nil {
			return err
		}
		defer turn.End()
		ctx = turn.Context(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// skewedProgram is this test's program with another time.Now: it adds ROBOTSGATE_SKEW seconds, and leaves
// the monotonic clock alone. No system has clocks of that kind for one of its processes.
func skewedProgram(dir string) (program string, err error) {
	where, err := exec.Command("go", "list", "-f", "{{.Dir}}", "time").Output()
	if err != nil {
		return "", err
	}
	name := filepath.Join(strings.TrimSpace(string(where)), "time.go")
	source, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	const line = "sec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(source), "func Now() Time {\n\t"+line, "func Now() Time {\n\t"+line+"\tsec += skew\n", 1) + `
var skew = func() (n int64) {
	text, _ := syscall.Getenv("ROBOTSGATE_SKEW")
	sign := int64(1)
	for _, c := range []byte(text) {
		if c == '-' {
			sign = -1
		} else {
			n = 10*n + int64(c-'0')
		}
	}
	return sign * n
}()
`
	changed = strings.Replace(changed, "import (", "import (\n\t\"syscall\"", 1)
	if !strings.Contains(changed, "sec += skew") {
		return "", errors.New("this release of Go has another time.Now")
	}
	file, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay")
	table, _ := json.Marshal(map[string]any{"Replace": map[string]string{name: file}})
	if err := errors.Join(os.WriteFile(file, []byte(changed), 0o600), os.WriteFile(overlay, table, 0o600)); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "program")
	if said, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	return program, nil
}
