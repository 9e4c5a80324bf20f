// Package proc is for tests: it owns the processes that they start, copies of themselves included, tells processor time,
// how late the machine is, and whether the race detector watches.
package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Own is called before cmd starts. When the test ends, cmd is killed with all that it has
// started (on Linux), and waited for. What would go to the test's own descriptors becomes its
// output: go test waits until all that hold a descriptor of the test have ended.
func Own(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	own(t, cmd, func() { _ = cmd.Wait() })
}

func own(t testing.TB, cmd *exec.Cmd, wait func()) {
	group(cmd)
	if cmd.Stdout == os.Stdout {
		cmd.Stdout = t.Output()
	}
	if cmd.Stderr == os.Stderr {
		cmd.Stderr = t.Output()
	}
	cmd.WaitDelay = 10 * time.Second // what it has started may hold its pipes
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return kill(cmd) }
	}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = kill(cmd)
			wait()
		}
	})
}

// LeastCPUTime is the shortest CPUTime of several runs of f: what it takes when no garbage is collected, and no other
// program has the processor's caches.
func LeastCPUTime(runs int, f func()) time.Duration {
	least := CPUTime(f)
	for range runs - 1 {
		least = min(least, CPUTime(f))
	}
	return least
}
