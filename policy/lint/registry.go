package lint

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Rule is one entry of the registry. ID and Name never change: configurations and links may refer to them.
type Rule struct {
	ID       string
	Name     string
	Severity Severity
	Engines  Engines // that a finding concerns
	Summary  string  // the mistake, in half a sentence
	Advice   string  // how to mend it

	// Unchecked is why this package cannot find the mistake, for rules that need more than
	// a file and its answer. It is "" for all others.
	Unchecked string

	// Example is a file with the mistake, or in words what is wrong with an answer.
	Example string
}

// manual is the registry: a section for each rule, sorted by identifier. A rule is an error if the line has no effect
// or the opposite one, a warning if crawlers differ on it, and info if it is a matter of style or merely worth knowing.
// Engines are those that are misled, not those that warn.
//
//go:embed README.md
var manual string

var rules = sync.OnceValue(func() []Rule { return readManual(manual) })

// readManual reads a manual. A test proves that ours has no section in another form.
func readManual(text string) (all []Rule) {
	text = strings.ReplaceAll(text, "\r", "") // a checkout for Windows may have its line ends
	for _, section := range strings.Split(text, "\n## ")[1:] {
		var r Rule
		heading, text, _ := strings.Cut(section, "\n\n")
		r.ID, r.Name, _ = strings.Cut(heading, " ")
		severity, text, _ := strings.Cut(text, ": ")
		r.Severity = Severity(slices.Index(severities[:], severity))
		r.Summary, text, _ = strings.Cut(text, ". Engines: ")
		engines, text, _ := strings.Cut(text, ".\n\n")
		for name := range strings.SplitSeq(engines, ",") {
			if name == "all" {
				r.Engines |= EngineDialects
			} else {
				r.Engines |= 1 << slices.Index(engineNames[:], name)
			}
		}
		text, r.Advice, _ = strings.Cut(text, "\nFix: ")
		r.Advice, _, _ = strings.Cut(r.Advice, ".\n")
		if why, example, ok := strings.Cut(text, ".\n\n    "); ok {
			r.Unchecked, text = strings.TrimPrefix(why, "This is not checked: "), example
		}
		text, _, _ = strings.Cut(text, "\nFinding: ")
		text = strings.ReplaceAll(strings.Trim(text, " \n"), "\n    ", "\n")
		r.Example, _ = strconv.Unquote(`"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(text) + `"`)
		all = append(all, r)
	}
	return all
}

// URL returns where the rule is explained.
func (r Rule) URL() string {
	return "https://" + home + "/blob/main/policy/lint/README.md#" + strings.ToLower(r.ID) + "-" + r.Name
}

// Rules returns the registry in the order of the identifiers.
func Rules() []Rule { return slices.Clone(rules()) }

func ruleIndex(id string) int {
	return slices.IndexFunc(rules(), func(r Rule) bool { return r.ID == id })
}

// home is the module, which is also its page.
const home = "github.com/robotsgate/robotsgate"
