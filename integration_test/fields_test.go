package integration_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lawOfFields has the words in which the doc of a field says what it means to leave it out,
// by the end of its type.
var lawOfFields = map[string]*regexp.Regexp{
	"int":       regexp.MustCompile(`If zero, .+\. If negative, there is none[.:]`),
	"int64":     regexp.MustCompile(`If zero, .+\. If negative, there is none[.:]`),
	"Duration":  regexp.MustCompile(`If zero, .+\. If negative, there is none[.:]`),
	"Dialect":   regexp.MustCompile(`If zero, `),
	"Outage":    regexp.MustCompile(`If zero, `),
	"Kind":      regexp.MustCompile(`If zero, `),
	"string":    regexp.MustCompile(`If empty, `),
	"bool":      regexp.MustCompile(`.`),
	"func":      regexp.MustCompile(`.`), // hooks, of which any may be nil, and Source.Load, which may not
	"interface": regexp.MustCompile(`If nil, `),
}

func TestEveryFieldSaysWhatItMeansToLeaveItOut(t *testing.T) {
	configured := map[string]int{"Transport": 11, "Pacer": 6, "Trace": 3, "Cache": 12, "Source": 4, "Fetcher": 12}
	for _, pkg := range []string{"client", "cache", "fetch"} {
		files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files of %s: %v", len(files), pkg, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok && configured[spec.Name.Name] > 0 {
					configured[spec.Name.Name] -= checkFields(t, pkg+"."+spec.Name.Name, spec.Type.(*ast.StructType))
				}
				return true
			})
		}
	}
	for name, left := range configured {
		if left != 0 {
			t.Errorf("%s has %d fields less than were counted here", name, left)
		}
	}
}

// checkFields checks the exported fields of a struct, and returns how many there are.
func checkFields(t *testing.T, name string, s *ast.StructType) (fields int) {
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 || !f.Names[0].IsExported() {
			continue
		}
		fields += len(f.Names)
		doc := strings.Join(strings.Fields(f.Doc.Text()), " ")
		if want := lawOfFields[typeName(f.Type)]; want == nil || !want.MatchString(doc) {
			t.Errorf("%s.%s: %q does not say %v", name, f.Names[0], doc, want)
		}
	}
	return fields
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Name == "Store" {
			return "interface"
		}
		return e.Name
	case *ast.SelectorExpr:
		if e.Sel.Name == "RoundTripper" || e.Sel.Name == "Store" {
			return "interface"
		}
		return e.Sel.Name
	case *ast.FuncType:
		return "func"
	}
	return "interface" // a pointer
}
