package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/robotsgate/robotsgate/fetch"
)

// output is what one batch of lines, or one command, has to say.
type output struct {
	bytes.Buffer        // for standard output, or another file of answers
	problems     []byte // for standard error, a line each
	status       int
}

func (o *output) worsen(status int) { o.status = max(o.status, status) }

// json writes v and a line end.
func (o *output) json(v any) {
	if d, is := v.(verdict); is {
		o.verdict(&d)
		return
	}
	o.Write(append(appendAny(nil, v), '\n'))
}

// verdict is json for what a service writes most.
func (o *output) verdict(v *verdict) {
	o.Grow(1 << 10) // most records are shorter
	r := v.record()
	o.Write(append(r.appendJSON(o.AvailableBuffer()), '\n'))
}

// malformed reports a line of the input that could not be answered.
func (o *output) malformed(number int, err error) {
	o.problems = fmt.Appendf(o.problems, "robots: line %d: %s\n", number, visible(err.Error()))
	o.worsen(exitUnknown)
}

// emit writes o where it belongs, and makes its status the command's. Problems go first:
// on a terminal they are above the lines that they are missing from. If standard error is
// gone, the answers still count.
func (a *app) emit(o *output) error {
	a.worsen(o.status)
	if len(o.problems) > 0 {
		a.err.Write(o.problems)
	}
	if o.Len() == 0 {
		return nil // an empty write is a system call, too
	}
	_, err := a.out.Write(o.Bytes())
	return err
}

// complain reports an error that does not end the run.
func (o *output) complain(err error) {
	if err != nil {
		o.warn(err)
		o.worsen(exitUnknown)
	}
}

// warn reports what makes no answer wrong.
func (o *output) warn(err error) {
	if err != nil {
		o.problems = fmt.Appendf(o.problems, "robots: %s\n", visible(err.Error()))
	}
}

// maxFile bounds a file that is read from disk: 32 times what any crawler reads of one.
const maxFile = 16 << 20

// readFile reads a robots.txt file, or standard input for a dash.
func (a *app) readFile(name string) ([]byte, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes: crawlers read %d", name, maxFile, fetch.MaxBytes)
	}
	return data, err
}
