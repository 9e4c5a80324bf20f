package lint_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy/lint"
)

var (
	update = flag.Bool("update", false, "write README.md anew")
	whole  = flag.Bool("full", false, "compare verdicts over all files, not over a third")
)

// inAFile reports whether the example of a rule is a robots.txt file. The other rules are about a
// name, an answer or a page, or their files are too long to show.
func inAFile(r lint.Rule) bool {
	switch r.ID {
	case "RT001", "RT002", "RT014", "RT110", "RT111", "RT112", "RT414", "RT415":
		return false
	}
	return r.Unchecked == ""
}

func TestEachExampleHasTheMistakeThatItIsFor(t *testing.T) {
	for _, r := range lint.Rules() {
		found := only(lint.File([]byte(r.Example)), r.ID)
		if inAFile(r) != (len(found) > 0) {
			t.Errorf("%s: got %d findings in %q, want one: %v", r.ID, len(found), r.Example, inAFile(r))
		}
	}
}

// What a finding writes instead of the line has neither that mistake nor an error.
func TestEachReplacementMendsItsExample(t *testing.T) {
	mended := 0
	for _, r := range lint.Rules() {
		text := r.Example
		for range 10 { // a rule that remarks once for a file may have to be followed several times
			found := only(lint.File([]byte(text)), r.ID)
			if len(found) == 0 || found[0].Replacement == "" {
				break
			}
			lines := strings.Split(text, "\n")
			lines[found[0].Line-1] = found[0].Replacement
			text = strings.Join(lines, "\n")
		}
		if text == r.Example {
			continue
		}
		mended++
		for _, f := range lint.File([]byte(text)) {
			if f.ID == r.ID || f.Severity == lint.SeverityError {
				t.Errorf("%s: %q: still %s at line %d: %s", r.ID, text, f.ID, f.Line, f.Message)
			}
		}
	}
	if mended < 5 {
		t.Errorf("only %d examples have a replacement", mended)
	}
}

// README.md is the registry: nothing in it is lost on the way through that, and it shows the
// findings of its examples as they are.
func TestTheManualIsThatOfTheRegistry(t *testing.T) {
	was, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	got := manual(string(was))
	if *update {
		if err := os.WriteFile("README.md", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(was) != got {
		t.Errorf("README.md is not what the registry says: run go test ./policy/lint -run Manual -update, and see what it changes")
	}
	for _, r := range lint.Rules() {
		_, anchor, _ := strings.Cut(r.URL(), "#")
		if heading := "## " + strings.Replace(strings.ToUpper(anchor[:5])+anchor[5:], "-", " ", 1) + "\n"; !strings.Contains(got, heading) {
			t.Errorf("%s: no heading %q for %s", r.ID, heading, r.URL())
		}
	}
}

func manual(was string) string {
	var b strings.Builder
	preface, _, _ := strings.Cut(was, "\n## ")
	b.WriteString(preface)
	for _, r := range lint.Rules() {
		fmt.Fprintf(&b, "\n## %s %s\n\n%s: %s. Engines: %s.\n\n", r.ID, r.Name, r.Severity, r.Summary, r.Engines)
		if r.Unchecked != "" {
			fmt.Fprintf(&b, "This is not checked: %s.\n\n", r.Unchecked)
		}
		for line := range strings.SplitSeq(r.Example, "\n") {
			b.WriteString(strings.TrimRight("    "+visible(line), " ") + "\n")
		}
		if inAFile(r) {
			fmt.Fprintf(&b, "\nFinding: %s.\n", visible(only(lint.File([]byte(r.Example)), r.ID)[0].Message))
		}
		fmt.Fprintf(&b, "\nFix: %s.\n", r.Advice)
	}
	return b.String()
}

// visible shows characters that do not print as Go writes them.
func visible(s string) string {
	quoted := strconv.Quote(s)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}
