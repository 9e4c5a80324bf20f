package fetch

import "golang.org/x/sync/semaphore"

// SetMemory makes room for so many files at once that are longer than a usual one.
func (f *Fetcher) SetMemory(files int64) {
	f.once.Do(f.setUp)
	f.memory = semaphore.NewWeighted(files * fileShare)
}
