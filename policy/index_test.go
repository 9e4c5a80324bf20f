package policy

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// WriteIndexes writes the indexes of p now, as its twentieth question would.
func (p *Policy) WriteIndexes() *Policy {
	for name := range p.names {
		for b := range p.blocks(name + 1) {
			for b.size()&blockIndexed != 0 && b.index()[indexAsked] < indexPays {
				b.mayIndex()
			}
		}
	}
	return p
}

// rulesOf is a file with a rule for each number, as format has it.
func rulesOf(n int, format string) *Policy {
	var file strings.Builder
	file.WriteString("user-agent: *\n")
	for i := range n {
		fmt.Fprintf(&file, format+"\n", i)
	}
	return Parse([]byte(file.String()))
}

func TestAnIndexIsWrittenOnceWhenItPays(t *testing.T) {
	p := rulesOf(1000, "disallow: /%03d")
	b := block{p, p.blockWord(p.star).pos()}
	size := p.Size()
	for i := range 3 * indexPays {
		asked, links := b.index()[indexAsked], 0
		for _, word := range b.index()[indexPlaces:indexSize(b.len())] {
			if word != 0 {
				links++
			}
		}
		switch {
		case i < indexPays && (asked != uint32(i) || links > 0):
			t.Errorf("after %d questions %d are counted, %d words written", i, asked, links)
		case i >= indexPays && (asked != indexWritten || links < 100):
			t.Errorf("after %d questions no index is written: %d, %d words", i, asked, links)
		}
		if d := p.Decide("a", "/999/x"); d.Rule.Line != 1001 {
			t.Errorf("question %d: %v", i, d)
		}
	}
	if p.Size() != size {
		t.Errorf("the size was %d and is %d", size, p.Size())
	}
}

// Rules that are too short for a gram are tried one after the other, whatever was asked before.
func TestAnIndexOfNoUseIsNotAsked(t *testing.T) {
	p := rulesOf(smallBlock+1, "disallow: /%02d") // /00 to /96
	b := block{p, p.blockWord(p.star).pos()}
	for i := range 3 * indexPays {
		if d := p.Decide("a", "/96"); d.Rule.Line != 98 {
			t.Errorf("question %d: %v", i, d)
		}
	}
	if asked := b.index()[indexAsked]; asked != indexPays {
		t.Errorf("its first word is %d, want %d", asked, indexPays)
	}
}

func TestManyAskWhileAnIndexIsWritten(t *testing.T) {
	for range 20 {
		p := rulesOf(1000, "disallow: /%03d*x")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := i; n < 1000; n += 50 {
					if d := p.Decide("a", fmt.Sprintf("/%03d/x", n)); d.Rule.Line != n+2 {
						t.Errorf("%d: %v", n, d)
					}
				}
			})
		}
		all.Wait()
	}
}
