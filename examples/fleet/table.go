package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// table shows what the workers do: on a terminal in place, elsewhere in a line a second.
type table struct {
	out     io.Writer
	web     *web
	start   time.Time
	killed  int            // the worker, from 1; 0: none yet
	drawn   int            // lines above the cursor
	due     time.Duration  // when the last line was due, if not on a terminal
	reading sync.WaitGroup // what the workers say

	mu     sync.Mutex // guards what follows
	counts [workers]struct{ sent, refused, claimed, failed int }
}

// hear is told of each line of a worker.
func (t *table) hear(worker int, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counts[worker]
	switch what, _, _ := strings.Cut(line, " "); what {
	case "sent":
		c.sent++
	case "refused":
		c.refused++
	case "claimed":
		c.claimed++
	case "failed":
		c.failed++
	}
}

// show is called from time to time, with the number of URLs that are known. It returns how many
// of them are done.
func (t *table) show(known int64) (done int) {
	a := t.web.account()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.counts {
		done += c.sent + c.refused
	}
	since := time.Since(t.start)
	urls := fmt.Sprintf("%d of %d URLs done", done, known)
	if isTerminal(t.out) {
		t.draw(fmt.Sprintf("%s\n%s\n", t.rows(a), urls))
	} else if since >= t.due+time.Second {
		t.due += time.Second
		fmt.Fprintf(t.out, "%2.0f s: %s, %s\n", since.Seconds(), sum(a), urls)
	}
	return done
}

// last shows how it ended.
func (t *table) last() {
	a := t.web.account()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draw(t.rows(a) + fmt.Sprintf("\n%.1f s\n", time.Since(t.start).Seconds()))
}

// draw replaces what was drawn before.
func (t *table) draw(text string) {
	if t.drawn > 0 {
		fmt.Fprintf(t.out, "\x1b[%dA\x1b[J", t.drawn)
	}
	fmt.Fprint(t.out, text)
	t.drawn = strings.Count(text, "\n")
}

func (t *table) rows(a account) string {
	var b strings.Builder
	b.WriteString("worker   pages  refused  claimed  failed\n")
	for i, c := range t.counts {
		fmt.Fprintf(&b, "%6d  %6d  %7d  %7d  %6d", i+1, c.sent, c.refused, c.claimed, c.failed)
		if i+1 == t.killed {
			b.WriteString("  killed")
		}
		b.WriteString("\n")
	}
	return b.String() + sum(a)
}

func sum(a account) string {
	return fmt.Sprintf("%d sites met, %.2f robots.txt fetches each, least gap %.3f s",
		a.met, float64(a.robots)/float64(max(a.met, 1)), a.gap.Seconds())
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
