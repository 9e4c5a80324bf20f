package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
)

func TestNothingOutlivesItsTest(t *testing.T) {
	for name, script := range map[string]string{
		"a process that waits for its child": "sleep 1000 & echo $$ $!; wait",
		"a process that has ended":           "sleep 1000 & echo $$ $!",
	} {
		t.Run(name, func(t *testing.T) {
			var parent, child int
			t.Run("test", func(t *testing.T) {
				cmd := exec.Command("sh", "-c", script)
				cmd.Stderr = os.Stderr
				proc.Own(t, cmd)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Skip(err)
				}
				line, _ := bufio.NewReader(out).ReadString('\n')
				fmt.Sscan(line, &parent, &child)
				if own, err := os.Readlink("/proc/self/fd/2"); err == nil && child > 0 {
					if its, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", child)); its == own {
						t.Errorf("it writes to the test's own %s", its)
					}
				}
			})
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", parent)); parent == 0 || err == nil {
				t.Errorf("process %d is there", parent)
			}
			for end := time.Now().Add(10 * time.Second); running(child); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("its child %d runs", child)
				}
			}
		})
	}
}

// running is false of a process that has ended and was not waited for: its parent has gone.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var id int
	var name, state string
	fmt.Sscan(string(stat), &id, &name, &state)
	return state != "Z"
}
