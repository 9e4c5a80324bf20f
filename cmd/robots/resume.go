package main

// --output FILE --resume: where an earlier run of filter has ended is found out from what it wrote, and from
// nothing else. So it works after a kill -9, too. What has to hold for that is in filter.go: refused lines
// are written before the allowed ones of their batch, and both files grow in the order of the list.

import (
	"bufio"
	"bytes"
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

// answers is a file that holds an answer on each line. It is written by filter, and read with --resume
// before.
type answers struct {
	*os.File
	in    *bufio.Reader
	lines int   // that were read
	end   int64 // of the last of them
}

// create opens a file to be written, and which is not one of those in use. how is added to the flags: without
// one, what it holds is kept. It looks before it opens: robots filter --refused urls.txt < urls.txt would
// empty the list before the first line is read, and exit with 0. Only files are compared: /dev/null, or a
// terminal, may be in use more than once.
func create(name string, how int, used ...any) (*answers, error) {
	is, err := os.Stat(name)
	for _, u := range used {
		if u, isFile := u.(interface{ Stat() (fs.FileInfo, error) }); isFile && err == nil && is.Mode().IsRegular() {
			if other, err := u.Stat(); err == nil && os.SameFile(is, other) {
				return nil, fmt.Errorf("%s is read or written already: name another file", name)
			}
		}
	}
	mode := os.O_WRONLY // of a pipe that was opened to be read, too, nobody would tell that its reader has gone
	if how == 0 {
		mode = os.O_RDWR
	}
	file, err := open(name, mode|how)
	if err != nil {
		return nil, err
	}
	return &answers{File: file, in: bufio.NewReaderSize(file, shell.BatchBytes)}, nil
}

// next returns the next line, with its end. The error is io.EOF at the end of the file, and for a line without an end:
// a run was killed while it wrote that.
func (a *answers) next() ([]byte, error) {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	a.lines++
	a.end += int64(len(line))
	return line, nil
}

// cut removes what follows the last line that was read: half a line, or lines that are asked about again. And
// it goes there: else the next answer would be written where the buffered reader has stopped.
func (a *answers) cut() error {
	if err := a.Truncate(a.end); err != nil {
		return err
	}
	_, err := a.Seek(a.end, io.SeekStart)
	return err
}

// skip reads the lines that an earlier run has answered, and returns how many. Its output is
// a part of the list in the same order, so each of its lines is looked up behind the one
// before. Such a search never ends later than the earlier run did: no line is left out. The
// lines between were refused. Behind the last allowed line, the run may have refused some
// more; they are cut off the file of the refused lines and asked about again. Neither file is
// changed if the list is another.
func (f *filterer) skip(ctx context.Context, in *bufio.Reader) (int, error) {
	// First what was allowed: it tells how far the run came. Without --refused there is nothing more to find
	// out, and lines behind the last allowed one that were refused are refused again.
	list := list{in: in}
	for {
		last, err := f.output.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		text := bytes.TrimSuffix(last, []byte("\n"))
		isAbout := func(_ int, line []byte) bool { return bytes.Equal(line, text) }
		// A verdict has the number of its line. The URL in it may be on many lines, and is not as the line
		// has it.
		if f.JSON {
			var v answer.Verdict
			if err := json.Unmarshal(last, &v); err != nil {
				return 0, fmt.Errorf("%s: line %d: %w", f.output.Name(), f.output.lines, err)
			}
			isAbout = func(number int, _ []byte) bool { return number == v.Number }
		}
		err = list.find(ctx, isAbout)
		if err == io.EOF {
			err = fmt.Errorf("%s: standard input holds no line %d: %s", f.output.Name(), f.output.lines, sameList)
		}
		if err != nil {
			return 0, err
		}
	}
	// Whatever can show that the list is another comes before cut, which is called last.
	cut := f.output.cut
	if f.refusals != nil {
		// What was not allowed up to here is in the other file, one line each, or that is the file of another
		// list.
		for range list.others {
			_, err := f.refusals.next()
			if err == io.EOF {
				err = fmt.Errorf("%s has %d lines, and %d were refused: %s",
					f.refusals.Name(), f.refusals.lines, list.others, sameList)
			}
			if err != nil {
				return 0, err
			}
		}
		cut = func() error { return errors.Join(f.output.cut(), f.refusals.cut()) }
	}
	// The lines that are left keep their numbers: verdicts and messages name those of the whole list. And the
	// bytes of those before are in the percentage that the meter shows, but not in its rate.
	f.skipped.Store(int64(list.number))
	f.meter.Skip(list.bytes)
	return list.number, cut()
}

const sameList = "--resume needs the same list and flags"

// list is an input that is searched from its beginning to its end. What is behind the line found last can be
// read from in.
type list struct {
	in     *bufio.Reader
	text   []byte
	number int   // of the line read last
	bytes  int64 // read
	others int   // lines that are neither empty nor were found
}

// find reads on to the line that is wanted. The error is io.EOF if there is none. It reads lines as
// LineFilter does, or their numbers would differ. isWanted must not keep the text, whose memory the next line
// uses. A line that is too long was malformed to the earlier run, and cannot be among those that it allowed.
func (l *list) find(ctx context.Context, isWanted func(number int, text []byte) bool) error {
	for ctx.Err() == nil {
		text, tooLong, err := shell.AppendLine(l.text[:0], l.in, answer.MaxURL)
		if err != nil && (err != io.EOF || len(text) == 0) {
			return err
		}
		l.text = text
		l.number++
		l.bytes += int64(len(text) + len("\n")) // a little less with CRLF; it is for the meter alone
		switch text := bytes.TrimSpace(text); {
		case len(text) == 0:
		case !tooLong && isWanted(l.number, text):
			return nil
		default:
			l.others++
		}
	}
	return ctx.Err()
}
