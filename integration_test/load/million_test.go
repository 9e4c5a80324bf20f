package load_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/integration_test/internal/redisinfo"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// The run of a million origins:
//
//	go test ./integration_test/load -run Million -million 1000000 -day 2m -timeout 30m -v
var (
	million = flag.Int("million", 0, "how many `origins` TestMillion meets; 0: as many as take some seconds")
	day     = flag.Duration("day", time.Second, "how long a day of TestMillion is: whole seconds, best a multiple of 24")
)

// TestMain lets copies of this test binary be the processes of TestMillion.
func TestMain(m *testing.M) {
	if proc.Role() == "million" {
		childMeetsMillion(os.Getenv("ROBOTSGATE_REDIS"))
		return
	}
	os.Exit(m.Run())
}

func simOrigins() int { return cmp.Or(*million, sizes.Of(40_000)) }

// simChild is one of the processes.
type simChild struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out func() (string, bool)
	log string
}

func startSimChildren(t *testing.T, redisURL, life string) (all []*simChild) {
	for i := range simProcesses {
		c := &simChild{log: filepath.Join(t.TempDir(), fmt.Sprint(life, i))}
		c.cmd, c.in, c.out = childWithInput(t, "million",
			"ROBOTSGATE_REDIS="+redisURL, "ROBOTSGATE_FILE="+c.log, fmt.Sprint("ROBOTSGATE_SELF=", i),
			fmt.Sprint("ROBOTSGATE_ORIGINS=", simOrigins()), fmt.Sprint("ROBOTSGATE_DAY_MS=", day.Milliseconds()))
		all = append(all, c)
	}
	for _, c := range all {
		if line, _ := c.out(); line != "ready" {
			t.Fatalf("a process says %q", line)
		}
	}
	return all
}

// childWithInput is a child that is given orders.
func childWithInput(t *testing.T, role string, env ...string) (*exec.Cmd, io.WriteCloser, func() (string, bool)) {
	t.Helper()
	cmd := proc.Child(t, role, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := proc.Lines(t, cmd)
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, in, func() (string, bool) { ok := lines.Scan(); return lines.Text(), ok }
}

// tell gives all processes an order, waits for them, and returns the sums of what they say, and
// the most that one of them holds.
func tell(t *testing.T, all []*simChild, order string) (sum simStats) {
	t.Helper()
	for _, c := range all {
		fmt.Fprintln(c.in, order)
	}
	for _, c := range all {
		var s simStats
		line, _ := c.out()
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%s: a process says %q", order, line)
		}
		sum.Decisions, sum.Fetches, sum.Bytes = sum.Decisions+s.Decisions, sum.Fetches+s.Fetches, sum.Bytes+s.Bytes
		sum.Forbidden, sum.Wrong = sum.Forbidden+s.Forbidden, sum.Wrong+s.Wrong
		sum.StoreErrors += s.StoreErrors
		sum.Seconds, sum.Origins = max(sum.Seconds, s.Seconds), max(sum.Origins, s.Origins)
		sum.CacheBytes, sum.Heap, sum.RSS = max(sum.CacheBytes, s.CacheBytes), max(sum.Heap, s.Heap), max(sum.RSS, s.RSS)
		sum.Median, sum.P99 = max(sum.Median, s.Median), max(sum.P99, s.P99)
	}
	if sum.Forbidden+sum.Wrong > 0 {
		t.Errorf("%s: %d requests were forbidden, %d answers wrong", order, sum.Forbidden, sum.Wrong)
	}
	return sum
}

func (s simStats) String() string {
	const mib = 1 << 20
	return fmt.Sprintf("%7d decisions, %6d fetches in %5.1f s (%6.0f and %5.0f a second), median %8v, 99 %% %8v; "+
		"in one process at most %d origins, %.1f MiB counted, %.1f MiB of heap, %.0f MiB resident; "+
		"%d errors of the store",
		s.Decisions, s.Fetches, s.Seconds, float64(s.Decisions)/s.Seconds, float64(s.Fetches)/s.Seconds, s.Median, s.P99,
		s.Origins, float64(s.CacheBytes)/mib, float64(s.Heap)/mib, float64(s.RSS)/mib, s.StoreErrors)
}

func endSimChildren(t *testing.T, all []*simChild) (logs []string) {
	for _, c := range all {
		c.in.Close()
	}
	for _, c := range all {
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
		logs = append(logs, c.log)
	}
	return logs
}

// Four processes over one Redis meet many origins, come back to them for three days, and start
// anew in the middle. The clock is short, not changed: sites state shorter lifetimes, and the
// bounds of the caches are shorter by the same factor.
func TestMillion(t *testing.T) {
	tier.Nightly(t)
	socket := proc.Socket(t)
	_, addr := proc.Redis(t, "--unixsocket", socket)
	url, server := "unix://"+socket, redis.NewClient(&redis.Options{Addr: addr})
	defer server.Close()
	number := func(section, name string) float64 { return redisinfo.Number(t, server, section, name) }
	seconds := func() float64 { return number("cpu", "used_cpu_user") + number("cpu", "used_cpu_sys") } // of its processor
	empty := number("memory", "used_memory")
	perOrigin := func() float64 { return (number("memory", "used_memory") - empty) / float64(simOrigins()) }
	begin := time.Now().UnixMilli()

	first := startSimChildren(t, url, "first")
	cold := tell(t, first, fmt.Sprint("cold ", begin))
	t.Log("met:           ", cold)
	processor := seconds()
	t.Logf("Redis:         %.0f bytes an origin, %.1f commands a fetch, %.0f µs of its processor a fetch", perOrigin(),
		number("stats", "total_commands_processed")/float64(cold.Fetches), 1e6*processor/float64(cold.Fetches))
	before, decisions := tellDays(t, first, begin, 0)
	logs := endSimChildren(t, first)

	restart := time.Now()
	second := startSimChildren(t, url, "second")
	t.Logf("restart:       %v", time.Since(restart).Round(time.Millisecond))
	last, more := tellDays(t, second, begin, simDaysRun/2.)
	t.Logf("Redis:         %.0f bytes an origin, %.0f µs of its processor a decision", perOrigin(),
		1e6*(seconds()-processor)/float64(decisions+more))
	t.Log("warm:          ", tell(t, second, "warm"))
	logs = append(logs, endSimChildren(t, second)...)

	reportSim(t, readSimLogs(t, logs), cold)
	if *million > 0 && last.RSS > 5*before.RSS/4 || max(cold.CacheBytes, before.CacheBytes, last.CacheBytes) > 64<<20 {
		t.Errorf("memory grows: %v\n%v\n%v", cold, before, last)
	}
}

// tellDays has the processes make the visits of half the days, from a day on. It returns what they
// say of the last third of these, and how many decisions there were.
func tellDays(t *testing.T, all []*simChild, begin int64, from float64) (last simStats, decisions int64) {
	for range 3 {
		to := from + simDaysRun/6.
		ms := float64(day.Milliseconds())
		last = tell(t, all, fmt.Sprintf("days %d %.0f %.0f", begin, from*ms, to*ms))
		t.Logf("until day %.1f: %v", to, last)
		decisions += last.Decisions
		from = to
	}
	return last, decisions
}

// simEvent is a visit or a fetch of a site.
type simEvent uint64

func (e simEvent) site() int         { return int(e >> 32 &^ simFetch) }
func (e simEvent) fetch() bool       { return e>>32&simFetch != 0 }
func (e simEvent) at() time.Duration { return time.Duration(uint32(e)) * time.Millisecond }

// readSimLogs returns the events by site and time.
func readSimLogs(t *testing.T, logs []string) (all []simEvent) {
	for _, name := range logs {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for ; len(data) >= 8; data = data[8:] {
			all = append(all, simEvent(binary.BigEndian.Uint64(data)))
		}
	}
	slices.SortFunc(all, func(a, b simEvent) int {
		if d := a.site() - b.site(); d != 0 {
			return d
		}
		return int(a.at() - b.at())
	})
	return all
}

// simCount is what a class of sites has cost.
type simCount struct {
	sites, visits, fetches int
	asked                  float64 // fetches that the lifetimes ask for
	least, most            int     // the same, were no lifetime shortened, and all by a tenth
}

// reportSim compares the fetches with what the lifetimes ask for, given when the sites were
// visited. A lifetime that is shortened by up to a tenth, by chance, asks for a little more.
func reportSim(t *testing.T, all []simEvent, cold simStats) {
	classes, whole, sick := countSim(all)
	for _, lifetime := range slices.Sorted(maps.Keys(classes)) {
		t.Logf("lifetime of %4.2f days: %v", lifetime.Seconds()/day.Seconds(), classes[lifetime])
	}
	t.Logf("all of these:          %v", whole)
	t.Logf("unreachable or busy:   %7d sites, %7d visits, %7d fetches", sick.sites, sick.visits, sick.fetches)
	low, high := 0.98, 1.02
	if *day < 24*time.Second { // of a second, a busy machine takes a good part to fetch
		low, high = 0.75, 1.15
	}
	if part := float64(whole.fetches) / whole.asked; part < low || part > high {
		t.Errorf("%d fetches, want %.0f, from %.2f to %.2f times", whole.fetches, whole.asked, low, high)
	}
	fetches := float64(whole.fetches+sick.fetches) / float64(simOrigins()) / simDaysRun
	t.Logf("an origin: %.2f fetches a day; a million: %.1f fetches a second; 10⁹: %.0f a second, %.0f Mbit/s",
		fetches, fetches*1e6/86400, fetches*1e9/86400,
		fetches*1e9/86400*8e-6*float64(cold.Bytes)/float64(cold.Fetches))
}

// countSim counts what the sites of each lifetime have cost, all of these, and the sites that state
// none.
func countSim(all []simEvent) (classes map[time.Duration]*simCount, whole, sick simCount) {
	classes = map[time.Duration]*simCount{}
	for len(all) > 0 {
		i := all[0].site()
		n := slices.IndexFunc(all, func(e simEvent) bool { return e.site() != i })
		if n < 0 {
			n = len(all)
		}
		events, site := all[:n], simSiteOf(i, *day)
		all = all[n:]
		if !site.kind.healthy() {
			sick.add(events, *day)
			continue
		}
		lifetime := *day
		if site.lifetime > 0 {
			lifetime = min(lifetime, site.lifetime)
		}
		if classes[lifetime] == nil {
			classes[lifetime] = &simCount{}
		}
		classes[lifetime].add(events, lifetime)
		whole.add(events, lifetime)
	}
	return classes, whole, sick
}

func (c *simCount) add(events []simEvent, lifetime time.Duration) {
	c.sites++
	var ours, least, most time.Duration // when the file expires
	for i, e := range events {
		if e.fetch() {
			c.fetches++
			continue
		}
		c.visits++
		if i == 0 || e.at() >= least {
			c.least++
			least = e.at() + lifetime
		}
		if most == 0 || e.at() >= most {
			c.most++
			most = e.at() + lifetime*9/10
		}
		if ours == 0 || e.at() >= ours {
			c.asked++
			ours = e.at() + time.Duration((0.9+0.1*rand.Float64())*float64(lifetime))
		}
	}
}

func (c simCount) String() string {
	return fmt.Sprintf("%7d sites, %7d visits, %7d fetches, %.3f of what is asked for (least %.3f, most %.3f)",
		c.sites, c.visits, c.fetches, float64(c.fetches)/c.asked,
		float64(c.fetches)/float64(c.least), float64(c.fetches)/float64(c.most))
}
