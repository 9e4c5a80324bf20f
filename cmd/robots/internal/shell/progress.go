package shell

// What standard error says of what is waited for, if it is a terminal: Waiting for few questions, as check and fetch
// have them, and a Meter for the list of filter.

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
)

// Waiting says on a terminal that a site is waited for, unless answered is called within a second.
func (a *App) Waiting(o fetch.Origin) (answered func() bool) {
	return time.AfterFunc(time.Second, func() {
		if IsTerminal(a.Err) {
			fmt.Fprintf(a.Err, "robots: waiting for %s\n", answer.Visible(o.String()))
		}
	}).Stop
}

// EraseLine goes back to the first column and clears what is there, in the codes of ECMA-48.
const EraseLine = "\r\x1b[K"

// Meter shows on a terminal how far "robots filter" is, on a line that it draws again and again. The zero value shows
// nothing.
type Meter struct {
	Lines atomic.Int64
	to    io.Writer // nil: nothing is drawn
}

// Show starts to draw on errs, if that is a terminal that can rewrite a line, and no other stream is one. origins is
// site.Origins.Progress. hide takes the line away, for the summary to stand in its place.
func (m *Meter) Show(
	in io.Reader, out, errs io.Writer, origins func() (done, pending int, host string, waits time.Duration),
) (hide func()) {
	if IsTerminal(in) || IsTerminal(out) || WidthOf(errs) == 0 {
		return func() {}
	}
	m.to = errs
	stop := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		for ticks := time.Tick(200 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-ticks:
				done, pending, host, waits := origins()
				m.Erase()
				io.WriteString(errs, progress(WidthOf(errs), m.Lines.Load(), done, pending, host, waits))
			}
		}
	})
	return func() {
		close(stop)
		drawing.Wait()
		m.Erase()
	}
}

// Erase takes the line away until it is drawn again, for something else to be written.
func (m *Meter) Erase() {
	if m.to != nil {
		io.WriteString(m.to, EraseLine)
	}
}

// progress is the line that a Meter draws: host has taken longest of the pending origins. It is shorter than a line of
// the terminal, in the last column of which it would wrap, and could not be erased. What says least is last.
func progress(width int, lines int64, done, pending int, host string, waits time.Duration) string {
	text := fmt.Sprintf("origins: %d done, %d pending", done, pending)
	if waits >= time.Second {
		text += fmt.Sprintf(": %s for %s", waits.Truncate(time.Second), answer.Visible(host))
	}
	text += fmt.Sprintf("; %d lines", lines)
	if runes := []rune(text); len(runes) >= width {
		return string(runes[:max(width-2, 0)]) + "…"
	}
	return text
}

// WidthOf is the number of columns of a terminal that can rewrite a line, else 0.
func WidthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return 0
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return max(width, 0)
}
