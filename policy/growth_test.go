package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/policy"
)

// The bounds are far from what is measured: they tell a logarithm from a line,
// and hold on a busy machine.
func TestCostOfAQuestionHardlyGrowsWithTheRules(t *testing.T) {
	if testing.Short() || proc.UnderRace() {
		t.Skip("compares times")
	}
	target := "/" + strings.Repeat("abcdefghi/", 7) + "x.html"
	for _, c := range []struct {
		name, format string
		bound        float64 // time for 10,000 rules to that for 10
	}{
		{"literal", "/section-%05d/page", 10},
		{"stem", "/dir%05d/*/x*.php", 10},
		{"leading wildcard", "/*?param%d=", 8},
		{"leading wildcard, anchored", "/*-p%d.html$", 8},
	} {
		cost := func(rules int) time.Duration {
			var b strings.Builder
			b.WriteString("user-agent: *\n")
			for i := range rules {
				fmt.Fprintf(&b, "disallow: "+c.format+"\n", i)
			}
			g := policy.Parse([]byte(b.String())).Group("a")
			return proc.LeastCPUTime(200, func() {
				for range 20 {
					decided = g.Decide(target)
				}
			})
		}
		ratio := math.Inf(1)
		for try := 0; try < 5 && ratio > c.bound; try++ {
			ratio = min(ratio, float64(cost(10_000))/float64(cost(10)))
		}
		t.Logf("%s: 10,000 rules take %.1f times as long as 10", c.name, ratio)
		if ratio > c.bound {
			t.Errorf("%s: 10,000 rules take %.1f times as long as 10, want at most %.0f", c.name, ratio, c.bound)
		}
	}
}

func TestTimeToParseIsLinear(t *testing.T) {
	if testing.Short() || proc.UnderRace() {
		t.Skip("compares times")
	}
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
	if testing.Short() || proc.UnderRace() {
		t.Skip("compares times")
	}
	targets := []string{
		"/" + strings.Repeat("a", 8_000), "/" + strings.Repeat("a", 8_000) + "b",
		"/" + strings.Repeat("%61", 2_600), hostileTarget(8_000),
	}
	for name, body := range hostile() {
		for _, d := range dialects {
			g := d.Parse(body).Group("b3")
			ask := func(when string) {
				for _, target := range targets {
					if took := proc.CPUTime(func() { decided = g.Decide(target) }); took > 400*time.Millisecond {
						t.Errorf("%s, %v: %s: %v for a target of %d bytes", name, d, when, took, len(target))
					}
				}
			}
			ask("without an index")
			for range 20 { // one of them writes it
				if took := proc.CPUTime(func() { decided = g.Decide("/b3") }); took > 400*time.Millisecond {
					t.Errorf("%s, %v: writing an index: %v", name, d, took)
				}
			}
			ask("with an index")
		}
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	if proc.UnderRace() {
		t.Skip("with the race detector, a sync.Pool drops what it is given at random")
	}
	check := func(name string, p *policy.Policy, tokens ...string) {
		for _, target := range []string{
			"/", "/a%61*$é?x", "a", "https://example.com/x",
			"/" + strings.Repeat("%c3%a9", 1_333), "/" + strings.Repeat("a", 100_000),
		} {
			if n := testing.AllocsPerRun(2, func() { decided = p.Group(tokens[0], tokens[1:]...).Decide(target) }); n > 0 && !strings.HasPrefix(target, "a") {
				t.Errorf("%s: %.0f allocations for a target of %d bytes", name, n, len(target))
			}
		}
	}
	for name, body := range hostile() {
		p := policy.Parse(body)
		check(name, p, "b3", "b4")
		check(name+", with an index", p.WriteIndexes(), "b3", "b4")
	}
	groups := strings.Repeat("user-agent: examplebot\ndisallow: /x\n", 8)
	check("eight groups that are found by a part of their name", policy.Yandex.Parse([]byte(groups)), "bot")
}

// TestRandomRules compares both compiled forms with the definition on rule sets
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
