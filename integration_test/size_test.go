package integration_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// declarations are how many a package exports, without methods. More need a reason in the changelog.
var declarations = map[string]int{
	"cache": 9, "cache/cachetest": 1, "cache/dirstore": 2, "cache/redisstore": 2, "client": 13, "client/sign": 9, "client/turns": 2,
	"client/turns/redisturns": 1, "client/turns/turnstest": 2, "fetch": 9, "fetch/ftp": 1, "policy": 14, "policy/lint": 20, "policy/page": 10, "policy/usage": 19,
}

func TestSurfacesFunctionsAndFilesStaySmall(t *testing.T) {
	for _, dir := range public {
		api := "\n" + string(surface(t, filepath.Join("..", dir)))
		if n := strings.Count(api, "\n") - 1 - strings.Count(api, "\nfunc ("); n != declarations[dir] {
			t.Errorf("%s exports %d declarations that are no methods, want %d", dir, n, declarations[dir])
		}
	}
	for _, root := range []string{"client", "cache", "fetch", "policy", "cmd"} {
		functions, set := 0, token.NewFileSet()
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, _ os.DirEntry, err error) error {
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if n := set.File(f.FileStart).LineCount(); n > 600 {
				t.Errorf("%s has %d lines, want 600 at most", path, n)
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					functions++
					if n := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1; n > 65 {
						t.Errorf("%s: %s has %d lines, want 65 at most", path, d.Name, n)
					}
				}
			}
			return err
		})
		if functions == 0 || err != nil {
			t.Errorf("%s: %d functions (%v)", root, functions, err)
		}
	}
}
