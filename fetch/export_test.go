package fetch

import (
	"context"
	"runtime"

	"golang.org/x/sync/semaphore"
)

// SetMemory makes room for so many files at once that are longer than a usual one.
func (f *Fetcher) SetMemory(files int64) {
	f.once.Do(f.setUp)
	f.memory = semaphore.NewWeighted(files * fileShare)
}

// HoldParsing leaves no longer file its turn to be parsed.
func (f *Fetcher) HoldParsing() error {
	f.once.Do(f.setUp)
	return f.parsing.Acquire(context.Background(), int64(runtime.GOMAXPROCS(0)))
}
