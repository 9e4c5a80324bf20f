package shell

// What a subcommand writes is first put into an Output, and then written by Emit in one piece: so answers
// that are found in parallel come out whole, and in order.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
)

// Output is what one batch of lines, or one command, has to say, and the exit status that it stands for. It
// is not safe for concurrent use: each batch has its own. The zero value is empty and stands for ExitOK.
type Output struct {
	bytes.Buffer              // for standard output, or another file of answers
	Problems     bytes.Buffer // for standard error, a line each
	status       int
}

// Worsen makes the status of o at least as bad as status. Emit takes it over into that of the App.
func (o *Output) Worsen(status int) { o.status = max(o.status, status) }

func (o *Output) JSON(v any) { answer.WriteJSON(&o.Buffer, v) }

// Field writes a line for people, unless the value is empty.
func (o *Output) Field(name, value string) {
	if value != "" {
		fmt.Fprintf(o, "  %-14s %s\n", name, answer.Visible(value))
	}
}

func (o *Output) Verdict(v *answer.Verdict) { v.WriteJSON(&o.Buffer) }

// Emit writes o where it belongs, and makes its status the command's. Problems go first: on a terminal they are above
// the lines that they are missing from. If standard error is gone, the answers still count.
func (a *App) Emit(o *Output) error {
	a.Worsen(o.status)
	if o.Problems.Len() > 0 {
		a.Err.Write(o.Problems.Bytes())
	}
	if o.Len() == 0 {
		return nil // an empty write is a system call, too
	}
	_, err := a.Out.Write(o.Bytes())
	return err
}

// Complain reports an error that does not end the run but has to show in the exit status. Without an error it
// does nothing, and so does Warn.
func (o *Output) Complain(err error) {
	if err != nil {
		o.Warn(err)
		o.Worsen(ExitUnknown)
	}
}

// Warn reports what makes no answer wrong, and leaves the status as it is.
func (o *Output) Warn(err error) {
	if err != nil {
		fmt.Fprintf(&o.Problems, "robots: %s\n", answer.Visible(err.Error()))
	}
}

// maxFile bounds a file that is read from disk: 32 times what any crawler reads of one.
const maxFile = 16 << 20

// ReadFile reads a robots.txt file, or standard input for a dash. A file that is too large is an error, and
// never read in part. The goroutine that reads may outlive ctx, as that of LineFilter.Run may.
func (a *App) ReadFile(ctx context.Context, name string) ([]byte, error) {
	in := a.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	var data []byte
	var err error
	read := make(chan struct{})
	go func() {
		data, err = io.ReadAll(io.LimitReader(in, maxFile+1))
		close(read)
	}()
	select {
	case <-read:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes: crawlers read %d", name, maxFile, answer.MaxFile)
	}
	return data, err
}

// StatusOf is the exit status that v stands for. A refusal because robots.txt is unreachable is "could not
// find out": the site has not said no. So is a question that was malformed, which has no reason.
func StatusOf(v *answer.Verdict) int {
	switch v.Outcome() {
	case "allowed":
		return ExitOK
	case "refused":
		return ExitRefused
	}
	return ExitUnknown
}

// IsTerminal reports whether w, a reader or a writer, is a terminal. Colours and progress are shown only
// there. What is no *os.File, as in tests, is none.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// palette colours text, or leaves it alone.
type palette struct{ On bool }

// Palette is that for standard output, as --color says. By default only terminals get colours, unless $NO_COLOR
// (https://no-color.org) is set to anything or the terminal cannot show them.
func (a *App) Palette() palette {
	auto := IsTerminal(a.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return palette{a.Color == "always" || a.Color != "never" && auto}
}

func (p palette) paint(code, s string) string {
	if !p.On {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) Good(s string) string { return p.paint("32", s) } // green
func (p palette) bad(s string) string  { return p.paint("31", s) } // red

func (p palette) Verdict(allowed bool) string {
	if allowed {
		return p.Good("allowed")
	}
	return p.bad("refused")
}
