package shell

// Few questions over the network, as check and fetch have them: Asked is one, and Await says on a terminal
// what is waited for. For lists there is the Meter of progress.go. filter and serve use Asked alone.

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
)

// Asked is one origin whose robots.txt is being asked for. Result and Err may be read when Done is closed.
type Asked struct {
	Origin fetch.Origin
	// when NewAsked was called, for those who tell how long it takes
	Since  time.Time
	Done   chan struct{} // closed once Result and Err are set
	Result *fetch.Result
	Err    error
}

// NewAsked returns a question that Run, once, has to be called for.
func NewAsked(o fetch.Origin) *Asked {
	return &Asked{Origin: o, Since: time.Now(), Done: make(chan struct{})}
}

// Run asks by lookup, and closes Done. It must be called once.
func (a *Asked) Run(ctx context.Context, lookup func(context.Context, fetch.Origin) (*fetch.Result, error)) {
	defer close(a.Done)
	a.Result, a.Err = lookup(ctx, a.Origin)
}

// Await waits for ask. On a terminal it shows which site it waits for, and how many of all have answered, in
// one line that is gone before anything else is written. What is known within half a second shows nothing.
func (a *App) Await(ask *Asked, all ...*Asked) {
	shown := false
	if width := widthOf(a.Err); width > 0 {
		each(500*time.Millisecond, ask.Done, func() {
			shown = true
			fmt.Fprint(a.Err, EraseLine, waiting(ask, all, width))
		})
	}
	if <-ask.Done; shown {
		io.WriteString(a.Err, EraseLine)
	}
}

// each draws at each tick until done is closed.
func each(tick time.Duration, done <-chan struct{}, draw func()) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			draw()
		}
	}
}

// waiting is the line that Await shows, cut to the columns of a terminal. In the last column it would wrap,
// and could not be erased.
func waiting(ask *Asked, all []*Asked, width int) string {
	text := fmt.Sprintf("%s: waiting for %s", time.Since(ask.Since).Round(time.Second), answer.Visible(ask.Origin.String()))
	answered := 0
	for _, one := range all {
		select {
		case <-one.Done:
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

// EraseLine goes back to the first column and clears what is there, in the codes of ECMA-48.
const EraseLine = "\r\x1b[K"
