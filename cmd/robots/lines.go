package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"
)

// line is one line of input, without its end.
type line struct {
	number  int    // counted from 1
	text    string // a piece of that of its batch
	tooLong bool   // text is only its beginning
}

// Bounds of what a lineFilter holds: a batch is closed at either of the first two,
// and reading waits while maxHeld bytes of input are unanswered or unwritten.
const (
	batchLines = 128
	batchBytes = 64 << 10
	maxBatches = 512
	maxHeld    = 64 << 20
)

// lineFilter reads lines, has them answered in parallel, and writes the answers in the
// order of the lines. Memory is bounded whatever the input: where the first
// unanswered line has to wait (a slow origin), those behind it are answered up to
// maxBatches ahead, and then reading waits too.
type lineFilter[A any] struct {
	maxLine int // bytes; of a longer line only the beginning is kept

	// skip, if not nil, reads the lines at the beginning of the input that need no answer,
	// and returns how many these are.
	skip func(context.Context, *bufio.Reader) (int, error)

	// answer is called from several goroutines at once, for a batch of lines each.
	// Its error ends the run, with nothing of the batch written.
	answer func(context.Context, []line) (A, error)

	// write is called for one batch after the other.
	write func(A) error

	// Memory of fill, for its next batch.
	text []byte
	ends []lineEnd
}

// lineEnd is where a line ends in the text of its batch.
type lineEnd struct {
	at      int
	tooLong bool
}

// batch is what answer works on. Its text lives in one piece of memory.
type batch[A any] struct {
	lines  []line
	size   int64         // of the lines, in bytes
	done   chan struct{} // closed once answer and err are set
	answer A
	err    error
}

// run ends at the end of input, at the first error, or with ctx: then it returns at
// once, and what was written ends with a whole line. The goroutine that reads may
// outlive it in a Read that nothing can interrupt.
func (f *lineFilter[A]) run(ctx context.Context, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan *batch[A], maxBatches)
	held := semaphore.NewWeighted(maxHeld)
	go f.read(ctx, r, queue, held)
	for {
		var b *batch[A]
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b = <-queue:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.done:
		}
		switch {
		case b.err == io.EOF:
			return nil
		case b.err != nil:
			return b.err
		}
		if err := f.write(b.answer); err != nil {
			return err
		}
		held.Release(b.size)
	}
}

// read puts batches on queue in order, each with a goroutine that answers it, and
// as the last one the error that ended reading.
func (f *lineFilter[A]) read(ctx context.Context, r io.Reader, queue chan<- *batch[A], held *semaphore.Weighted) {
	in := bufio.NewReaderSize(r, batchBytes)
	number := 1
	var err error
	if f.skip != nil {
		number, err = f.skip(ctx, in)
		number++
	}
	for {
		b := &batch[A]{done: make(chan struct{})}
		if err == nil {
			err = f.fill(b, in, number)
		}
		number += len(b.lines)
		if len(b.lines) > 0 && !f.submit(ctx, b, queue, held) {
			return
		}
		if err != nil {
			last := &batch[A]{err: err, done: make(chan struct{})}
			close(last.done)
			select {
			case queue <- last:
			case <-ctx.Done():
			}
			return
		}
	}
}

// submit waits for room, puts b on the queue and has it answered. It reports whether ctx
// let it.
func (f *lineFilter[A]) submit(
	ctx context.Context, b *batch[A], queue chan<- *batch[A], held *semaphore.Weighted,
) bool {
	b.size = min(b.size, maxHeld) // one line may be longer than what is to be held
	if held.Acquire(ctx, b.size) != nil {
		return false
	}
	select {
	case queue <- b:
	case <-ctx.Done():
		return false
	}
	go func() {
		defer close(b.done)
		b.answer, b.err = f.answer(ctx, b.lines)
	}()
	return true
}

// fill reads lines into b until it is full, or until the next line is not there yet, or only
// half of it: behind a slow producer an answer must not wait for a full batch.
func (f *lineFilter[A]) fill(b *batch[A], in *bufio.Reader, number int) error {
	text, ends := f.text[:0], f.ends[:0]
	var err error
	for err == nil && len(ends) < batchLines && len(text) < batchBytes {
		start, tooLong := len(text), false
		text, tooLong, err = appendLine(text, in, f.maxLine)
		if err != nil && (err != io.EOF || len(text) == start) {
			text = text[:start] // half a line, or none behind the last line end
			break
		}
		ends = append(ends, lineEnd{len(text), tooLong})
		if ahead, _ := in.Peek(in.Buffered()); bytes.IndexByte(ahead, '\n') < 0 {
			break
		}
	}
	f.text, f.ends = text, ends
	all, start := string(text), 0
	b.lines = make([]line, len(ends))
	for i, end := range ends {
		b.lines[i] = line{number + i, all[start:end.at], end.tooLong}
		start = end.at
	}
	b.size = int64(len(text))
	return err
}

// appendLine appends the next line to text, without its LF or CRLF, and no more than maxLine
// bytes of it.
func appendLine(text []byte, in *bufio.Reader, maxLine int) (_ []byte, tooLong bool, err error) {
	start, most := len(text), maxLine+len("\r\n")
	for {
		var part []byte
		part, err = in.ReadSlice('\n')
		n := min(len(part), most-(len(text)-start))
		text = append(text, part[:n]...)
		tooLong = tooLong || n < len(part)
		if err != bufio.ErrBufferFull {
			break
		}
	}
	rest := bytes.TrimSuffix(bytes.TrimSuffix(text[start:], []byte("\n")), []byte("\r"))
	if len(rest) > maxLine {
		rest, tooLong = rest[:maxLine], true
	}
	return text[:start+len(rest)], tooLong, err
}

// rounds lets batches do something one after the other, in the order of their lines.
type rounds struct {
	mu      sync.Mutex
	next    int                   // number of the line whose batch it is up to
	waiting map[int]chan struct{} // by the number of the first line
}

func newRounds(first int) *rounds { return &rounds{next: first, waiting: map[int]chan struct{}{}} }

// wait waits until all lines before number have passed, or for ctx.
func (t *rounds) wait(ctx context.Context, number int) error {
	t.mu.Lock()
	if t.next == number {
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t.waiting[number] = turn
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass gives the turn to the batch that begins with the line number.
func (t *rounds) pass(number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = number
	if turn, waits := t.waiting[number]; waits {
		delete(t.waiting, number)
		close(turn)
	}
}
