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
	octets atomic.Int64 // read
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

// draw draws until hide. The number of lines in a file is not known before its end,
// so it is reckoned from the octets that those so far took.
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
			lines, octets := m.lines.Load(), m.octets.Load()
			if size > 0 && octets > 0 {
				m.bar.ChangeMax64(max(lines+1, int64(float64(lines)/float64(octets)*float64(size))))
			}
			m.bar.Set64(lines)
		}
	}
}

// hide takes the bar away.
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

// count returns a reader over in that counts for the meter.
func (m *meter) count(in io.Reader) io.Reader { return countingReader{in, &m.octets} }

type countingReader struct {
	io.Reader
	octets *atomic.Int64
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.octets.Add(int64(n))
	return n, err
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
