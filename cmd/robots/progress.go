package main

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// meter shows on a terminal how far a run over standard input is: lines, their rate,
// and, where the input is a file, how long it will take.
type meter struct {
	lines  atomic.Int64 // answered and written
	octets atomic.Int64 // that these took in the input
	bar    *progressbar.ProgressBar
	stop   chan struct{}
	ended  chan struct{}
}

// show starts to draw on errs, if that is a terminal.
func (m *meter) show(in io.Reader, errs io.Writer) {
	if !isTerminal(errs) {
		return
	}
	size := sizeOf(in)
	m.bar = progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(errs),
		progressbar.OptionSetDescription("robots filter"),
		progressbar.OptionSetItsString("lines"),
		progressbar.OptionShowIts(),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(20),
		progressbar.OptionClearOnFinish(),
	)
	m.stop, m.ended = make(chan struct{}), make(chan struct{})
	go m.draw(size)
}

// draw draws until hide.
func (m *meter) draw(size int64) {
	defer close(m.ended)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			m.bar.Exit()
			return
		case <-tick.C:
			lines := m.lines.Load()
			if size > 0 && lines > 0 {
				m.bar.ChangeMax64(max(lines+1, expected(lines, m.octets.Load(), size)))
			}
			m.bar.Set64(lines)
		}
	}
}

// hide takes the bar away, for the summary to stand in its place.
func (m *meter) hide() {
	if m.bar == nil {
		return
	}
	close(m.stop)
	<-m.ended
	m.bar.Clear()
}

// clear makes room for a line of text on the terminal.
func (m *meter) clear() {
	if m.bar != nil {
		m.bar.Clear()
	}
}

// add counts lines that were written.
func (m *meter) add(lines, octets int64) {
	m.octets.Add(octets) // first, or draw could divide by none
	m.lines.Add(lines)
}

// expected is how many lines an input of size octets has, if they go on as they began.
func expected(lines, octets, size int64) int64 {
	return int64(float64(lines) / float64(octets) * float64(size))
}

// sizeOf is the number of octets that are to be read, or -1 where that is not known.
func sizeOf(in io.Reader) int64 {
	f, ok := in.(*os.File)
	if !ok {
		return -1
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}
