//go:build unix

package main

import (
	"syscall"
	"testing"
)

// noChildren fails the test if a process that it started is still there, or was not waited for. One
// that outlives the test holds its output open, and a service listens for ever.
func noChildren(t *testing.T) {
	t.Helper()
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("there is a child still: Wait4 gives %d, %v", pid, err)
	}
}
