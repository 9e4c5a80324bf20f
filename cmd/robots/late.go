package main

// filter --unordered: the lines of a host that keeps silent wait in a file until all others are answered, and not with
// those behind them.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

const (
	patience = time.Second // for the hosts of a batch
	maxLate  = 4 << 30     // bytes of lines that are put aside; beyond that they are waited for
)

// lateLines are the lines that were put aside, each behind its number. Once again is set, nothing is put aside.
type lateLines struct {
	again bool

	mu   sync.Mutex // guards what follows
	file *os.File
	to   *bufio.Writer
	size int64
}

// newLateLines makes the file, which has no name any longer where the system lets it be removed.
func newLateLines() (*lateLines, error) {
	file, err := os.CreateTemp("", "robots-late-*")
	if err != nil {
		return nil, err
	}
	os.Remove(file.Name())
	return &lateLines{file: file, to: bufio.NewWriterSize(file, shell.BatchBytes)}, nil
}

// add puts a line aside, if there is room, and reports whether it did.
func (l *lateLines) add(number int, text string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size += int64(len(text)); l.size > maxLate {
		return false, nil
	}
	_, err := fmt.Fprintf(l.to, "%d\t%s\n", number, text)
	return err == nil, err
}

// rewind ends the putting aside. What it returns reads the lines.
func (l *lateLines) rewind() (io.Reader, error) {
	l.again = true
	err := l.to.Flush()
	if err == nil {
		_, err = l.file.Seek(0, io.SeekStart)
	}
	return l.file, err
}

func (l *lateLines) Close() {
	l.file.Close()
	os.Remove(l.file.Name()) // where it could not be removed while it was open
}

// numbered takes the number in front of a line that was put aside.
func numbered(l shell.Line) shell.Line {
	number, text, _ := strings.Cut(l.Text, "\t")
	l.Number, _ = strconv.Atoi(number)
	l.Text = text
	return l
}

// maxNumber is how much longer a line may be with its number.
const maxNumber = 20

// inTime waits for the lookups of a batch, and puts the lines aside whose hosts take longer than patience.
func (f *filterer) inTime(ctx context.Context, questions []question) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	passed := false
	for i := range questions {
		q := &questions[i]
		for q.lookup != nil && q.Result == nil && !q.late {
			if passed {
				select {
				case <-q.lookup.Done:
					q.Result = q.lookup.Result
					continue
				default:
				}
				aside, err := f.late.add(q.Number, q.Text)
				if err != nil {
					return err
				}
				if q.late = aside; !aside {
					if err := f.await(ctx, q); err != nil {
						return err
					}
				}
				continue
			}
			select {
			case <-q.lookup.Done:
				q.Result = q.lookup.Result
			case <-late.C:
				passed = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return ctx.Err()
}

// await waits for one lookup.
func (f *filterer) await(ctx context.Context, q *question) error {
	select {
	case <-q.lookup.Done:
		q.Result = q.lookup.Result
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerLate answers the lines that were put aside.
func (f *filterer) answerLate(ctx context.Context) error {
	from, err := f.late.rewind()
	if err != nil {
		return errors.Join(errors.New("the lines that were put aside are lost"), err)
	}
	lines := shell.LineFilter[*filtered]{MaxLine: answer.MaxURL + maxNumber, Answer: f.answer, Write: f.write}
	return lines.Run(ctx, from)
}
