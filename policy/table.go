package policy

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// An effort is what was spent on searching a target.
type effort struct {
	steps int    // comparisons of a byte of a pattern with 64 of the target
	table *table // of the target, once it was searched often
}

// A table tells where in a target a byte stands: in 64 places each, as bits, for each byte
// below 0x80. Patterns have no others. With it, the time to find a piece of a pattern anywhere
// is that of comparing it with a 64th of the target, whatever the two consist of.
type table [][128]uint64

// tables keeps what earlier questions are done with.
var tables = sync.Pool{New: func() any { return new(table) }}

const (
	manySteps = 32       // after them, a table is made
	maxTable  = 64 << 10 // bytes of the longest target with a table, which takes 16 times as much
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

// index returns where piece stands first in target, at from or behind, or -1.
func (e *effort) index(piece, target string, from int) int {
	if e.steps >= manySteps && len(target) <= maxTable {
		return e.lookUp(piece, target, from)
	}
	e.steps++
	i := strings.Index(target[from:], piece)
	if i >= 0 {
		i += from
	}
	return i
}

// lookUp is index for a target with a table.
func (e *effort) lookUp(piece, target string, from int) int {
	if e.table == nil {
		e.table = newTable(target)
	}
	t := *e.table
	for w := from / 64; w*64 <= len(target)-len(piece); w++ {
		found := ^uint64(0)
		if w == from/64 {
			found <<= from % 64
		}
		for rest, at := piece, t[w:]; rest != "" && found != 0; at = at[1:] {
			now := rest[:min(64, len(rest))]
			rest = rest[len(now):]
			low, high := &at[0], &at[1]
			for i := range uint(len(now)) {
				c := now[i] & 0x7F
				if found &= low[c]>>(i&63) | high[c]<<1<<(^i&63); found == 0 {
					break
				}
				e.steps++
			}
		}
		e.steps++
		if found != 0 {
			return w*64 + bits.TrailingZeros64(found)
		}
	}
	return -1
}
