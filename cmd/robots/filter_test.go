//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// crowd is a list of URLs on many origins, made anew from its seed each time.
type crowd struct {
	urls, origins int
	sorted        bool // by origin
}

func newCrowd() crowd {
	if *million {
		return crowd{urls: 1_000_000, origins: 2_000}
	}
	return crowd{urls: 20_000, origins: 200}
}

// each calls f with every URL, and whether it is allowed. Every tenth is refused.
func (c crowd) each(f func(url string, allowed bool)) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range c.urls {
		origin, kind := random.IntN(c.origins), random.IntN(10)
		if c.sorted {
			origin = i * c.origins / c.urls
		}
		path := "public"
		if kind == 0 {
			path = "private"
		}
		f(fmt.Sprintf("http://site%d.example/%s/page-%d?from=%d", origin, path, i, kind), kind != 0)
	}
}

func (c crowd) write(w io.Writer, want func(allowed bool) bool) {
	b := bufio.NewWriter(w)
	c.each(func(url string, allowed bool) {
		if want(allowed) {
			b.WriteString(url)
			b.WriteByte('\n')
		}
	})
	b.Flush()
}

func (c crowd) allowed() []byte {
	var b bytes.Buffer
	c.write(&b, func(allowed bool) bool { return allowed })
	return b.Bytes()
}

// refused is the file of --refused.
func (c crowd) refused() []byte {
	var b bytes.Buffer
	c.each(func(url string, allowed bool) {
		if !allowed {
			fmt.Fprintf(&b, "%s\tline 3: Disallow: /private/\n", url)
		}
	})
	return b.Bytes()
}

// manyOrigins is a server for all of them. Their robots.txt takes a while to come.
type manyOrigins struct {
	*httptest.Server
	delay time.Duration
	dead  map[string]bool // origins that never answer
	mu    sync.Mutex
	asked map[string]int
	each  func() // if not nil, called for each request
}

func serveMany(t *testing.T, delay time.Duration) *manyOrigins {
	m := &manyOrigins{delay: delay, asked: map[string]int{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *manyOrigins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.asked[r.Host]++
	if m.each != nil {
		m.each()
	}
	m.mu.Unlock()
	if m.dead[r.Host] {
		<-r.Context().Done()
		return
	}
	time.Sleep(m.delay)
	fmt.Fprintf(w, "# %s\nUser-agent: *\nDisallow: /private/\n", r.Host)
}

// checkAsked fails unless each origin was asked once.
func (m *manyOrigins) checkAsked(t *testing.T, origins int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked) != origins {
		t.Errorf("%d origins were asked, want %d", len(m.asked), origins)
	}
	for host, n := range m.asked {
		if n != 1 {
			t.Errorf("%s was asked for robots.txt %d times, want once", host, n)
		}
	}
}

// command is "robots filter" as a process of its own, reading the crowd from a file.
func (m *manyOrigins) command(t *testing.T, c crowd, args ...string) *exec.Cmd {
	t.Helper()
	in, err := os.Create(filepath.Join(t.TempDir(), "urls"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	c.write(in, func(bool) bool { return true })
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"filter", "--summary", "--connect-to", "::" + m.Listener.Addr().String()}, args...)
	cmd := exec.Command("robots", args...)
	cmd.Stdin = in
	proc.Own(t, cmd)
	return cmd
}

// The allowed URLs come out in the order they went in, the refused ones go to the
// file, each origin is asked once, and memory stays small.
func TestFilterKeepsOrderAndAsksEachOriginOnce(t *testing.T) {
	t.Parallel()
	c := newCrowd()
	m := serveMany(t, 10*time.Millisecond)
	refused := filepath.Join(t.TempDir(), "refused")
	cmd := m.command(t, c, "--refused", refused)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != shell.ExitOK {
		t.Fatalf("%v, want status %d\n%s", err, shell.ExitOK, problems.String())
	}
	if !bytes.Equal(out.Bytes(), c.allowed()) {
		t.Errorf("got %d bytes of allowed URLs, want other %d", out.Len(), len(c.allowed()))
	}
	if got := read(t, refused); !bytes.Equal(got, c.refused()) {
		t.Errorf("got %d bytes of refused URLs, want other %d", len(got), len(c.refused()))
	}
	m.checkAsked(t, c.origins)
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10 // KiB on Linux
	t.Logf("%speak memory %d MiB", problems.String(), peak)
	if most := int64(256); *million && runtime.GOOS == "linux" && int64(peak) > most {
		t.Errorf("peak memory %d MiB, want at most %d", peak, most)
	}
}

// An interrupted run has written whole lines, the first of all; with what it fetched
// in the cache, the next run asks no origin a second time.
func TestFilterInterruptedAndRunAgain(t *testing.T) {
	tier.Gate(t)
	t.Parallel()
	c := newCrowd()
	m := serveMany(t, 20*time.Millisecond)
	dir := filepath.Join(t.TempDir(), "robots")
	cmd := m.command(t, c, "--cache", dir, "--parallel", "16")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1000)
	if _, err := io.ReadFull(stdout, first); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	cmd.Process.Signal(os.Interrupt)
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != shell.ExitInterrupted {
		t.Errorf("exit status %d, want %d\n%s", cmd.ProcessState.ExitCode(), shell.ExitInterrupted, problems.String())
	}
	got, want := append(first, rest...), c.allowed()
	if len(got) == len(want) {
		t.Fatal("the run was over before the interruption: nothing is shown")
	}
	if !bytes.HasPrefix(want, got) || got[len(got)-1] != '\n' {
		t.Errorf("%d bytes were written, want whole lines from the beginning", len(got))
	}
	t.Logf("interrupted after %d of %d bytes: %s", len(got), len(want), problems.String())

	cmd = m.command(t, c, "--cache", dir)
	var out bytes.Buffer
	problems.Reset()
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != shell.ExitOK {
		t.Fatalf("%v, want status %d\n%s", err, shell.ExitOK, problems.String())
	}
	t.Logf("the next run: %s", problems.String())
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the next run: got %d bytes, want other %d", out.Len(), len(want))
	}
	m.checkAsked(t, c.origins)
}

// A run that is killed, again and again and also within a line, has in the end written what one
// run would have written.
func TestFilterKilledAndResumed(t *testing.T) {
	tier.Gate(t)
	t.Parallel()
	c := crowd{urls: 20_000, origins: 200, sorted: true}
	m := serveMany(t, 20*time.Millisecond)
	dir := t.TempDir()
	allowed, refused := filepath.Join(dir, "allowed"), filepath.Join(dir, "refused")
	for range 3 {
		const enough = 50
		n, reached := 0, make(chan struct{})
		m.mu.Lock()
		m.each = func() {
			if n++; n == enough {
				close(reached)
			}
		}
		m.mu.Unlock()
		cmd := m.command(t, c, "--parallel", "4", "--output", allowed, "--refused", refused, "--resume")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-reached
		cmd.Process.Kill()
		cmd.Wait()
		got := read(t, allowed)
		if len(got) == len(c.allowed()) || !bytes.HasPrefix(c.allowed(), got) {
			t.Fatalf("%d bytes were written before the end, want less than %d", len(got), len(c.allowed()))
		}
		if err := os.Truncate(allowed, int64(len(got)-7)); err != nil { // as a full disk would leave it
			t.Fatal(err)
		}
	}
	cmd := m.command(t, c, "--output", allowed, "--refused", refused, "--resume")
	problems, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems)
	}
	t.Logf("%s", problems)
	if got := read(t, allowed); !bytes.Equal(got, c.allowed()) {
		t.Errorf("got %d bytes of allowed URLs, want other %d", len(got), len(c.allowed()))
	}
	if got := read(t, refused); !bytes.Equal(got, c.refused()) {
		t.Errorf("got %d bytes of refused URLs, want other %d", len(got), len(c.refused()))
	}
	var skipped int
	if fmt.Sscanf(string(problems), "%d skipped;", &skipped); skipped < c.urls/2 {
		t.Errorf("%d lines were skipped, want more than half of %d: %s", skipped, c.urls, problems)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// written is the name of a new file with text.
func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// redis starts a server for the test and returns its URL.
func redis(t *testing.T) string {
	t.Helper()
	_, addr := proc.Redis(t)
	return "redis://" + addr + "/0"
}

// The results of a run and the copies beside them share the memory that the help names.
func TestFilterKeepsFewCopiesBesideItsResults(t *testing.T) {
	rules := "User-agent: *\n"
	for i := 0; len(rules) < 400<<10; i++ {
		rules += fmt.Sprintf("Disallow: /%0100d\n", i)
	}
	to := siteServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, rules) })
	var list strings.Builder
	const origins = 120 // of 48 MB
	for i := range origins {
		fmt.Fprintf(&list, "http://site%d.example/\n", i)
	}
	f := &filterer{App: &shell.App{Streams: shell.Streams{In: strings.NewReader(list.String()), Out: io.Discard, Err: t.Output()}}, parallel: 8}
	f.Timeout, f.ConnectTo = time.Minute, []string{strings.TrimPrefix(to, "--connect-to=")}
	var err error
	if f.gate, err = f.Open(f.Err); err != nil {
		t.Fatal(err)
	}
	defer f.gate.End(t.Context(), f.App)
	if err := f.lines(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.gate.Cache.Stats().Bytes; f.tally[allowed] != origins || n < 1<<20 || n > site.BesideOrigins {
		t.Errorf("%d of %d allowed; the copies take %d KiB, want 1,024 to %d", f.tally[allowed], origins, n>>10, site.BesideOrigins>>10)
	}
}

// A rule as long as a file is not in each answer that waits to be written.
func TestFilterCutsWhatASiteMadeLong(t *testing.T) {
	long := strings.Repeat("*", 150<<10)
	to := siteServer(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "User-agent: *\nAllow: /a%s\nDisallow: /b%[1]s\nContent-Signal: /u ai-train=no, %[2]s\n", long, long[:50<<10])
	})
	for _, args := range [][]string{{}, {"--json"}, {"--json", "--uses=train-ai"}} {
		refused := filepath.Join(t.TempDir(), "refused")
		args = append([]string{"filter", to, "--refused", refused}, args...)
		out := string(stdoutOf(t, "http://a.example/a\nhttp://a.example/b\n", args...)) + string(read(t, refused))
		if len(out) > 4<<10 || strings.Count(out, "\n") != 2 {
			t.Errorf("%q: got %d bytes, want two short lines: %.4000s", args, len(out), out)
		}
	}
}

// With --unordered the lines of a silent host come at the end, and a second signal ends what is left.
func TestFilterUnorderedWaitsForNoSilentHost(t *testing.T) {
	m := serveMany(t, 0)
	m.dead = map[string]bool{"site0.example": true}
	start := func(timeout string) (*exec.Cmd, *bytes.Buffer, io.Reader) {
		cmd := m.command(t, crowd{urls: 20, origins: 2, sorted: true}, "--unordered", "--refused=/dev/stderr", "--timeout", timeout)
		said := new(bytes.Buffer)
		cmd.Stderr = said
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, said, out
	}
	cmd, said, out := start("3s")
	data, _ := io.ReadAll(out)
	err := cmd.Wait()
	unknown := strings.Count(said.String(), "\trobots.txt is unreachable: ")
	if err != nil || unknown != 10 || strings.Count(string(data), "http://site1.example/public/") < 8 {
		t.Errorf("%v, %d lines are unknown, want 10, and 8 of site1: %s%s", err, unknown, data, said)
	}
	cmd, _, out = start("1h")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "http://site1.example/") {
		t.Errorf("the first is %q, %v, want one of the host that answers", line, err)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	go func() {
		for cmd.Process.Signal(os.Interrupt) == nil {
			<-again.C
		}
	}()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("got %v, want that the second signal ended it", err)
	}
}
