package policy_test

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime is how long a processor works on f, however many others want it.
func processorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD of getrusage(2)
	var r syscall.Rusage
	if err := syscall.Getrusage(thread, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
