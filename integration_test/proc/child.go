package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

const roleKey = "ROBOTSGATE_CHILD"

// Child is a copy of this test binary that has a Role and plays another process of the test, which owns it.
func Child(t testing.TB, role string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), roleKey+"="+role), env...)
	cmd.Stderr = os.Stderr
	Own(t, cmd)
	return cmd
}

// Role is what this process is to play instead of its tests. TestMain asks. If empty, it is no Child.
func Role() string { return os.Getenv(roleKey) }

// Number is one that a Child was given in its environment.
func Number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		Fail(fmt.Errorf("%s: %w", name, err))
	}
	return n
}

// Fail ends a Child.
func Fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Lines starts cmd and returns the lines that it writes.
func Lines(t testing.TB, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	return bufio.NewScanner(started(t, cmd))
}
