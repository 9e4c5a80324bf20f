package main

// filter --output FILE --resume: where an earlier run has ended is found out from what it wrote, and from nothing else. So
// it works after a kill -9, too. filterer.write sees to what has to hold for that: refused lines are written before the
// allowed ones of their batch.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// create opens a file to be written, which is none of those in use. how is for os.OpenFile. It looks before it opens:
// robots filter --refused urls.txt < urls.txt would empty the list before the first line is read, and exit with 0. Only
// files are compared: /dev/null, or a terminal, may be in use more than once.
func create(name string, how int, used ...any) (*os.File, error) {
	is, err := os.Stat(name)
	for _, u := range used {
		if u, isFile := u.(*os.File); isFile && err == nil && is.Mode().IsRegular() {
			if other, err := u.Stat(); err == nil && os.SameFile(is, other) {
				return nil, fmt.Errorf("%s is read or written already: name another file", name)
			}
		}
	}
	f, err := os.OpenFile(name, how|os.O_CREATE, 0o666) // less the umask, as for any output
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: add --overwrite to replace it", name)
	}
	return f, err
}

// answers is a file of an earlier run, with an answer on each line.
type answers struct {
	*os.File
	in    *bufio.Reader
	lines int   // that were read
	end   int64 // of the last of them
}

func readAgain(f *os.File) *answers {
	return &answers{File: f, in: bufio.NewReaderSize(f, shell.BatchBytes)}
}

// next returns the next line. The error is io.EOF for a line without an end, too: a run was killed while it wrote that.
func (a *answers) next() ([]byte, error) {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	a.lines++
	a.end += int64(len(line))
	return line[:len(line)-1], nil
}

// cut removes what follows the last line that was read, and goes there.
func (a *answers) cut() error {
	if err := a.Truncate(a.end); err != nil {
		return err
	}
	_, err := a.Seek(a.end, io.SeekStart)
	return err
}

const sameList = "--resume needs the same list and flags"

// skip reads the lines that an earlier run has answered, and returns how many. Its output is a part of the list in the
// same order, so each of its lines is looked up behind the one before. Such a search never ends later than the earlier run
// did: no line is left out. The lines between were refused. Those behind the last allowed one are asked about again.
func (f *filterer) skip(ctx context.Context, in *bufio.Reader) (number int, err error) {
	output, refused := readAgain(f.output), 0
	line, err := output.next()
	for ; err == nil; line, err = output.next() {
		// A verdict has the number of its line: its URL may be on many lines, and written otherwise there.
		var verdict struct{ Number int }
		if f.JSON {
			if err := json.Unmarshal(line, &verdict); err != nil {
				return 0, fmt.Errorf("%s: line %d: %w", output.Name(), output.lines, err)
			}
		}
		for found := false; !found; {
			text, err := shell.ReadLine(in, answer.MaxURL)
			switch {
			case err == io.EOF && len(text) == 0:
				return 0, fmt.Errorf("%s: standard input holds no line %d: %s", output.Name(), output.lines, sameList)
			case err != nil && err != io.EOF || ctx.Err() != nil:
				return 0, cmp.Or(ctx.Err(), err)
			}
			number++
			text = bytes.TrimSpace(text)
			found = f.JSON && number == verdict.Number || !f.JSON && bytes.Equal(text, line)
			if !found && len(text) > 0 {
				refused++
			}
		}
	}
	if err != io.EOF {
		return 0, err
	}
	f.skipped.Store(int64(number))
	close(f.turn(number + 1))
	return number, f.cut(output, refused)
}

// cut takes off both files what is asked about again. Before that comes whatever can show that the list is another.
func (f *filterer) cut(output *answers, refused int) error {
	if f.refusals == nil {
		return output.cut()
	}
	refusals := readAgain(f.refusals)
	for range refused {
		if _, err := refusals.next(); err != nil {
			return fmt.Errorf("%s: %w behind line %d, and %d were refused: %s",
				f.refusals.Name(), err, refusals.lines, refused, sameList)
		}
	}
	return errors.Join(output.cut(), refusals.cut())
}
