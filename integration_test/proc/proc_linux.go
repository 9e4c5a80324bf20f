package proc

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// CPUTime is the processor time that f takes in its own goroutine: a busy machine's clock tells
// nothing of it.
func CPUTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

// threadTime reads a clock of nanoseconds: getrusage(2) may count whole milliseconds.
func threadTime() time.Duration {
	const thread = 3 // CLOCK_THREAD_CPUTIME_ID of clock_gettime(2)
	var t syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, thread, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// group gives cmd a process group, which a test binary that is killed takes with it.
func group(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // a session has a group
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

func kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
