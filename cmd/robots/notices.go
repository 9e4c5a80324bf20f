package main

// robots version --notices: the licences that have to go with a binary that is passed on. debug.ReadBuildInfo
// tells which modules are in it, in which versions, and the module cache of the machine that built it has
// their texts. Nothing is fetched, and nothing is judged.

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// notice matches the names of files that have to go with a binary. It looks at their beginnings: LICENSE-MIT
// and COPYING.LESSER are such files, too.
var notice = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// notices writes those of Go and of the modules in this binary, as the machine has them that built it. None
// is kept here: what a module says may change with its version. One that is missing is an error: a list with
// a gap would pass for the whole.
func notices(out io.Writer, deps []*debug.Module) error {
	// GOMODCACHE and GOPATH have these defaults; of several folders in GOPATH, the first has the cache.
	goPath, _, _ := strings.Cut(cmp.Or(os.Getenv("GOPATH"), filepath.Join(os.Getenv("HOME"), "go")), string(filepath.ListSeparator))
	cache := cmp.Or(os.Getenv("GOMODCACHE"), filepath.Join(goPath, "pkg", "mod"))
	// The first is Go itself. WalkDir looks at the top of GOROOT alone, and into each folder of a module.
	all := [][2]string{{"Go " + runtime.Version(), os.Getenv("GOROOT")}} // names and folders
	for _, m := range deps {
		if m.Replace != nil { // that is what was compiled; of a folder, it has no version
			m = m.Replace
		}
		// The go command writes "!" and a small letter for each capital: some file systems cannot tell them apart.
		if name := m.Path + "@" + m.Version; m.Version != "" && m.Version != "(devel)" { // else it is our own
			dir := upper.ReplaceAllStringFunc(name, func(c string) string { return "!" + strings.ToLower(c) })
			all = append(all, [2]string{name, filepath.Join(cache, dir)})
		}
	}
	for i, module := range all {
		name, dir, found := module[0], module[1], 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && i == 0 && path != dir: // what is in the standard library has Go's
				return fs.SkipDir
			case d.IsDir() || !notice.MatchString(d.Name()):
				return nil
			}
			text, err := os.ReadFile(path)
			found++
			at, _ := filepath.Rel(dir, path)
			fmt.Fprintf(out, "==== %s, %s\n\n%s\n\n", name, filepath.ToSlash(at), strings.TrimSpace(string(text)))
			return err
		})
		if err != nil || found == 0 {
			return shell.Failed(fmt.Errorf("the notices of %s are not here (%v): run where it was built, with GOROOT=$(go env GOROOT); "+
				"go mod download puts modules in the cache, $GOMODCACHE", name, err))
		}
	}
	return nil
}

var upper = regexp.MustCompile(`[A-Z]`) // which paths in the module cache have not
