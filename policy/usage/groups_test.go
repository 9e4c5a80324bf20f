package usage_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// A Content-Usage line is for the names since the last rule or Content-Usage line. Where RFC
// 9309 reads more names as the same group, "no" wins; a named crawler takes nothing of "*".
func TestContentUsageEndsTheListOfNames(t *testing.T) {
	for _, c := range []struct {
		name, file, token string
		want              string // train-ai of /a/x
	}{
		{"another crawler's longer path", "U A|C train-ai=n|U *|C /a train-ai=y|Allow: /", "A", "disallow"},
		{"for the others it holds", "U A|C search=n|U *|C /a train-ai=y|Allow: /", "B", "allow"},
		{"nothing of *", "U *|C train-ai=n|U A|Allow: /", "A", "unknown"},
		{"nothing of * below", "U A|C search=y|U *|C train-ai=n|Allow: /", "A", "unknown"},
		{"no permission of *", "U A|C search=y|U *|C train-ai=y|Allow: /", "A", "unknown"},
		{"no permission of another", "U A|C search=y|U B|C train-ai=y|Allow: /", "A", "unknown"},
		{"a refusal of another", "U A|C train-ai=y|U B|C train-ai=n|Allow: /", "A", "disallow"},
		{"a refusal of a name for *", "U A|C train-ai=n|U *|Allow: /", "B", "disallow"},
		{"a rule parts the groups", "U A|C train-ai=y|Allow: /|U B|C train-ai=n|Allow: /", "A", "allow"},
		{"two names", "U A|U B|C train-ai=n|Allow: /", "A", "disallow"},
		{"two names and *", "U A|U *|C train-ai=y|U B|Allow: /", "A", "allow"},
		{"another record ends no list", "U A|Crawl-delay: 5|U B|C train-ai=y|Allow: /", "A", "allow"},
		{"nor does a signal", "U A|Content-Signal: search=yes|U B|C train-ai=y|Allow: /", "A", "allow"},
		{"two lines in a row", "U A|C search=y|C train-ai=y|U B|C train-ai=y|Allow: /", "A", "allow"},
		{"the second list's second line", "U A|C search=y|U B|C search=y|C train-ai=y|Allow: /", "A", "unknown"},
		{"behind the rules", "U A|C search=y|U B|Allow: /|C train-ai=y", "A", "unknown"},
		{"behind the rules, its own", "U A|C search=y|U B|Allow: /|C train-ai=y", "B", "allow"},
		{"named twice", "U A|C search=y|U B|U a|C train-ai=y|Allow: /", "A", "allow"},
		{"in two groups", "U A|C search=y|U B|C train-ai=n|Allow: /|U A|C /a train-ai=y|Allow: /", "A", "allow"},
		{"a name that is none", "U|C train-ai=y|U A|Allow: /", "A", "unknown"},
		{"the fused rules hold", "U A|C train-ai=y|U B|Disallow: /a", "A", "unknown"},
	} {
		file := written(c.file)
		for d := policy.RFC9309; d <= policy.Original; d++ {
			p := d.Parse([]byte(file))
			if d == policy.Original && c.name == "in two groups" {
				continue // where the first one counts
			}
			said := usage.ParseRobots(p, c.token, "/a/x")
			if got := preference(t, said, usage.TrainAI); got.String() != c.want {
				t.Errorf("%s: %v of %v, want %s\n%s", c.name, got, said, c.want, file)
			}
			if again := usage.ParseRobots(d.Parse([]byte(p.String())), c.token, "/a/x"); preference(t, again, usage.TrainAI).String() != c.want {
				t.Errorf("%s: %v once it is printed, want %v:\n%v", c.name, again, c.want, p)
			}
		}
	}
}

// A crawler of two names takes the lines under either.
func TestContentUsageOfCombinedGroups(t *testing.T) {
	p := policy.Parse([]byte(written("U A|C train-ai=n|U B|C search=n|U D|C ai-use=y|Allow: /")))
	g := p.Combined("B", "A")
	under := map[string]bool{}
	for r := range g.Records("content-usage") {
		under[r.Value] = r.Under(g.Token())
	}
	if !under["train-ai=n"] || !under["search=n"] || len(under) != 2 {
		t.Errorf("records under A or B: %v, want train-ai=n and search=n", under)
	}
}

// written spells out U for user-agent lines, C for those of Content-Usage, and | for line ends.
func written(short string) string {
	var file strings.Builder
	for line := range strings.SplitSeq(short, "|") {
		switch rest := line[1:]; {
		case line == "U" || strings.HasPrefix(line, "U "):
			file.WriteString("User-agent:" + rest)
		case strings.HasPrefix(line, "C "):
			file.WriteString("Content-Usage:" + rest)
		default:
			file.WriteString(line)
		}
		file.WriteByte('\n')
	}
	return file.String()
}

func preference(t *testing.T, said []usage.Statement, l usage.Label) usage.Preference {
	t.Helper()
	p, _, err := usage.For(said, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whatever is written for other crawlers, and wherever, a "no" under a crawler's own name stays
// one while the target may be crawled. What stands under other names, and binds it only because
// RFC 9309 fuses the groups, ends where a rule parts them. So does what Content-Signal says to
// "*" where a fused group speaks instead: that field has no other reading.
func TestNoLineForOthersTurnsANoIntoAllow(t *testing.T) {
	tier.Gate(t)
	rounds := 20_000
	if testing.Short() {
		rounds = 3_000
	}
	rnd := rand.New(rand.NewPCG(3, 9))
	noes := 0
	for range rounds {
		groups := []string{group(rnd, "ExampleBot")}
		for range rnd.IntN(4) {
			groups = append(groups, group(rnd, pick(rnd, "ExampleBot", "OtherBot", "*")))
		}
		rnd.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		at := rnd.IntN(len(groups) + 1)
		more := append(append(append([]string(nil), groups[:at]...), group(rnd, pick(rnd, "OtherBot", "ThirdBot", "*"))), groups[at:]...)
		target := pick(rnd, "/", "/a", "/a/x", "/b?q")
		for d := policy.RFC9309; d < policy.Original; d++ { // Original reads the first record alone
			p := d.Parse([]byte(written(strings.Join(groups, "|"))))
			before := slices.DeleteFunc(usage.ParseRobots(p, "ExampleBot", target), func(s usage.Statement) bool {
				return !own(groups, s.Line)
			})
			p = d.Parse([]byte(written(strings.Join(more, "|"))))
			after := usage.ParseRobots(p, "ExampleBot", target)
			for _, l := range []usage.Label{usage.TrainAI, usage.AIUse, usage.Search} {
				if preference(t, before, l) != usage.Disallow {
					continue
				}
				noes++
				if got := preference(t, after, l); got != usage.Disallow && p.Decide("ExampleBot", target).Allowed {
					t.Fatalf("%v: %s of %s: disallow became %v\n%s\n\nwith one group more\n%s", d, l, target, got,
						written(strings.Join(groups, "|")), written(strings.Join(more, "|")))
				}
			}
		}
	}
	if noes < rounds/4 {
		t.Errorf("only %d times there was a no", noes)
	}
}

// own reports whether a line stands in one of the groups that are written for ExampleBot.
func own(groups []string, line int) bool {
	for _, g := range groups {
		if line -= 1 + strings.Count(g, "|"); line <= 0 {
			return strings.HasPrefix(g, "U ExampleBot")
		}
	}
	return false
}

// group is a list of names with at least one line that ends it.
func group(rnd *rand.Rand, name string) string {
	lines := []string{"U " + name}
	if name != "*" && rnd.IntN(4) == 0 {
		lines = append(lines, "Crawl-delay: 1", "U "+name)
	}
	for n := 1 + rnd.IntN(3); n > 0; n-- {
		lines = append(lines, pick(rnd, "C "+pick(rnd, "", "/", "/a ", "/a/ ", "/*x ", "/b ")+pick(rnd, "train-ai=n", "train-ai=y", "ai-use=n, search=y", "search=n"),
			"Content-Signal: "+pick(rnd, "ai-train=no", "ai-train=yes", "search=yes"), "Allow: "+pick(rnd, "/", "/a"), "Disallow: "+pick(rnd, "", "/c")))
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "C ") && strings.Contains(last, "Content-") { // ends no list
		lines = append(lines, pick(rnd, "Allow: /", "C ai-use=y"))
	}
	return strings.Join(lines, "|")
}

func pick(rnd *rand.Rand, of ...string) string { return of[rnd.IntN(len(of))] }
