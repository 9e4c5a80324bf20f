package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// numbered renders lines as "NUMBER:TEXT" and marks those that were cut.
func numbered(maxLine int, out *strings.Builder) *LineFilter[string] {
	return &LineFilter[string]{
		MaxLine: maxLine,
		Answer: func(_ context.Context, lines []Line) (string, error) {
			var s string
			for _, l := range lines {
				if len(l.Text) > maxLine {
					l.Text = l.Text[:maxLine] + "…"
				}
				s += fmt.Sprintf("%d:%s ", l.Number, l.Text)
			}
			return s, nil
		},
		Write: func(s string) error { out.WriteString(s); return nil },
	}
}

func TestLinesAreCutAtLineEnds(t *testing.T) {
	long := strings.Repeat("x", BatchBytes)
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"one", "a\n", "1:a "},
		{"last without an end", "a\nb", "1:a 2:b "},
		{"empty lines count", "\n\na\n", "1: 2: 3:a "},
		{"CRLF", "a\r\nb\r\n", "1:a 2:b "},
		{"CR alone is no end", "a\rb\n", "1:a\rb "},
		{"as long as allowed", "12345678\n", "1:12345678 "},
		{"as long as allowed, CRLF", "12345678\r\n", "1:12345678 "},
		{"too long by one", "123456789\na\n", "1:12345678… 2:a "},
		{"too long by one, CRLF", "123456789\r\na\n", "1:12345678… 2:a "},
		{"too long by two", "1234567890\na\n", "1:12345678… 2:a "},
		{"longer than the buffer", "a\n" + long + long + "\nb\n", "1:a 2:xxxxxxxx… 3:b "},
		{"longer than the buffer, no end", long + "y", "1:xxxxxxxx… "},
		{"NUL", "a\x00b\n", "1:a\x00b "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := numbered(8, &out).Run(t.Context(), strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
		})
	}
}

// endless is input without an end, of lines of so many bytes; it counts what was taken
// of it.
type endless struct{ line, bytes int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
		if (e.bytes+i+1)%e.line == 0 {
			p[i] = '\n'
		}
	}
	e.bytes += len(p)
	return len(p), nil
}

// While the first line waits, reading stops at the window: memory does not grow with the
// input, whether that has many lines or long ones.
func TestReadingWaitsBehindASlowAnswer(t *testing.T) {
	for _, c := range []struct{ line, most int }{
		// One batch is waited for, one is about to be queued, and the reader has a buffer.
		{16, (maxBatches+2)*batchLines*16 + BatchBytes},
		{1 << 20, maxHeld + 2<<20 + BatchBytes},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			f := LineFilter[int]{
				MaxLine: c.line,
				Answer: func(ctx context.Context, lines []Line) (int, error) {
					if lines[0].Number == 1 {
						<-ctx.Done()
					}
					return len(lines), ctx.Err()
				},
				Write: func(int) error { return errors.New("nothing is answered in order yet") },
			}
			in := &endless{line: c.line}
			done := make(chan error)
			go func() { done <- f.Run(ctx, in) }()
			synctest.Wait()
			if in.bytes > c.most || in.bytes < c.most/2 {
				t.Errorf("lines of %d: %d bytes were read ahead, want about %d and no more", c.line, in.bytes, c.most)
			}
			cancel()
			if err := <-done; err != context.Canceled {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
	}
}

// Behind a slow producer, a line is answered before the next one comes.
func TestALineIsAnsweredWithoutWaitingForMore(t *testing.T) {
	r, w := io.Pipe()
	answered := make(chan string)
	f := numbered(100, new(strings.Builder))
	f.Write = func(s string) error { answered <- s; return nil }
	done := make(chan error)
	go func() { done <- f.Run(t.Context(), r) }()
	for i, text := range []string{"line\n", "line\nli", "ne\n"} { // half a line is none yet
		io.WriteString(w, text)
		if got, want := <-answered, fmt.Sprintf("%d:line ", i+1); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheFirstErrorEndsTheRun(t *testing.T) {
	boom := errors.New("boom")
	in := strings.Repeat("a\n", 10_000)
	failing := func(change func(*LineFilter[string])) error {
		f := numbered(100, new(strings.Builder))
		change(f)
		return f.Run(t.Context(), strings.NewReader(in))
	}
	if err := failing(func(f *LineFilter[string]) { f.Write = func(string) error { return boom } }); err != boom {
		t.Errorf("write: got %v, want %v", err, boom)
	}
	if err := failing(func(f *LineFilter[string]) {
		f.Answer = func(context.Context, []Line) (string, error) { return "", boom }
	}); err != boom {
		t.Errorf("answer: got %v, want %v", err, boom)
	}
	broken := io.MultiReader(strings.NewReader("a\nb\nhalf"), iotest.ErrReader(boom))
	var out strings.Builder
	if err := numbered(100, &out).Run(t.Context(), broken); err != boom {
		t.Errorf("read: got %v, want %v", err, boom)
	}
	if out.String() != "1:a 2:b " {
		t.Errorf("before the error: got %q, want the lines read", out.String())
	}
}
