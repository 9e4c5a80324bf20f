package policy

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A shape is a hostile file and its target: what a search for the worst varies.
type shape struct {
	head, tail, letters string // of a piece of a pattern: tail follows all
	random              int    // letters between them, at least as many as make rules differ
	unit                string // what the target repeats
	end                 string // what it ends in
}

const hostileFile = 500 << 10

var climb = flag.Duration("climb", 0, "how long TestTheWorstQuestion searches")

func (s shape) file() []byte {
	b := bytes.NewBufferString("user-agent:*\n")
	for i := 0; b.Len() < hostileFile-200; i++ {
		b.WriteString("allow:*" + s.head)
		for n, j := i, 0; j < s.random || n > 0; j++ {
			b.WriteByte(s.letters[n%len(s.letters)])
			n /= len(s.letters)
		}
		b.WriteString(s.tail + "\n")
	}
	return b.Bytes()
}

func (s shape) target(n int) string {
	return "/" + strings.Repeat(s.unit, n/len(s.unit)+1)[:n-1-len(s.end)] + s.end
}

// steps returns what a question costs, in comparisons of 64 places at once and tries.
func (s shape) steps(p *Policy, n int) (e effort) {
	target := s.target(n)
	q := newQuestion(target, kindsOf(target), &e)
	block{p, p.blockWord(p.star).pos()}.find(&q)
	e.done()
	return e
}

// change returns the shape with one thing altered.
func (s shape) change(r *rand.Rand) shape {
	word := func(old string, most int) string {
		b := []byte(old)
		for range 1 + r.IntN(3) {
			switch at := r.IntN(len(b) + 1); {
			case r.IntN(2) == 0 && len(b) < most:
				b = append(b[:at], append([]byte{"aab*c/%"[r.IntN(5)]}, b[at:]...)...)
			case at < len(b):
				b = append(b[:at], b[at+1:]...)
			}
		}
		return string(b)
	}
	switch r.IntN(6) {
	case 0:
		s.head = word(s.head, 120)
	case 1:
		s.tail = word(s.tail, 120)
	case 2:
		s.letters = []string{"ab", "abc", "aab", "abcdefgh", "*a", "a*b"}[r.IntN(6)]
	case 3:
		s.random = r.IntN(40)
	case 4:
		s.unit = strings.ReplaceAll("a"+word(s.unit, 70), "*", "b")
	case 5:
		s.end = strings.ReplaceAll(word(s.end, 10), "*", "c")
	}
	return s
}

// TestTheWorstQuestion climbs from one hostile file to a worse one, by counted steps, and
// holds the worst to the bound: each byte of the patterns meets each 64 bytes of the target
// once. Twice the target takes twice the steps.
func TestTheWorstQuestion(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 309))
	best := shape{ // as an earlier search left it
		head: "a", tail: "c", letters: "aab", random: 11, end: "aaabbaa",
		unit: "aaaaaaaabaaaaaaaaaabababbaaaabbababaabbaabaababaaababbbabacabaabaab",
	}
	worse := func(s shape) effort { // of a question without an index, and one with
		p := Parse(s.file())
		e := s.steps(p, 8<<10)
		if i := s.steps(p.WriteIndexes(), 8<<10); i.steps > e.steps {
			return i
		}
		return e
	}
	most := worse(best).steps
	until := time.Now().Add(*climb)
	for tries := 0; tries < 5 || time.Now().Before(until); tries++ {
		s := best.change(r)
		if e := worse(s); e.steps > most {
			best, most = s, e.steps
			t.Logf("%d steps: %+v", most, s)
		}
	}
	if best.steps(Parse(best.file()), 8<<10).table == nil {
		t.Error("the worst is searched without a table")
	}
	bound := hostileFile * (8<<10/64 + 1)
	if most > bound {
		t.Errorf("%d steps for %+v, want at most %d", most, best, bound)
	}
	p := Parse(best.file())
	if twice := best.steps(p, 16<<10).steps; float64(twice) > 2.2*float64(most) {
		t.Errorf("%d steps for a target of 16 KiB, %d for 8 KiB: %+v", twice, most, best)
	}
	if *climb == 0 {
		return // the rest tells times
	}
	g := p.Group("a")
	for _, n := range []int{8 << 10, 16 << 10} {
		target, took := best.target(n), time.Hour
		for range 5 {
			start := time.Now()
			g.Decide(target)
			took = min(took, time.Since(start))
		}
		t.Logf("%d bytes: %v", n, took)
	}
}

func TestATableTellsWhereAPieceStands(t *testing.T) {
	r := rand.New(rand.NewPCG(64, 14))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab/"[r.IntN(3)]
		}
		return string(b)
	}
	for range 2_000 {
		target := word(minTable + r.IntN(300))
		from, n := r.IntN(len(target)), r.IntN(150)
		piece := word(n)
		if r.IntN(2) == 0 {
			at := r.IntN(len(target))
			piece = target[at:min(at+n, len(target))]
		}
		e := effort{steps: manySteps}
		q := newQuestion(target, kindsOf(target), &e)
		want := strings.Index(target[from:], piece)
		if want >= 0 {
			want += from
		}
		if got := q.index(piece, from); got != want || e.table == nil {
			t.Fatalf("%q from %d in %q: got %d, want %d", piece, from, target, got, want)
		}
		e.done()
	}
}

// Rules that are alike have one gram, whose slots are soon all taken. It is then not tried for
// each of the others: their file took twice the time to read.
func TestAFullGramIsNotTriedAgain(t *testing.T) {
	c := &compiler{builder: builder{dialect: RFC9309, reading: RFC9309.reading()}}
	c.read([]byte("user-agent: *\ndisallow: /aaa\n")) // one gram
	c.slots = newSlots(1)
	c.slots.words = make([]uint32, c.slots.n)
	c.countGrams()
	index, tried := make([]uint32, indexRules), 0
	for i := range 3 * maxProbe {
		g, ok := c.gram(index, c.rules[0])
		if ok != (i < maxProbe) {
			t.Fatalf("rule %d has a place: %t", i, ok)
		}
		if ok {
			c.slots.words[c.slots.first(g.hash)+uint32(g.probes)] = newLink(g.hash, 0)
		}
		tried += g.probes
	}
	if want := maxProbe * (maxProbe - 1) / 2; tried != want {
		t.Errorf("%d slots tried, want %d", tried, want)
	}
	clear(c.slots.words)
	if g, ok := c.gram(index, c.rules[0]); ok {
		t.Errorf("the full gram is tried again: %+v", g)
	}
}
