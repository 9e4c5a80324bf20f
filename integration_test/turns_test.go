package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
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
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/redisinfo"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// witness is the site of all origins of a fleet: it knows who came when.
type witness struct {
	*httptest.Server
	delay time.Duration
	late  func() time.Duration // of the machine, which may hold a process between its turn and the write

	mu  sync.Mutex // guards log
	log map[string][]arrival
}

func newWitness(t *testing.T, delay time.Duration) *witness {
	w := &witness{delay: delay, late: sync.OnceValue(proc.WatchMachine()), log: map[string][]arrival{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	v := arrival{path: r.URL.Path, start: time.Now()}
	body := "page"
	if r.URL.Path == "/robots.txt" {
		body = fmt.Sprintf("User-agent: *\nAllow: /\nCrawl-delay: %.3f\n", w.delay.Seconds())
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
	slack := 5*time.Millisecond + w.late()
	w.mu.Lock()
	defer w.mu.Unlock()
	least = time.Hour
	var fetched, possible float64
	for host, log := range w.log {
		slices.SortFunc(log, func(a, b arrival) int { return a.start.Compare(b.start) })
		var own time.Duration
		for i := 1; i < len(log); i++ {
			gap := log[i].start.Sub(log[i-1].end)
			if least = min(least, gap); gap < w.delay-slack {
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

// briefly returns the origins whose last request did not come so long after their first.
func (w *witness) briefly(apart time.Duration) (hosts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for host, log := range w.log {
		if log[len(log)-1].start.Sub(log[0].start) < apart {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// fewest is how many requests came for that of so many origins that had fewest.
func (w *witness) fewest(origins int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.log) < origins {
		return 0
	}
	least := math.MaxInt
	for _, log := range w.log {
		least = min(least, len(log))
	}
	return least
}

// fleet is how many processes ask for what.
type fleet struct {
	processes, callers, origins int
	time                        time.Duration
	env                         []string
}

// busy is how much longer than on a quiet machine a fleet may take for what it has to show. A fleet that
// shows it takes none of that.
const busy = time.Minute

// until waits for what has to be seen, on a busy machine longer.
func until(end time.Time, seen func() bool) {
	for time.Sleep(time.Until(end)); !*sizes.Full && !seen() && time.Since(end) < busy; {
		time.Sleep(50 * time.Millisecond)
	}
}

// start starts the processes, each of which waits for the others. They end when their time is over and wait has
// seen what it is to see; it waits for them.
func (f fleet) start(t *testing.T, redisURL string, w *witness) (all []*exec.Cmd, wait func(seen func() bool)) {
	begin := time.Now().Add(time.Second)
	in, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); end.Close() })
	for i := range f.processes {
		cmd := proc.Child(t, "pacer", append([]string{
			"ROBOTSGATE_REDIS=" + redisURL, "ROBOTSGATE_SITE=" + w.Listener.Addr().String(),
			fmt.Sprint("ROBOTSGATE_CALLERS=", f.callers), fmt.Sprint("ROBOTSGATE_FIRST=", i*f.callers),
			fmt.Sprint("ROBOTSGATE_ORIGINS=", f.origins),
			fmt.Sprint("ROBOTSGATE_BEGIN=", begin.UnixMilli()),
		}, f.env...)...)
		cmd.Stdin = in
		all = append(all, cmd)
		go logAll(t, proc.Lines(t, cmd))
		t.Cleanup(func() { cmd.Process.Kill() })
	}
	return all, func(seen func() bool) {
		until(begin.Add(f.time), seen)
		end.Close()
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil && err.Error() != "signal: killed" {
				t.Error(err)
			}
		}
	}
}

func logAll(t *testing.T, out *bufio.Scanner) {
	for out.Scan() {
		t.Log(out.Text())
	}
}

// childPaces asks for pages of all origins as fast as it may.
func childPaces(redisURL, site string) {
	values, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	store := &redisturns.Store{Client: values.Client, Prefix: os.Getenv("ROBOTSGATE_PREFIX")}
	pacer := &client.Pacer{Turns: store, Delay: 40 * time.Millisecond} // less than the sites ask for
	slog.SetDefault(slog.New(slog.DiscardHandler))
	httpClient := fleetClient(pacer, site)
	transport := httpClient.Transport.(*client.Transport)
	transport.Cache = &cache.Cache{Store: values} // as README has it
	begin := time.UnixMilli(int64(proc.Number("ROBOTSGATE_BEGIN")))
	time.Sleep(time.Until(begin))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin) // until the test has seen enough, or is gone
		cancel()
	}()
	first, origins := proc.Number("ROBOTSGATE_FIRST"), proc.Number("ROBOTSGATE_ORIGINS")
	var callers sync.WaitGroup
	for i := range proc.Number("ROBOTSGATE_CALLERS") {
		callers.Go(func() {
			u := siteURL((first + i) % origins)
			u.Path = fmt.Sprint("/", os.Getpid(), "/", i)
			keepAsking(ctx, httpClient, u)
		})
	}
	callers.Wait()
}

// fleetClient is a client for which all sites are at one address.
func fleetClient(p *client.Pacer, site string) *http.Client {
	return &http.Client{Transport: &client.Transport{
		UserAgent: userAgent, Pacer: p,
		Base: &http.Transport{MaxIdleConnsPerHost: 100, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", site)
		}},
	}}
}

func keepAsking(ctx context.Context, c *http.Client, u *url.URL) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
		if err != nil {
			return
		}
		if res, err := c.Do(req); err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
}

// Sites as witnesses: however many processes ask, each origin keeps its delay, and little of
// it is lost.
func TestFleetKeepsOnePace(t *testing.T) {
	tier.Nightly(t)
	aside(t)
	s := startRedis(t)
	w := newWitness(t, 100*time.Millisecond)
	f := fleet{4, 16, 40, 4 * time.Second, nil}
	if *sizes.Full {
		f = fleet{4, 64, 200, 15 * time.Second, nil}
	}
	before := s.commands(t)
	_, wait := f.start(t, s.url, w)
	wait(func() bool { return true })
	early, least, part := w.early()
	pages := 0
	for _, log := range w.log {
		pages += len(log)
	}
	t.Logf("%d requests at %d origins, least gap %v, %.1f %% of the possible, %.2f commands a request",
		pages, len(w.log), least, 100*part, (s.commands(t)-before)/float64(pages))
	if len(early) > 0 {
		t.Errorf("%d requests came too early, such as %v", len(early), early[:min(5, len(early))])
	}
	if *sizes.Full && part < 0.9 { // of a machine that has nothing else to do
		t.Errorf("%.3f of the possible pages, want 0.9", part)
	}
}

// Who comes when robots.txt has been read keeps the delay that it asks for, also if its reader knew of a shorter one, and
// is told so.
func TestFleetKeepsTheDelayToRobots(t *testing.T) {
	tier.Gate(t)
	t.Parallel()
	s := startRedis(t)
	w := newWitness(t, time.Second)
	store := openRedis(t, s.url)
	crawler := func() *client.Transport { // a process of its own
		c := fleetClient(&client.Pacer{Turns: openTurns(t, s.url, ""), Delay: 100 * time.Millisecond}, w.Listener.Addr().String())
		gate := c.Transport.(*client.Transport)
		gate.Cache = &cache.Cache{Store: store}
		return gate
	}
	var origins sync.WaitGroup
	for i := range 4 {
		reader, visitor := crawler(), crawler()
		origins.Go(func() {
			u, begin := siteURL(i), time.Now() // robots.txt starts after that
			if a, err := reader.Decide(t.Context(), u); err != nil || !a.Allowed {
				t.Error(a, err)
			}
			time.Sleep(time.Duration(i+1) * 200 * time.Millisecond) // longer than the delay that was known, shorter than the site's
			if a, err := visitor.Decide(t.Context(), u); err != nil || !a.Allowed {
				t.Error(a, err)
			}
			turn, err := visitor.Try(t.Context(), u)
			if late, ok := errors.AsType[*client.LateError](err); ok { // or the time has come
				if sooner := begin.Add(w.delay).Sub(late.At); sooner > 5*time.Millisecond {
					t.Errorf("Try says a time that is %v before that of the site", sooner)
				}
			} else if err == nil {
				turn.End()
			}
			if res, err := (&http.Client{Transport: visitor}).Get(u.String()); err != nil {
				t.Error(err)
			} else {
				res.Body.Close()
			}
		})
	}
	origins.Wait()
	early, least, _ := w.early()
	t.Logf("least gap %v", least)
	if len(early) > 0 || w.fewest(4) < 2 {
		t.Errorf("%d of 2 requests at one origin, too early: %v", w.fewest(4), early)
	}
}

// commands is how many it has processed.
func (s *redisServer) commands(t *testing.T) float64 {
	t.Helper()
	return redisinfo.Number(t, s.client, "stats", "total_commands_processed")
}

// A process that dies costs a start, and a Redis that starts anew gives each origin one request too early. So does a
// process that is stopped between its last look and the write: no look comes after that.
func TestFleetSurvives(t *testing.T) {
	tier.Gate(t)
	aside(t)
	for _, tt := range []struct {
		name   string
		midway func(t *testing.T, s *redisServer, all []*exec.Cmd)
		early  int // at each origin
		stops  int // how many processes were stopped, one of which has a part in each of those; zero: any
	}{
		{"kill -9", func(t *testing.T, _ *redisServer, all []*exec.Cmd) { all[1].Process.Kill() }, 0, 0},
		{"a restart of Redis, without its memory", func(t *testing.T, s *redisServer, _ []*exec.Cmd) { s.restart(t) }, 1, 0},
		{"SIGSTOP", func(t *testing.T, _ *redisServer, all []*exec.Cmd) {
			for _, cmd := range all[:2] {
				cmd.Process.Signal(syscall.SIGSTOP)
			}
			time.Sleep(5500 * time.Millisecond)
			for _, cmd := range all[:2] {
				cmd.Process.Signal(syscall.SIGCONT)
			}
		}, 1, 2},
		{"kill -9, then a restart of Redis", func(t *testing.T, s *redisServer, all []*exec.Cmd) {
			all[1].Process.Kill()
			time.Sleep(time.Second)
			s.restart(t)
		}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			aside(t)
			if strings.Contains(tt.name, ", then") && !*sizes.Full {
				t.Skip("with -full")
			}
			s := startRedis(t)
			w := newWitness(t, 100*time.Millisecond)
			f := fleet{4, 8, 16, 10 * time.Second, nil}
			if *sizes.Full {
				f = fleet{4, 64, 200, 10 * time.Second, nil}
			}
			all, wait := f.start(t, s.url, w)
			time.Sleep(3 * time.Second)
			tt.midway(t, s, all)
			wait(func() bool { return len(w.briefly(8*time.Second)) == 0 })
			early, least, part := w.early()
			t.Logf("%d early, least gap %v, %.1f %% of the possible", len(early), least, 100*part)
			at := map[string]int{}
			for _, text := range early {
				host, _, _ := strings.Cut(text, "/")
				ofStopped := tt.stops == 0 || slices.ContainsFunc(all[:tt.stops], func(cmd *exec.Cmd) bool {
					return strings.Contains(text, fmt.Sprintf("/%d/", cmd.Process.Pid))
				})
				if at[host]++; at[host] > tt.early || !ofStopped {
					t.Errorf("%d requests too early: %s", at[host], text)
				}
			}
			killed := !all[1].ProcessState.Success()
			for _, host := range w.briefly(8 * time.Second) {
				if !killed || !f.asksAlone(1, host) {
					t.Errorf("%s: no request 8 s after the first", host)
				}
			}
		})
	}
}

// asksAlone reports whether no other process asks an origin for pages.
func (f fleet) asksAlone(process int, host string) bool {
	for p := range f.processes {
		for i := range f.callers {
			if p != process && siteURL((p*f.callers+i)%f.origins).Host == host {
				return false
			}
		}
	}
	return true
}

func (s *redisServer) restart(t *testing.T) {
	t.Helper()
	s.Kill()
	s.Server = proc.Serve(t, exec.Command(s.Cmd.Args[0], s.Cmd.Args[1:]...), s.client.Options().Addr)
}

// redisRefusals are ways in which a Redis takes no turns.
var redisRefusals = []struct {
	name         string
	sicken, heal [][]any
	says         string
}{
	{"wrong password", [][]any{{"CONFIG", "SET", "requirepass", "secret"}}, [][]any{{"CONFIG", "SET", "requirepass", ""}}, "NOAUTH"},
	{"a replica", [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, [][]any{{"REPLICAOF", "NO", "ONE"}}, "READONLY"},
	{"maxmemory with noeviction", [][]any{{"CONFIG", "SET", "maxmemory", "1"}}, [][]any{{"CONFIG", "SET", "maxmemory", "0"}}, "OOM"},
	{"an ACL without scripts", [][]any{{"ACL", "SETUSER", "default", "-evalsha", "-eval"}},
		[][]any{{"ACL", "SETUSER", "default", "+evalsha", "+eval"}}, "NOPERM"},
	{"accepting and never answering", [][]any{{"CLIENT", "PAUSE", "4000", "ALL"}}, nil, "deadline"},
}

// While Redis refuses, requests wait no longer than their contexts, and then say why.
func TestFleetWaitsWhileRedisRefuses(t *testing.T) {
	tier.Gate(t)
	aside(t)
	for _, tt := range redisRefusals {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			admin := s.client.Conn()
			defer admin.Close()
			admin.Ping(t.Context()) // has its connection before anything is refused
			gate := pacing(&client.Pacer{Turns: openTurns(t, s.url, ""), Delay: 200 * time.Millisecond})
			for _, args := range tt.sicken {
				if err := admin.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			waitsInVain(t, gate, tt.says)
			for _, args := range tt.heal {
				if err := admin.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			turnComes(t, gate)
		})
	}
}

// pacing is a Transport for a site that allows everything.
func pacing(p *client.Pacer) *client.Transport {
	return &client.Transport{UserAgent: userAgent, Pacer: p, Override: func(fetch.Origin) *policy.Policy { return policy.Parse(nil) }}
}

func turnComes(t *testing.T, gate *client.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy)
	defer cancel()
	turn, err := gate.Turn(ctx, siteURL(0))
	if err != nil {
		t.Errorf("healed: %v", err)
		return
	}
	turn.End()
}

// A password that is wrong is said, without repeating it. The cache goes on without its Store; the
// pace waits until the password is right.
func TestFleetSaysThatItsPasswordIsWrong(t *testing.T) {
	tier.Gate(t)
	s := startRedis(t)
	admin := s.client.Conn()
	defer admin.Close()
	set := func(password string) {
		if err := admin.ConfigSet(t.Context(), "requirepass", password).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("right")
	url := strings.Replace(s.url, "://", "://:mistyped@", 1)
	gate := pacing(&client.Pacer{Turns: openTurns(t, url, "")})
	if err := waitsInVain(t, gate, "WRONGPASS"); err != nil && strings.Contains(err.Error(), "mistyped") {
		t.Errorf("Turn repeats the password: %v", err)
	}
	var log proc.Log
	var fetches atomic.Int32
	c := &cache.Cache{Store: openRedis(t, url), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range 10 {
		askAndCheck(t, c, i, &fetches)
	}
	if text := log.String(); fetches.Load() != 10 || !strings.Contains(text, "WRONGPASS") || strings.Contains(text, "mistyped") {
		t.Errorf("%d fetches of 10 files, and the log:\n%s", fetches.Load(), text)
	}
	set("mistyped")
	turnComes(t, gate)
}

// waitsInVain checks that Turn lasts as long as its context, and says what Redis answers: the last that it has, if any
// came in time.
func waitsInVain(t *testing.T, gate *client.Transport, says string) (err error) {
	t.Helper()
	for d := 400 * time.Millisecond; d < busy; d *= 3 {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if _, err = gate.Turn(ctx, siteURL(0)); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), says) {
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
		t.Errorf("Turn: %v, want the end of the context, and %s", err, says)
	}
	return err
}

func openTurns(t testing.TB, url, prefix string) *redisturns.Store {
	t.Helper()
	values, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { values.Close() })
	return &redisturns.Store{Client: values.Client, Prefix: prefix}
}

// What may happen between Redis and the processes. The sites notice nothing.
func TestFleetKeepsItsPaceOverABadLine(t *testing.T) {
	tier.Nightly(t)
	for _, tt := range []struct {
		name  string
		line  func(t *testing.T, s *redisServer) (url string)
		time  time.Duration
		pages int // at least, at each origin
	}{
		{"50 ms away", func(t *testing.T, s *redisServer) string { return proxyTo(t, s, 50*time.Millisecond, 0) }, 4 * time.Second, 8},
		{"500 ms away", func(t *testing.T, s *redisServer) string { return proxyTo(t, s, 500*time.Millisecond, 0) }, 9 * time.Second, 3},
		{"cut before every 30th answer", func(t *testing.T, s *redisServer) string { return proxyTo(t, s, 0, 30) }, 4 * time.Second, 3},
		{"scripts flushed", func(t *testing.T, s *redisServer) string {
			s.often(t, "SCRIPT", "FLUSH")
			return s.url
		}, 4 * time.Second, 20},
		{"connections killed", func(t *testing.T, s *redisServer) string {
			s.often(t, "CLIENT", "KILL", "TYPE", "normal")
			s.often(t, "CLIENT", "KILL", "TYPE", "pubsub")
			return s.url
		}, 4 * time.Second, 3},
		{"maxmemory with allkeys-lru", func(t *testing.T, s *redisServer) string {
			s.do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
			s.do(t, "CONFIG", "SET", "maxmemory", "3mb")
			for i := range 100 {
				s.do(t, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 50_000))
			}
			return s.url
		}, 4 * time.Second, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const origins = 4
			s := startRedis(t)
			w := newWitness(t, 100*time.Millisecond)
			url := tt.line(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				until(time.Now().Add(tt.time), func() bool { return w.fewest(origins) >= tt.pages })
			}()
			var callers sync.WaitGroup
			// A robots.txt waits for no other. If all three read it, what the line adds to the way
			// of a turn would come off the distance of two of them.
			shared := new(cache.Cache)
			defer shared.Shutdown(context.Background())
			for range 3 { // as if in processes of their own
				c := fleetClient(&client.Pacer{Turns: openTurns(t, url, ""), Delay: 100 * time.Millisecond}, w.Listener.Addr().String())
				c.Transport.(*client.Transport).Cache = shared
				for i := range 2 * origins {
					callers.Go(func() { keepAsking(ctx, c, siteURL(i%origins)) })
				}
			}
			callers.Wait()
			early, least, part := w.early()
			t.Logf("least gap %v, %.1f %% of the possible", least, 100*part)
			if len(early) > 0 {
				t.Errorf("%d requests came too early, such as %v", len(early), early[:min(5, len(early))])
			}
			if n := w.fewest(origins); n < tt.pages {
				t.Errorf("%d pages at one of the origins, want %d", n, tt.pages)
			}
		})
	}
}

// proxyTo is a line to Redis that takes time, half of it in each direction, and that is cut
// before every so many answers.
func proxyTo(t *testing.T, s *redisServer, latency time.Duration, cut int64) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var answers atomic.Int64
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", s.client.Options().Addr)
			if err != nil {
				near.Close()
				continue
			}
			t.Cleanup(func() { near.Close(); far.Close() })
			go carry(far, near, latency/2, func() bool { return false })
			go carry(near, far, latency/2, func() bool { return cut > 0 && answers.Add(1)%cut == 0 })
		}
	}()
	return "redis://" + l.Addr().String()
}

func carry(to, from net.Conn, latency time.Duration, cut func() bool) {
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
		if err != nil || cut() {
			return
		}
		way <- parcel{time.Now().Add(latency), bytes.Clone(buf[:n])}
	}
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

// What an origin takes of Redis. What a user sees is used_memory, which has the tables of keys and of expiries too, and
// the buffers of connections: how many there are is a matter of how busy the machine is.
func TestRedisTurnsAreSmall(t *testing.T) {
	tier.Gate(t)
	s := startRedis(t)
	used := func() float64 {
		return redisinfo.Number(t, s.client, "memory", "used_memory") - redisinfo.Number(t, s.client, "memory", "mem_clients_normal")
	}
	store := openTurns(t, s.url, "")
	const origins = 10_000
	before := used()
	var work sync.WaitGroup
	for from := range 100 {
		work.Go(func() {
			for o := from; o < origins; o += 100 {
				name := fmt.Sprintf("https://www.an-origin-of-length%05d.net", o)
				_, err := store.Pause(t.Context(), name, time.Hour)
				if _, _, reserveErr := store.Reserve(t.Context(), name, time.Second, 24*time.Hour); err != nil || reserveErr != nil {
					t.Error(err, reserveErr)
				}
			}
		})
	}
	work.Wait()
	if each := (used() - before) / origins; each > 512 { // 280 to 390, by how its tables have grown
		t.Errorf("%.0f bytes of used_memory an origin, want 512 at most", each)
	} else {
		t.Logf("%.0f bytes of used_memory an origin", each)
	}
}
