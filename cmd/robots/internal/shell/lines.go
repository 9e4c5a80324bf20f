package shell

// A LineFilter is how filter, match and the streams of serve go through a list of any length. One goroutine
// reads and cuts the input into batches. Each batch has a goroutine that answers it. The goroutine of Run
// writes the answers, in order.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"
)

// Line is one line of input, without its end.
type Line struct {
	Number int // counted from 1
	Text   string
}

// Bounds of what a LineFilter holds: a batch is closed at either of the first two, and reading waits while maxBatches
// are unanswered or unwritten, or as many as could have maxHeld bytes. With lines of a URL each, that is 65,536 lines.
const (
	batchLines = 128
	BatchBytes = 64 << 10
	maxBatches = 512
	maxHeld    = 64 << 20
)

// LineFilter reads lines, has them answered in parallel, and writes the answers in order. Where the first unanswered line has
// to wait, those behind it are answered up to Ahead batches ahead, and then reading waits too.
type LineFilter[A any] struct {
	MaxLine int // bytes; of a longer line one byte more is kept, and not the rest
	Ahead   int // batches; if zero, 512, or fewer for lines that may be long

	// Answer is called from several goroutines at once, for a batch of lines each. Its error ends the run,
	// with nothing of the batch written.
	Answer func(context.Context, []Line) (A, error)

	// Skip, if not nil, reads from the beginning of the input what needs no answer, and returns how many lines that was. It
	// is called before Answer, on the goroutine that reads.
	Skip func(context.Context, *bufio.Reader) (int, error)

	// Write is called for one batch after the other, on the goroutine of Run. Its error ends the run.
	Write func(A) error

	// Idle, if not nil, is called on the goroutine of Run when no batch is there to be written. A stream
	// sends then what Write has kept back: its client may wait for that before it goes on.
	Idle func() error

	// Interrupt, if not nil, ends a Read that is under way. Then Run returns once nothing is read any longer. A handler
	// needs that, since net/http takes the body back when it returns. Standard input cannot be interrupted.
	Interrupt func()
}

// batch is what Answer works on.
type batch[A any] struct {
	lines  []Line
	done   chan struct{} // closed once answer and err are set
	answer A
	err    error
}

// Run ends at the end of input, at the first error, or with ctx: then it returns at once, and what was written ends
// with a whole line. The goroutine that reads may outlive it in a Read that nothing can interrupt.
func (f *LineFilter[A]) Run(ctx context.Context, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	// The queue bounds how far reading is ahead.
	queue := make(chan *batch[A], cmp.Or(f.Ahead, min(maxBatches, maxHeld/(BatchBytes+f.MaxLine))))
	var reader sync.WaitGroup
	reader.Go(func() { f.read(ctx, r, queue) })
	err := f.write(ctx, queue)
	cancel()
	if err != nil && f.Interrupt != nil {
		f.Interrupt()
		reader.Wait()
	}
	return err
}

// write writes what is on queue, up to the error that ended reading.
func (f *LineFilter[A]) write(ctx context.Context, queue <-chan *batch[A]) error {
	for {
		if f.Idle != nil && len(queue) == 0 {
			if err := f.Idle(); err != nil {
				return err
			}
		}
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
		if err := f.Write(b.answer); err != nil {
			return err
		}
	}
}

// read puts batches on queue in order, each with a goroutine that answers it, and as the last one the error
// that ended reading: io.EOF, if all is well. So write sees it only behind everything that was read.
func (f *LineFilter[A]) read(ctx context.Context, r io.Reader, queue chan<- *batch[A]) {
	in := bufio.NewReaderSize(r, BatchBytes)
	if first, _ := in.Peek(1); string(first) == "\xEF" { // only then wait for more
		if mark, _ := in.Peek(3); string(mark) == "\uFEFF" {
			in.Discard(len(mark)) // a byte order mark, as some editors save a list
		}
	}
	number := 1
	var err error
	if f.Skip != nil {
		var skipped int
		skipped, err = f.Skip(ctx, in)
		number += skipped
	}
	put := func(b *batch[A]) bool {
		select {
		case queue <- b:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for err == nil {
		b := &batch[A]{done: make(chan struct{})}
		if err = f.fill(b, in, number); len(b.lines) == 0 {
			break
		}
		number += len(b.lines)
		if !put(b) {
			return
		}
		go func() {
			defer close(b.done)
			b.answer, b.err = f.Answer(ctx, b.lines)
		}()
	}
	last := &batch[A]{err: err, done: make(chan struct{})}
	close(last.done)
	put(last)
}

// fill reads lines into b until it is full, or until the next line is not there yet, or only half of it: behind a slow
// producer an answer must not wait for a full batch.
func (f *LineFilter[A]) fill(b *batch[A], in *bufio.Reader, number int) error {
	for size := 0; len(b.lines) < batchLines && size < BatchBytes; {
		text, err := ReadLine(in, f.MaxLine)
		if err != nil && (err != io.EOF || len(text) == 0) {
			return err // half a line, or none behind the last line end
		}
		b.lines = append(b.lines, Line{number + len(b.lines), string(text)})
		size += len(text)
		if err != nil {
			return err
		}
		if ahead, _ := in.Peek(in.Buffered()); bytes.IndexByte(ahead, '\n') < 0 {
			break
		}
	}
	return nil
}

// ReadLine returns the next line without its LF or CRLF. Of a line longer than maxLine one byte more is returned, and
// the rest is dropped. The error is io.EOF with a last line that has no end, too.
func ReadLine(in *bufio.Reader, maxLine int) (text []byte, err error) {
	for err = bufio.ErrBufferFull; err == bufio.ErrBufferFull; {
		var part []byte
		part, err = in.ReadSlice('\n')
		text = append(text, part[:min(len(part), maxLine+len("+\r\n")-len(text))]...)
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	return text[:min(len(text), maxLine+1)], err
}
