package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// The notices are those of the versions in the binary, wherever they stand in a module. One that is missing is an
// error: without it the binary must not be handed on.
func TestNoticesAreThoseOfTheModuleCache(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go/LICENSE": "of Go", "go/src/vendor/LICENSE": "of what is vendored",
		"mod/a.example/!big/mod@v1.2.0/LICENSE.md": "\nof mod\n\n", "mod/a.example/!big/mod@v1.2.0/sub/COPYING": "of sub",
		"mod/a.example/!big/mod@v1.2.0/main.go": "package main", "mod/a.example/!big/mod@v1.1.0/LICENSE": "of another version",
		"mod/b.example/fork@v0.1.0/NOTICE": "of the fork", "mod/c.example/bare@v1.0.0/README": "none",
	} {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOROOT", filepath.Join(root, "go"))
	t.Setenv("GOMODCACHE", filepath.Join(root, "mod"))
	deps := []*debug.Module{
		{Path: "own.example/robots", Version: "(devel)"},
		{Path: "a.example/Big/mod", Version: "v1.2.0"},
		{Path: "b.example/upstream", Version: "v9.9.9", Replace: &debug.Module{Path: "b.example/fork", Version: "v0.1.0"}},
	}
	var out strings.Builder
	err := notices(&out, deps)
	want := "==== Go " + runtime.Version() + ", LICENSE\n\nof Go\n\n" +
		"==== a.example/Big/mod@v1.2.0, LICENSE.md\n\nof mod\n\n==== a.example/Big/mod@v1.2.0, sub/COPYING\n\nof sub\n\n" +
		"==== b.example/fork@v0.1.0, NOTICE\n\nof the fork\n\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	for name, m := range map[string]*debug.Module{
		"c.example/bare@v1.0.0": {Path: "c.example/bare", Version: "v1.0.0"},
		"c.example/gone@v1.0.0": {Path: "c.example/gone", Version: "v1.0.0"},
	} {
		if err := notices(&out, []*debug.Module{m}); err == nil || !strings.Contains(err.Error(), "the notices of "+name+" are not here") {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GOROOT", "")
	if err := notices(&out, nil); err == nil || !strings.Contains(err.Error(), "of Go go") {
		t.Errorf("without GOROOT: %v", err)
	}
}
