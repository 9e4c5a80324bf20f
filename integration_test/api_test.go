package integration_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the testdata/api.txt of each package anew")

// public are the packages that programs may import.
var public = []string{
	"cache", "cache/cachetest", "cache/dirstore", "cache/redisstore", "client", "client/sign", "client/turns",
	"client/turns/redisturns", "client/turns/turnstest", "fetch", "fetch/ftp", "policy", "policy/lint", "policy/page", "policy/usage",
}

// What a package exports stands in testdata/api.txt beside it. A change needs the file written anew, with -update, and
// a word in the changelog, which has the mark of all of them.
func TestTheExportedSurfaceIsThatOfTheChangelog(t *testing.T) {
	var all []byte
	for _, dir := range public {
		dir = filepath.Join("..", filepath.FromSlash(dir))
		got, file := surface(t, dir), filepath.Join(dir, "testdata", "api.txt")
		all = append(all, got...)
		if *update {
			if err := os.WriteFile(file, got, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the package exports (%v): go test ./integration_test -run Surface -update", file, err)
		}
	}
	changes, err := os.ReadFile("../.github/CHANGELOG.md")
	if mark := fmt.Sprintf("Surface: %x.", sha256.Sum256(all))[:17] + "."; err != nil || !strings.Contains(string(changes), mark) {
		t.Errorf("the exported surface has changed: say how to follow in .github/CHANGELOG.md, and end that with %q (%v)", mark, err)
	}
	packages := 0
	err = filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if slices.Contains([]string{"internal", "examples", "integration_test", "cmd", "testdata"}, d.Name()) || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return filepath.SkipDir
		}
		if code, _ := filepath.Glob(filepath.Join(path, "*.go")); code != nil {
			packages++
		}
		return nil
	})
	if err != nil || packages != len(public) {
		t.Errorf("%d packages, want %d (%v)", packages, len(public), err)
	}
}

// surface is the exported declarations of a package, sorted, without comments, bodies and values.
func surface(t *testing.T, dir string) []byte {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && !ast.IsExported(receiverOf(d.Recv.List[0].Type)) {
					continue
				}
				d.Body = nil
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
			}
			var b bytes.Buffer
			if err := (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, set, d); err != nil {
				t.Fatal(err)
			}
			said = append(said, strings.Join(strings.Fields(b.String()), " "))
		}
	}
	slices.Sort(said)
	return []byte(strings.Join(said, "\n") + "\n")
}

// receiverOf is the name of the type of a receiver.
func receiverOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverOf(e.X)
	case *ast.IndexExpr:
		return receiverOf(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
