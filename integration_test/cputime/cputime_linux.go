package cputime

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// Of is how long a processor works on f, however many others want it.
func Of(f func()) time.Duration {
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
