package policy_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

func TestTimeToParseIsLinear(t *testing.T) {
	tier.Nightly(t)
	least := func(runs int, file []byte) time.Duration {
		return proc.LeastCPUTime(runs, func() { parsed = policy.Parse(file) })
	}
	for name, body := range hostile() {
		part, ratio := body[:len(body)/8], math.Inf(1)
		// Eight times as long would be linear, 64 times quadratic. A machine that is
		// busy with something else gets more than one chance.
		for try := 0; try < 5 && ratio > 30; try++ {
			whole, eighth := least(5, body), least(15, part)
			ratio = min(ratio, float64(whole)/float64(eighth))
			if whole < time.Millisecond {
				ratio = 1 // too short to tell
			}
		}
		if ratio > 30 {
			t.Errorf("%s: eight times the input takes %.1f times as long", name, ratio)
		}
	}
}

// T-15 of the reliability plan: no question takes long, even if an attacker writes both the
// file and the path.
func TestNoQuestionTakesLong(t *testing.T) {
	tier.Nightly(t)
	targets := []string{
		"/" + strings.Repeat("a", 8_000), "/" + strings.Repeat("a", 8_000) + "b",
		"/" + strings.Repeat("%61", 2_600), hostileTarget(8_000),
	}
	for name, body := range hostile() {
		for _, d := range dialects {
			g := d.Parse(body).Group("b3")
			for _, target := range targets {
				if took := proc.CPUTime(func() { decided = g.Decide(target) }); took > 400*time.Millisecond {
					t.Errorf("%s, %v: got %v for a target of %d bytes, want 400ms at most", name, d, took, len(target))
				}
			}
		}
	}
}

// TestRandomRules compares decisions with the definition on rule sets
// dense enough that most questions have several answers.
func TestRandomRules(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 309))
	word := func(letters string, n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 1_500 {
		var rules []policy.Rule
		file := "user-agent: *\n"
		for range 1 + r.IntN(90) {
			pattern := "/" + word("aaabb/*", 7)
			if r.IntN(8) == 0 {
				pattern += "$"
			}
			rule := policy.Rule{Allow: r.IntN(2) == 0, Pattern: pattern, Line: len(rules) + 2}
			rules, file = append(rules, rule), file+rule.String()+"\n"
		}
		for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
			g := d.Parse([]byte(file)).Group("a")
			for range 10 {
				target := "/" + word("aaabb/", 9)
				want := naive(rules, target)
				if got := g.Decide(target); got.Rule != want || got.Allowed != (want.Line == 0 || want.Allow) {
					t.Fatalf("%v: %s: got %v, want %v (line %d)\n%s", d, target, got, want, want.Line, file)
				}
			}
		}
	}
}
