//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestEachSiteSeesOneVisitorThatKeepsItsDelay(t *testing.T) {
	tier.Nightly(t)
	var out strings.Builder
	all, err := run(t.Context(), &out, t.Output())
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("python3 or go is not installed: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	noChildren(t)
	for _, v := range all {
		// Each of the two crawlers has its own list of pages.
		want := map[string]int{"slow.example": 7, "rules.example": 13, "open.example": 5, "busy.example": 2}[v.host]
		if want > 0 && (v.seen != want || v.least < v.delay) {
			t.Errorf("%s: %d requests, want %d; %v apart, want at least %v", v.host, v.seen, want, v.least, v.delay)
		}
	}
	for line, want := range map[string]int{
		"refused http://rules.example/private Disallow: /private\n": 2,
		"refused http://down.example/ unreachable\n":                2,
		"fetched http://busy.example/ 429\n":                        2,
		"fetched http://rules.example/5 200\n":                      2,
	} {
		if n := strings.Count(out.String(), line); n != want {
			t.Errorf("%d times %q, want %d, in\n%s", n, line, want, &out)
		}
	}
}

// noChildren fails if there is a process that this one has started and not waited for.
func noChildren(t *testing.T) {
	t.Helper()
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("a child has not been waited for: %d, %v", pid, err)
	}
}

// cutOff is where a run writes that ends at its first line.
type cutOff func()

func (c cutOff) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}

func TestAnInterruptedRunLeavesNoProcess(t *testing.T) {
	tier.Nightly(t)
	for name, out := range map[string]func(stop func()) io.Writer{
		"while it crawls": func(stop func()) io.Writer { return cutOff(stop) },
		"while it builds": func(stop func()) io.Writer { stop(); return io.Discard },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			_, err := run(ctx, out(stop), t.Output())
			if errors.Is(err, exec.ErrNotFound) {
				t.Skip("python3 or go is not installed: ", err)
			}
			if err == nil {
				t.Error("it was not interrupted")
			}
			noChildren(t)
		})
	}
}
