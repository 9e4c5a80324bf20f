package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// fixer is --fix of "robots lint", and where the repaired file goes.
type fixer struct {
	fix       string // "" for no repair, fixKeeping or fixAll
	outputAt  string
	overwrite bool
}

// What --fix applies.
const (
	fixKeeping = "keep"
	fixAll     = "all"
)

// misuse reports flags that do not go together.
func (l *linter) misuse(args []string, formatted bool) error {
	switch {
	case l.fix == "" && (l.outputAt != "" || l.overwrite):
		return shell.Usagef("--output and --overwrite are for the file that --fix repairs")
	case l.overwrite && l.outputAt == "":
		return shell.Usagef("--overwrite needs --output FILE")
	case l.fix == "":
		return nil
	case l.fix != fixKeeping && l.fix != fixAll:
		return shell.Usagef("--fix=%s: write --fix, or --fix=all", l.fix)
	case l.rules || l.JSON || formatted:
		return shell.Usagef("--fix writes the repaired file: leave out --rules, --format and --json")
	case len(args) != 1:
		return shell.Usagef("--fix repairs one FILE or URL")
	}
	return nil
}

// repair writes the file of a report anew, and to standard error what is left to say about it.
func (l *linter) repair(out *shell.Output, r lint.Report) error {
	a := lint.Answer{StatusCode: 200, ContentType: "text/plain", Body: r.Text}
	if strings.Contains(r.Name, "://") {
		a.URL = r.Name
	}
	fixed, applied := a.Fix(func(f lint.Finding) bool {
		return l.shows(f) && (f.Changes == "" || l.fix == fixAll)
	})
	for _, f := range applied {
		if f.Changes != "" {
			out.Problems = fmt.Appendf(out.Problems, "%s:%d: the replacement %s [%s %s]\n",
				answer.Visible(r.Name), f.Line, answer.Visible(f.Changes), f.ID, f.Name)
		}
	}
	a.Body = fixed
	left := lint.Report{Name: r.Name, Findings: l.shown(out, a.Findings()), Text: fixed}
	if l.outputAt != "" && l.outputAt != "-" {
		left.Name = l.outputAt
	}
	var said shell.Output
	if err := l.text(&said, left); err != nil {
		return err
	}
	out.Problems = append(out.Problems, said.Bytes()...)
	if l.outputAt == "" || l.outputAt == "-" {
		out.Write(fixed)
		return nil
	}
	return l.save(fixed)
}

// save writes the repaired file to a new one, or with --overwrite over an old one.
func (l *linter) save(data []byte) error {
	f, err := open(l.outputAt, os.O_WRONLY|replacing(l.overwrite))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// replacing is how open takes a file that may exist, or must not.
func replacing(overwrite bool) int {
	if overwrite {
		return os.O_TRUNC
	}
	return os.O_EXCL
}

// open opens a file of --output, or makes it.
func open(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|how, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: add --overwrite to replace it", name)
	}
	return f, err
}

// shows reports whether a finding is severe enough and not disabled.
func (l *linter) shows(f lint.Finding) bool {
	return f.Severity >= l.least.Severity && !slices.Contains(l.disable, f.ID)
}
