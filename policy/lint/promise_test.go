package lint_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// promised are the dialects that a replacement keeps the verdicts of. The last one is not asked about lines that can go.
var promised = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// lines returns the lines of a file with their ends, so that a line can be exchanged by anyone who reads only Finding.
func lines(text string) (all []string) {
	for text != "" {
		end := strings.IndexAny(text, "\r\n") + 1
		switch {
		case end == 0:
			end = len(text)
		case strings.HasPrefix(text[end-1:], "\r\n"):
			end++
		}
		all, text = append(all, text[:end]), text[end:]
	}
	return append(all, "")
}

// exchanged returns the file with another text for a line; without the line if remove.
func exchanged(all []string, number int, text string, remove bool) []byte {
	line := all[number-1]
	bare := strings.TrimRight(line, "\r\n")
	end := line[len(bare):]
	out := slices.Clone(all)
	if out[number-1] = text + end; remove {
		out[number-1] = ""
	} else if strings.HasPrefix(bare, "\uFEFF") {
		out[number-1] = "\uFEFF" + text + end
	}
	return []byte(strings.Join(out, ""))
}

// questions are what to ask about a file: by whom, and for what.
type questions struct{ tokens, targets []string }

// asked returns questions that the lines of a file give rise to, those near to a line first.
func asked(all []string, near int, random *rand.Rand) (q questions) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	slices.SortStableFunc(order, func(i, j int) int { return min(max(i-near, near-i), 8) - min(max(j-near, near-j), 8) })
	tokens, targets := map[string]bool{"anybody": true}, map[string]bool{"/": true, "/anything": true}
	for _, i := range order {
		field, value, _ := strings.Cut(strings.TrimRight(all[i], "\r\n"), ":")
		value, _, _ = strings.Cut(value, "#")
		value = strings.Trim(value, " \t")
		if len(tokens) < 10 && strings.Contains(strings.ToLower(field), "agent") {
			for _, name := range []string{policy.ProductToken(value), policy.ProductToken(strings.ToLower(strings.TrimLeft(value, "*")))} {
				if name != "" {
					tokens[name], tokens[name+"x"] = true, true
				}
			}
		}
		if len(targets) > 150 || !strings.Contains(strings.ToLower(field), "allow") {
			continue
		}
		for _, path := range append(strings.Fields(value), strings.ReplaceAll(value, " ", "%20")) {
			for _, star := range []string{"", "x", "/", "a/b", "20"} {
				target := strings.ReplaceAll(strings.TrimSuffix(path, "$"), "*", star)
				for _, end := range []string{"", "x", "/y", "?z", "20"} {
					targets[target+end] = true
				}
			}
		}
	}
	return questions{slices.Sorted(maps.Keys(tokens)), slices.Sorted(maps.Keys(targets))}
}

// A promise is counted: how many texts were put for a line, and how many verdicts were compared.
type promises struct{ files, replaced, removed, verdicts, broken int }

// isRemoval tells the rules that say a line can go.
func isRemoval(id string) bool { return id == "RT310" || id == "RT311" || id == "RT015" }

// keep applies what lint says about a file, one finding at a time, and compares.
func (p *promises) keep(t *testing.T, name string, data []byte, random *rand.Rand) {
	t.Helper()
	p.files++
	all := lines(string(data))
	for _, f := range lint.File(data) {
		if f.More > 0 || f.Line == 0 || f.Replacement == "" && !isRemoval(f.ID) {
			continue
		}
		if f.Replacement != "" {
			p.replaced++
		} else {
			p.removed++
		}
		q := asked(all, f.Line-1, random)
		edited, asked := exchanged(all, f.Line, f.Replacement, f.Replacement == ""), promised[:]
		if f.Replacement == "" {
			asked = asked[:4]
		}
		p.verdicts += len(asked) * len(q.tokens) * len(q.targets)
		if other := otherVerdict(asked, string(data), string(edited), q); other != "" {
			p.broken++
			t.Errorf("%s: line %d %q, %s %q: %s is decided otherwise", name, f.Line, all[f.Line-1], f.ID, f.Replacement, other)
		}
	}
}

// texts are the robots.txt files of the vectors and of the rule cases.
func texts(t *testing.T) map[string][]byte {
	type row struct {
		ID, Robots string
		Bytes      []byte `json:"robots_b64"`
	}
	unread := strings.Fields("profile scope agents url allowed section topic note oracle contested robots_gen " +
		"valid_directives unknown_directives line_count last_directive_line lines")
	all := map[string][]byte{}
	for _, file := range []string{"google", "google-report", "rfc9309"} {
		for _, r := range vectors.Read[row](t, "vectors/"+file+".jsonl", unread...) {
			all[r.ID] = []byte(r.Robots + string(r.Bytes))
		}
	}
	for id, cases := range ruleCases(t) {
		for i, c := range cases {
			if len(c.answer.Body) < 1<<16 {
				all[fmt.Sprint(id, " case ", i)] = c.answer.Body
			}
		}
	}
	return all
}

// slips are mistakes that authors make in a line, with ~ between lines.
var slips = strings.Split(`field value|FIELD: value|fiel: value|field: bare|field: *value|field: *bare|field: value*|field: value*$|`+
	`field: starry|field: value, value2/|field: value valueb/ # two|field: value%|field: value%7e%c3%a9%zz|field: valueé|`+
	"field: value\u200b|field: value/1.0|field: https://www.example.comvalue|field: other.example/|field: value~field: value|"+
	`field: value~~field: valuex|field:|Allow: value|Allow: /~field: value||User-agent:~field: value|Crawl-delay: 99~field: value|`+
	`~User-agent: bot99, other~field: value|Allow: valueindex.html~field: value`, "|")

// mutated returns a file with some slips in it.
func mutated(data []byte, random *rand.Rand) []byte {
	all := lines(string(data))
	for range 1 + random.IntN(6) {
		i := random.IntN(len(all))
		field, value, ok := strings.Cut(strings.TrimRight(all[i], "\r\n"), ":")
		if ok && len(field) > 2 {
			value = strings.TrimSpace(value)
			slip := slips[random.IntN(len(slips))]
			all[i] = strings.NewReplacer("field", field, "FIELD", strings.ToUpper(field), "fiel", field[:len(field)-1], "value", value,
				"bare", strings.TrimLeft(value, "/*"), "starry", strings.ReplaceAll(value, "/", "/**"),
				"99", fmt.Sprint(random.IntN(99)), "~", "\n").Replace(slip) + "\n"
		}
	}
	return []byte(strings.Join(all, ""))
}

// long skips what takes minutes under the race detector, and has one goroutine: .ci/run does it without.
func long(t *testing.T) {
	t.Helper()
	if proc.UnderRace() {
		t.Skip("under the race detector: .ci/run has a step without it")
	}
}

// third is every third name, another third each time, or all with -full. The second result is how many thirds.
func third(t *testing.T, names []string) ([]string, int) {
	if *whole {
		return names, 3
	}
	first := rand.IntN(3)
	t.Logf("third %d", first)
	var some []string
	for i := first; i < len(names); i += 3 {
		some = append(some, names[i])
	}
	return some, 1
}

func TestAReplacementIsAPromise(t *testing.T) {
	tier.Gate(t)
	long(t)
	random := rand.New(rand.NewPCG(2026, 1123))
	var p promises
	files := vectors.Corpus(t)
	names := slices.Sorted(maps.Keys(files))
	some := texts(t)
	maps.Copy(some, files)
	asked, thirds := third(t, slices.Sorted(maps.Keys(some)))
	for i := 0; i < 100*thirds && p.broken < 20; i++ {
		name := names[random.IntN(len(names))]
		if data := files[name]; len(data) < 20_000 {
			p.keep(t, fmt.Sprint(name, " mutated ", i), mutated(data, random), random)
		}
	}
	for _, name := range asked {
		if p.broken < 20 { // enough to see what is wrong
			p.keep(t, name, some[name], random)
		}
	}
	t.Logf("%+v", p)
	if p.replaced < 60*thirds || p.removed < 200*thirds || p.verdicts < 333_000*thirds {
		t.Errorf("compared too little: %+v", p)
	}
}

// Readers that take the first match are policy.Original. Without wildcards, a file says the same to them exactly if
// no rule is reported as order-dependent.
func TestOrderMattersExactlyWhereItIsReported(t *testing.T) {
	tier.Gate(t)
	random := rand.New(rand.NewPCG(1994, 1996))
	same, different := 0, 0
	for range 3000 {
		text := "User-agent: *\n"
		var paths []string
		for range 2 + random.IntN(6) {
			path := "/"
			for range random.IntN(4) {
				path += string("ab/"[random.IntN(3)])
			}
			paths = append(paths, path)
			text += [...]string{"Allow", "Disallow"}[random.IntN(2)] + ": " + path + "\n"
		}
		findings := lint.File([]byte(text))
		if len(only(slices.Clone(findings), "RT015")) > 0 {
			continue // the tie goes to allow for some, to the first for others
		}
		longest, first := policy.RFC9309.Parse([]byte(text)), policy.Original.Parse([]byte(text))
		differs := ""
		for _, path := range paths {
			if longest.Decide("x", path).Allowed != first.Decide("x", path).Allowed {
				differs = path
			}
		}
		reported := len(only(findings, "RT312")) > 0
		if reported != (differs != "") {
			t.Fatalf("reported %v, but %q is decided in two ways by\n%s", reported, differs, text)
		}
		if reported {
			different++
		} else {
			same++
		}
	}
	if same < 200 || different < 200 {
		t.Errorf("only %d files are the same and %d different", same, different)
	}
}

// frequencies has the share of the 500 files of the shared corpus with a finding of a rule, in percent. The files were
// drawn in strata: in a collection of 4,231 real files, of which they are a part, long files and wildcards are rarer.
const frequencies = `
	RT004 2.6  RT005 0  RT006 0.8  RT007 51  RT008 6.8  RT011 1.8  RT012 3.4  RT013 1.4  RT015 0.2  RT101 0.2
	RT102 0.4  RT103 0  RT104 0.2  RT105 0.2  RT106 2.8  RT107 0  RT108 0  RT109 3.8  RT110 0  RT111 0.2  RT112 0
	RT114 0  RT201 0.2  RT202 4.6  RT203 22.2  RT204 2.8  RT205 2.6  RT206 6.2  RT207 5.4  RT208 6.4  RT209 2
	RT210 19  RT301 0.8  RT302 0  RT303 0.2  RT304 0.2  RT305 0  RT306 1  RT307 0  RT309 0.2  RT308 0.2  RT310 8.6
	RT401 0.2  RT402 10.6  RT403 11.2  RT404 5.6  RT407 1  RT408 0.2  RT409 0.6  RT411 0.6  RT412 0`

func TestFrequenciesOverTheCorpus(t *testing.T) {
	tier.Gate(t)
	long(t)
	files := vectors.Corpus(t)
	n := map[string]int{}
	for name, data := range files {
		check(t, name, data)
		seen := map[string]bool{}
		for _, f := range lint.File(data) {
			if !seen[f.ID] {
				seen[f.ID] = true
				n[f.ID]++
			}
		}
	}
	percent := func(id string) float64 { return 100 * float64(n[id]) / float64(len(files)) }
	for _, r := range lint.Rules() {
		if n[r.ID] > 0 {
			t.Logf("%s %-24s %5.1f%%", r.ID, r.Name, percent(r.ID))
		}
	}
	want := strings.Fields(frequencies)
	for i := 0; i < len(want); i += 2 {
		if got := strconv.FormatFloat(percent(want[i]), 'g', 3, 64); got != want[i+1] {
			t.Errorf("%s: got %s%% of the files, want %s%%", want[i], got, want[i+1])
		}
	}
}
