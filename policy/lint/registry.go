package lint

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Rule is one entry of the registry. ID and Name never change: configurations and links may refer to them.
type Rule struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Engines  Engines  `json:"engines"` // that a finding concerns
	Summary  string   `json:"summary"` // the mistake, in half a sentence
	Advice   string   `json:"advice"`  // how to mend it

	// Example is a file with the mistake, or in words what is wrong with an answer.
	Example string `json:"example"`

	// Unchecked is why this package cannot find the mistake, for rules that need more than a file and its answer. It is ""
	// for all others.
	Unchecked string `json:"-"`
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
	section := regexp.MustCompile(`(?s)^(RT\d+) (\S+)\n\n(\w+): (.*?)\. Engines: (.*?)\.\n\n` +
		`(?:This is not checked: (.*?)\.\n\n)?(?:    )?(.*?)\n(?:\nFinding: .*?\n)?\nFix: (.*?)\.\n`)
	text = strings.ReplaceAll(text, "\r", "") // a checkout for Windows may have its line ends
	for _, text := range strings.Split(text, "\n## ")[1:] {
		part := section.FindStringSubmatch(text)
		r := Rule{ID: part[1], Name: part[2], Summary: part[4], Engines: Engines(part[5]), Unchecked: part[6], Advice: part[8]}
		r.Severity = Severity(slices.Index(severities[:], part[3]))
		example := strings.NewReplacer(`"`, `\"`, "\n    ", `\n`, "\n", `\n`).Replace(part[7])
		r.Example, _ = strconv.Unquote(`"` + example + `"`)
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
