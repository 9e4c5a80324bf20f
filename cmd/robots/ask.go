package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/robotsgate/robotsgate/fetch"
)

// asked is one origin whose robots.txt is being asked for.
type asked struct {
	origin fetch.Origin
	since  time.Time
	done   chan struct{} // closed once result and err are set
	result *fetch.Result
	err    error
}

func newAsked(o fetch.Origin) *asked {
	return &asked{origin: o, since: time.Now(), done: make(chan struct{})}
}

// run asks by lookup.
func (a *asked) run(ctx context.Context, lookup func(context.Context, fetch.Origin) (*fetch.Result, error)) {
	defer close(a.done)
	a.result, a.err = lookup(ctx, a.origin)
}

// await waits for ask. On a terminal it shows which site it waits for, and how many of all
// have answered, in one line that is gone before anything else is written.
func (a *app) await(ask *asked, all ...*asked) {
	errs, width := a.err, widthOf(a.err)
	if width == 0 {
		<-ask.done
		return
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for shown := false; ; shown = true {
		select {
		case <-ask.done:
			if shown {
				io.WriteString(errs, "\r\x1b[K")
			}
			return
		case <-tick.C:
			fmt.Fprintf(errs, "\r\x1b[K%s", waiting(ask, all, width))
		}
	}
}

// waiting is the line that await shows, cut to the columns of a terminal.
func waiting(ask *asked, all []*asked, width int) string {
	text := fmt.Sprintf("%s: waiting for %s", time.Since(ask.since).Round(time.Second), visible(ask.origin.String()))
	answered := 0
	for _, one := range all {
		select {
		case <-one.done:
			answered++
		default:
		}
	}
	if len(all) > 1 {
		text = fmt.Sprintf("%d of %d sites answered, %s", answered, len(all), text)
	}
	return text[:min(len(text), width-1)] // origins are ASCII
}

// widthOf is the number of columns of a terminal that can rewrite a line, else 0.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 0
	case width < 20: // some terminals do not tell
		return 80
	}
	return width
}
