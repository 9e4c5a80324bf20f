package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// row is how a testdata/mutations.txt says what must not go wrong unnoticed in the package beside it. A blank line
// stands between two rows:
//
//	dot segments are not looked at
//	target.go TestTheTargetIsDecidedAsSent
//	-q.Allowed && (q.ftp || hasDotSegment(target)) {
//	+q.Allowed && q.ftp {
//
// Where another package has the tests, it goes before them: target.go ./integration_test TestGate. The texts may be
// parts of lines, but no line ends in a blank, which no one would see. Without + the old text goes.
//
// An old text that does not occur exactly once is an error, and so is a test that is not there: a change of one of
// these lines has to mend its row. To find tests for a new row, leave them out and run it: it prints which of the
// package notice.
var row = regexp.MustCompile(`^(\S.*\S)\n` +
	`(\w+\.go)(?: (\./\S+))?((?: (?:Test|Fuzz|Example)\w*)*)\n` +
	`((?:-(?:.*\S)?\n)+)((?:\+(?:.*\S)?\n)*)$`)

// readAll returns the rows of all packages.
func readAll(root string) (all []mutation, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Base(name) != "mutations.txt" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		rows, err := read(name, string(text))
		all = append(all, rows...)
		return err
	})
	return all, err
}

// read accepts nothing that is not a row.
func read(name, text string) (rows []mutation, err error) {
	folder, line := path.Dir(path.Dir(name)), 1
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n\n") {
		at := fmt.Sprintf("%s:%d", name, line)
		line += strings.Count(block, "\n") + 2
		f := row.FindStringSubmatch(block + "\n")
		if f == nil {
			return nil, fmt.Errorf("%s: no row, see integration_test/mutations/rows.go: %q", at, block)
		}
		m := mutation{at, path.Join(folder, f[2]), unmarked(f[5]), unmarked(f[6]), f[1], cmp.Or(f[3], "./"+folder), strings.TrimSpace(f[4])}
		if m.old == "" || m.old == m.new {
			return nil, fmt.Errorf("%s: changes nothing", at)
		}
		if slices.ContainsFunc(rows, func(r mutation) bool {
			return r.file == m.file && (r.name == m.name || r.old == m.old && r.new == m.new)
		}) {
			return nil, fmt.Errorf("%s: stands twice", at)
		}
		rows = append(rows, m)
	}
	return rows, nil
}

var marks = regexp.MustCompile(`(?m)^[-+]`)

func unmarked(lines string) string {
	return strings.TrimSuffix(marks.ReplaceAllString(lines, ""), "\n")
}
