package policy_test

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

var climb = flag.Duration("climb", 5*time.Second, "how long TestTheWorstQuestion searches")

// A shape is a hostile file and its target: what a search for the worst varies.
type shape struct {
	head, tail, letters string // of a piece of a pattern: tail follows all
	random              int    // letters between them, at least as many as make rules differ
	unit                string // what the target repeats
	end                 string // what it ends in
}

func (s shape) file() []byte {
	var b strings.Builder
	b.WriteString("user-agent:*\n")
	for i := 0; b.Len() < 500<<10-200; i++ {
		b.WriteString("allow:*" + s.head)
		for n, j := i, 0; j < s.random || n > 0; j++ {
			b.WriteByte(s.letters[n%len(s.letters)])
			n /= len(s.letters)
		}
		b.WriteString(s.tail + "\n")
	}
	return []byte(b.String())
}

func (s shape) target(n int) string {
	return "/" + strings.Repeat(s.unit, n/len(s.unit)+1)[:n-1-len(s.end)] + s.end
}

// change returns the shape with one thing altered.
func (s shape) change(r *rand.Rand) shape {
	word := func(old string, most int) string {
		b := []byte(old)
		for range 1 + r.IntN(3) {
			switch at := r.IntN(len(b) + 1); {
			case r.IntN(2) == 0 && len(b) < most:
				b = append(b[:at], append([]byte{"aab*c/%"[r.IntN(7)]}, b[at:]...)...)
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

// TestTheWorstQuestion climbs from one hostile file to a worse one. No decision on a target of 16 KiB, the most that
// package client decides on, may take 0.4 s of processor. It measures the machine, so it runs at night.
func TestTheWorstQuestion(t *testing.T) {
	tier.Nightly(t)
	r := rand.New(rand.NewPCG(9, 309))
	best := shape{ // as an earlier search left it
		head: "a", tail: "c", letters: "aab", random: 11, end: "aaabbaa",
		unit: "aaaaaaaabaaaaaaaaaabababbaaaabbababaabbaabaababaaababbbabacabaabaab",
	}
	frequent := shape{head: strings.Repeat("a*", 60), tail: "ba", letters: "abcdefgh", unit: "abcdefgh"}
	cost := func(s shape) time.Duration {
		g, target := policy.Parse(s.file()).Group("a"), s.target(16<<10)
		return proc.LeastCPUTime(3, func() { decided = g.Decide(target) })
	}
	most := cost(best)
	if c := cost(frequent); c > most {
		best, most = frequent, c
	}
	for until := time.Now().Add(*climb); time.Now().Before(until); {
		s := best.change(r)
		if c := cost(s); c > most {
			best, most = s, c
		}
	}
	t.Logf("%v for %+v", most, best)
	if most > 400*time.Millisecond {
		t.Errorf("got %v for %+v, want at most 400ms", most, best)
	}
}
