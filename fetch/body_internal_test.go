package fetch

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
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
			t.Errorf("%d announced: %d bytes in %d of memory, %v", n, len(body), cap(body), err)
		}
		if _, err := readAll(bytes.NewReader(make([]byte, usualFile+1)), n, more); err != io.ErrNoProgress || read != usualFile {
			t.Errorf("%d announced: a longer file did not ask: %v", n, err)
		}
	}
}
