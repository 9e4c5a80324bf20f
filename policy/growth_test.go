package policy_test

import (
	"math"
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
			t.Errorf("%s: eight times the input takes %.1f times as long, want 30 at most", name, ratio)
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
