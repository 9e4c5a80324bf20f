package load_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/integration_test/internal/sizes"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// TestTurnsBesideRedisBenchmark compares the turns that one process takes in a second, each a call
// of a script, with the calls of an empty script that redis-benchmark makes, which
// come 50 at a time and, to see what the server itself can do, 16 in each of its pipelines. Both sides
// are measured in turns.
func TestTurnsBesideRedisBenchmark(t *testing.T) {
	tier.Nightly(t)
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		t.Skip("redis-benchmark is not installed")
	}
	if proc.Slowdown() > 1 {
		t.Skip("a measurement, which the race detector would distort")
	}
	rounds, span := 1, 500*time.Millisecond
	if *sizes.Full {
		rounds, span = 5, 2*time.Second
	}
	_, addr := proc.Redis(t)
	values, err := redisstore.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer values.Close()
	store := &redisturns.Store{Client: values.Client}
	empty, err := values.Client.ScriptLoad(t.Context(), "return 0").Result()
	if err != nil {
		t.Fatal(err)
	}
	var ratios, deep []float64
	for range rounds {
		one := redisBenchmark(t, program, addr, 1, empty, span)
		piped := redisBenchmark(t, program, addr, 16, empty, span)
		pairs := turnsASecond(t, store, span)
		ratios, deep = append(ratios, pairs/one), append(deep, pairs/piped)
		t.Logf("%.0f turns a second; %.0f empty scripts, %.0f in pipelines of 16", pairs, one, piped)
	}
	slices.Sort(ratios)
	slices.Sort(deep)
	t.Logf("turns for each empty script: %.2f (%.2f to %.2f); in pipelines: %.2f",
		ratios[rounds/2], ratios[0], ratios[rounds-1], deep[rounds/2])
	if *sizes.Full && ratios[rounds/2] < 0.5 {
		t.Errorf("%.2f turns for each empty script, want 0.5", ratios[rounds/2])
	}
}

// redisBenchmark returns the calls a second of an empty script.
func redisBenchmark(t *testing.T, program, addr string, pipeline int, script string, span time.Duration) float64 {
	t.Helper()
	_, port, _ := strings.Cut(addr, ":")
	calls := int(40_000 * span.Seconds())
	out, err := exec.Command(program, "-p", port, "-n", strconv.Itoa(calls*pipeline), "-P", strconv.Itoa(pipeline),
		"--csv", "EVALSHA", script, "1", "key").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	n, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return n
}

// turnsASecond lets 64 callers take turns at 10,000 origins.
func turnsASecond(t *testing.T, store *redisturns.Store, span time.Duration) float64 {
	t.Helper()
	var next, done atomic.Int64
	var callers sync.WaitGroup
	begin := time.Now()
	for range 64 {
		callers.Go(func() {
			for time.Since(begin) < span {
				i := next.Add(1)
				origin := fmt.Sprint("http://a", i%10_000, ".example")
				if _, _, err := store.Reserve(context.Background(), origin, time.Millisecond, time.Hour); err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	callers.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds()
}
