package fetch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// A file takes 16 KiB before it asks for its share, whether its length is announced or not.
func TestAFileAsksForMemoryAfter16KiB(t *testing.T) {
	for _, n := range []int64{-1, 0, 10, usualFile - 1, 1 << 40} {
		read := 0
		more := func() error {
			read = usualFile
			return io.ErrNoProgress
		}
		body, err := readAll(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", usualFile-1))), n, more)
		if err != nil || len(body) != usualFile-1 || cap(body) > usualFile || read != 0 {
			t.Errorf("%d announced: got %d bytes in %d of memory, %v, want %d in %d", n, len(body), cap(body), err, usualFile-1, usualFile)
		}
		if _, err := readAll(bytes.NewReader(make([]byte, usualFile+1)), n, more); err != io.ErrNoProgress || read != usualFile {
			t.Errorf("%d announced: a longer file asked at %d bytes, %v, want at %d, %v", n, read, err, usualFile, io.ErrNoProgress)
		}
	}
}

// One law for every field: if zero, its default; if negative, there is none.
func TestFieldsThatAreZeroOrNegative(t *testing.T) {
	const unbounded = 10_000
	for _, c := range []struct {
		field, timeout time.Duration
		retries        int
		places         int
	}{
		{0, 30 * time.Second, 2, 512},
		{-1, never, 0, unbounded},
		{-7, never, 0, unbounded},
	} {
		f := &Fetcher{Timeout: c.field, Retries: int(c.field), MaxFetches: int(c.field)}
		f.setUp()
		places := 0
		for places < unbounded && f.places.TryAcquire(1) {
			places++
		}
		retries := (&resolution{Fetcher: f}).retries(response{err: errors.New("no connection")})
		if f.timeout() != c.timeout || retries != c.retries || places != c.places {
			t.Errorf("%d: got %v, %d, %d, want %v", c.field, f.timeout(), retries, places, c)
		}
	}
}
