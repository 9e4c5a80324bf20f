package policy

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// An effort counts the steps of searching a target.
type effort struct {
	steps int    // see question.index
	table *table // of the target, once it was searched often
}

// A table tells where in a target each byte stands, for the bytes below 0x80: patterns have no
// others. An element has 64 places as bits. With a table, finding a piece of a pattern takes as
// long as comparing it with a 64th of the target, whatever the two consist of.
type table [][128]uint64

// tables keeps what earlier questions are done with.
var tables = sync.Pool{New: func() any { return new(table) }}

const (
	manySteps = 1 << 10  // after them, a table is made
	minTable  = 256      // bytes of the shortest target with a table
	maxTable  = 64 << 10 // bytes of the longest, whose table takes 16 times as much
)

func newTable(target string) *table {
	t := tables.Get().(*table)
	n := len(target)/64 + 2 // the last one is empty
	*t = slices.Grow((*t)[:0], n)[:n]
	clear(*t)
	for i := range len(target) {
		if c := target[i]; c < 0x80 {
			(*t)[i/64][c] |= 1 << (i % 64)
		}
	}
	return t
}

// done gives the table back.
func (e *effort) done() {
	if e.table != nil {
		tables.Put(e.table)
	}
}

// index returns where piece stands first in the target, at from or behind, or -1. It counts
// as a step what compares up to 64 places with a byte of piece, or looks at 64 bytes.
func (q *question) index(piece string, from int) int {
	if n := len(q.target); q.steps >= manySteps && n >= minTable && n <= maxTable {
		return q.lookUp(piece, from)
	}
	i := strings.Index(q.target[from:], piece)
	if i >= 0 {
		q.steps += 1 + i/64
		return i + from
	}
	q.steps += 1 + (len(q.target)-from)/64
	return i
}

// lookUp is index for a target with a table.
func (q *question) lookUp(piece string, from int) int {
	if q.table == nil {
		q.table = newTable(q.target)
	}
	t := *q.table
	for w := from / 64; w*64 <= len(q.target)-len(piece); w++ {
		found := ^uint64(0)
		if w == from/64 {
			found <<= from % 64
		}
		found, steps := t.narrow(found, w, piece)
		if q.steps += 1 + steps; found != 0 {
			return w*64 + bits.TrailingZeros64(found)
		}
	}
	return -1
}

// narrow returns those of the places found from 64*w at which piece stands, and the steps taken.
func (t table) narrow(found uint64, w int, piece string) (uint64, int) {
	steps := 0
	for rest, at := piece, t[w:]; rest != "" && found != 0; at = at[1:] {
		now := rest[:min(64, len(rest))]
		rest = rest[len(now):]
		low, high := &at[0], &at[1]
		for i := range uint(len(now)) {
			c := now[i] & 0x7F
			if found &= low[c]>>(i&63) | high[c]<<1<<(^i&63); found == 0 {
				break
			}
			steps++
		}
	}
	return found, steps
}
