package proc

import "time"

// WatchMachine measures how late the machine is for appointments, until the result is
// called: it returns the worst delay.
func WatchMachine() func() time.Duration {
	done, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		late := time.Duration(0)
		for {
			due := time.Now().Add(10 * time.Millisecond)
			select {
			case <-time.After(time.Until(due)):
				late = max(late, time.Since(due))
			case <-done:
				worst <- late
				return
			}
		}
	}()
	return func() time.Duration {
		close(done)
		return <-worst
	}
}
