package usage_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// hostilePaths are ways to make n different paths cost much for a target of a's.
var hostilePaths = []struct {
	name string
	path func(i int) string
}{
	{"none matches", func(i int) string { return fmt.Sprintf("/a*%d*b", i) }},
	{"partly", func(i int) string { return fmt.Sprintf("/*aaaaaaaaaaaaaaaab%06d", i) }},
	{"ever longer", func(i int) string { return "/*a" + strings.Repeat("*", i%50) + "a" }},
	{"all as long", func(i int) string {
		return "/" + strings.NewReplacer("0", "a", "1", "*").Replace(fmt.Sprintf("%015b", i)) + "a"
	}},
	{"as long, but one", func(i int) string { return "/a*" + strings.ReplaceAll(fmt.Sprintf("%06d", i), "000000", "aaaaaa") }},
	{"escapes", func(i int) string { return fmt.Sprintf("/a%%%02X%%61*%06d", 0x80+i%100, i) }},
}

// hostileFiles returns n paths in a robots.txt, as rules of one, and in a tdmrep.json.
func hostileFiles(path func(int) string, n int) (robots *policy.Policy, rules, file []byte) {
	const agent = "user-agent: *\n"
	var lines, same, entries strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "content-usage: %s a=n\n", path(i))
		fmt.Fprintf(&same, "disallow: %s\n", path(i))
		fmt.Fprintf(&entries, `{"location":%q},`, path(i))
	}
	return policy.Parse([]byte(agent + lines.String())), []byte(agent + same.String()),
		[]byte("[" + entries.String() + `{"location":"/a"}]`)
}

// longTarget is as long as the gate lets one be.
var longTarget = "/" + strings.Repeat("a", 16<<10-1)

// Paths take a few times as long as a robots.txt with the same patterns: the parse, and one
// question. Asked about one by one, they take up to some hundred times as long.
func TestManyPathsTakeAsLongAsRules(t *testing.T) {
	tier.Nightly(t)
	if testing.Short() || proc.UnderRace() {
		t.Skip("compares times")
	}
	const bound = 25
	for _, h := range hostilePaths {
		robots, rules, file := hostileFiles(h.path, 6_400)
		for name, ask := range map[string]func(){
			"robots.txt":  func() { usage.ParseRobots(robots, "ExampleBot", longTarget) },
			"tdmrep.json": func() { usage.ParseTDMRep(file, longTarget) },
		} {
			times := math.Inf(1)
			for try := 0; try < 5 && times > bound; try++ {
				paths := proc.LeastCPUTime(5, ask)
				same := proc.LeastCPUTime(5, func() { policy.Parse(rules).Decide("ExampleBot", longTarget) })
				times = min(times, float64(paths)/float64(same))
			}
			t.Logf("%-16s %-11s %4.1f", h.name, name, times)
			if times > bound {
				t.Errorf("%s, %s: it takes %.1f times as long as rules do", h.name, name, times)
			}
		}
	}
}
