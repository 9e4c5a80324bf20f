package shell

// The line on standard error that shows what is waited for: Await for few questions, as check and fetch have them, and a
// Meter for the list of filter. What else goes to that terminal, answers included, has to go through Meter.Aside, or the
// two would run into each other.

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
)

// Asked is one origin whose robots.txt is being asked for. Result, Until and Err may be read when Done is closed.
type Asked struct {
	Origin fetch.Origin
	// when NewAsked was called, for those who tell how long it takes
	Since  time.Time
	Done   chan struct{} // closed once these are set
	Result *fetch.Result
	Until  time.Time // when it is asked for again; zero: no cache knows
	Err    error
}

// NewAsked returns a question that Run, once, has to be called for.
func NewAsked(o fetch.Origin) *Asked {
	return &Asked{Origin: o, Since: time.Now(), Done: make(chan struct{})}
}

// Run asks by lookup, and closes Done. It must be called once.
func (a *Asked) Run(ctx context.Context, lookup func(context.Context, fetch.Origin) (*fetch.Result, time.Time, error)) {
	defer close(a.Done)
	a.Result, a.Until, a.Err = lookup(ctx, a.Origin)
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

// waiting is the line that Await shows.
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
	return cut(text, width)
}

// cut is the beginning of a line. In the last column of a terminal it would wrap, and could not be erased.
func cut(line string, width int) string {
	if text := []rune(line); len(text) >= width {
		return string(text[:max(width-2, 0)]) + "…"
	}
	return line
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

// Meter shows on a terminal how far "robots filter" is, on a line that it draws again and again. The zero value counts
// and shows nothing. Show is called once, before Aside and Add.
type Meter struct {
	mu     sync.Mutex // held while something is written to the terminal, and guards what follows
	to     io.Writer  // nil: nothing is drawn
	now    progress
	Beside bool // answers are written to a terminal, too
}

// Show starts to draw on errs, if that is a terminal that can rewrite a line, and no URLs are typed there. origins is
// site.Origins.Progress. hide takes the line away, for the summary to stand in its place.
func (m *Meter) Show(
	in io.Reader, out, errs io.Writer, origins func() (done, pending int, host string, waits time.Duration),
) (hide func()) {
	m.Beside = IsTerminal(out)
	if Typed(in, errs, "URLs") || widthOf(errs) == 0 {
		return func() {}
	}
	m.to, m.now.size = errs, sizeOf(in)
	started := time.Now()
	draw := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now.took = time.Since(started)
		m.now.done, m.now.pending, m.now.host, m.now.waits = origins()
		fmt.Fprint(m.to, EraseLine, m.now.line(widthOf(m.to))) // whose width may have changed
	}
	stop := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() { each(200*time.Millisecond, stop, draw) })
	return func() {
		close(stop)
		drawing.Wait()
		fmt.Fprint(m.to, EraseLine)
	}
}

// Aside has write write to the terminal, where the line is. The next tick draws it again.
func (m *Meter) Aside(write func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.to != nil {
		fmt.Fprint(m.to, EraseLine)
	}
	return write()
}

func (m *Meter) Add(lines, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.lines += lines
	m.now.bytes += bytes
}

// sizeOf returns how many bytes are to be read, or 0 if that is not known, as of a pipe.
func sizeOf(in io.Reader) int64 {
	f, ok := in.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	at, _ := f.Seek(0, io.SeekCurrent)
	return info.Size() - at
}

type progress struct {
	lines         int64
	bytes, size   int64 // that were read, and in all; 0 if that is not known
	took          time.Duration
	done, pending int           // origins
	host          string        // of the pending origin that has taken longest,
	waits         time.Duration // and how long
}

// line renders p in less than so many columns. What says least is last. In the first second a rate would jump.
func (p *progress) line(width int) string {
	text := fmt.Sprintf("origins: %d done, %d pending", p.done, p.pending)
	if p.waits >= time.Second {
		text += fmt.Sprintf(": %s for %s", p.waits.Truncate(time.Second), answer.Visible(p.host))
	}
	text += fmt.Sprintf("; %d lines", p.lines)
	if p.size > 0 {
		text += fmt.Sprintf(", %d%%", min(100, 100*p.bytes/p.size))
	}
	if p.took >= time.Second {
		text += fmt.Sprintf(", %.0f/s", float64(p.lines)/p.took.Seconds())
	}
	return cut(text, width)
}
