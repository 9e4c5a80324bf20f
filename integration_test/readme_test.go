package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const readme = "../README.md"

// The program at the top of the README is one that compiles.
func TestTheProgramInTheReadmeCompiles(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(text), "```go\n")
	program, _, closed := strings.Cut(program, "```\n")
	if !found || !closed {
		t.Fatal("the README has no Go program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// The tests that the README says hold a promise are there.
func TestTheTestsInTheReadmeExist(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(source, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(text, -1)
	if len(named) < 20 {
		t.Errorf("the README names %d tests, want one for each promise", len(named))
	}
	for _, m := range named {
		if !declared[string(m[1])] {
			t.Errorf("the README names %s, which is no test", m[1])
		}
	}
}
