package shell

// The line on standard error that shows what is waited for: Await for few questions, as check and fetch have them, and a
// Meter for the list of filter. What else goes to that terminal, answers included, has to go through Meter.Aside, or the
// two would run into each other.

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
)

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

// Meter shows on a terminal how far "robots filter" is, on a line that it draws again and again. The zero
// value counts and shows nothing. Show is called once, before Aside. Add and Skip may be called at
// any time: the goroutine that reads skips, while another one writes.
type Meter struct {
	lines atomic.Int64 // answered and written
	bytes atomic.Int64 // that these and the skipped ones took in the input,
	from  atomic.Int64 // and the skipped ones alone

	mu     sync.Mutex // held while something is written to the terminal
	to     *os.File   // nil: nothing is drawn
	Beside bool       // answers are written to a terminal, too
}

// Show starts to draw on errs, if that is a terminal that can rewrite a line, and no URLs are typed there: a line
// that is drawn would erase what is being typed. origins, which is site.Origins.Progress, tells how many lookups have
// ended and how many are under way, and the host of the oldest of these. hide takes the line away, for the summary to
// stand in its place.
func (m *Meter) Show(
	in io.Reader, out, errs io.Writer, origins func() (done, pending int, host string, waits time.Duration),
) (hide func()) {
	m.Beside = IsTerminal(out)
	if Typed(in, errs, "URLs") || widthOf(errs) == 0 {
		return func() {}
	}
	m.to, _ = errs.(*os.File)
	started, p := time.Now(), progress{size: sizeOf(in)}
	draw := func() {
		p.took = time.Since(started)
		p.lines, p.bytes, p.skipped = m.lines.Load(), m.bytes.Load(), m.from.Load()
		p.done, p.pending, p.host, p.waits = origins()
		width := widthOf(m.to) // which may have changed
		m.mu.Lock()
		fmt.Fprint(m.to, EraseLine, p.line(width-1)) // in the last column, some terminals begin a new line
		m.mu.Unlock()
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

// Add counts lines that were written.
func (m *Meter) Add(lines, bytes int64) {
	m.lines.Add(lines)
	m.bytes.Add(bytes)
}

// Skip counts the bytes of lines that need no answer. They are a part of what was read, but not of the rate
// by which the time that is left is guessed.
func (m *Meter) Skip(bytes int64) {
	m.bytes.Add(bytes)
	m.from.Add(bytes)
}

// sizeOf returns how many bytes are to be read, or 0 if that is not known, as of a pipe. An input that was
// read in part counts from where it stands.
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

// progress is what one drawing of the line shows.
type progress struct {
	lines                int64
	bytes, skipped, size int64 // size is 0 if it is not known
	took                 time.Duration
	done, pending        int           // origins
	host                 string        // of the pending origin that has taken longest,
	waits                time.Duration // and how long
}

// line renders p in at most so many columns. What says least is left out first. Rates and times that are left
// are not shown in the first second, when they would jump.
func (p *progress) line(width int) string {
	lines := fmt.Sprintf("%d lines", p.lines)
	rate, percent, left := "", "", ""
	if p.took >= time.Second {
		rate = fmt.Sprintf(", %.0f/s", float64(p.lines)/p.took.Seconds())
	}
	if p.size > 0 {
		percent = fmt.Sprintf(", %d%%", min(100, 100*p.bytes/p.size))
	}
	if read := p.bytes - p.skipped; p.size > 0 && read > 0 && p.took >= time.Second {
		rest := p.took.Seconds() * float64(max(0, p.size-p.bytes)) / float64(read)
		left = fmt.Sprintf(", %s left", time.Duration(rest)*time.Second)
	}
	origins := fmt.Sprintf("origins: %d done, %d pending", p.done, p.pending)
	if p.waits >= time.Second {
		origins += fmt.Sprintf(": %s for %s", p.waits.Truncate(time.Second), answer.Visible(p.host))
	}
	for _, text := range []string{
		lines + rate + percent + left + "; " + origins,
		lines + percent + left + "; " + origins,
		lines + percent + "; " + origins,
		lines + "; " + origins,
		origins,
	} {
		if utf8.RuneCountInString(text) <= width {
			return text
		}
	}
	return string([]rune(origins)[:max(0, width-1)]) + "…"
}
