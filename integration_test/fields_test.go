package integration_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
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
	"func":      regexp.MustCompile(`If nil, `),
	"slice":     regexp.MustCompile(`If (nil|empty), `),
	"interface": regexp.MustCompile(`If nil, `),
}

// lawOfField is for those whose negative numbers mean something else.
var lawOfField = map[string]*regexp.Regexp{
	"policy/lint.Answer.StatusCode": regexp.MustCompile(`If zero, `), // three digits that came over the wire
	"policy/lint.Style.Width":       regexp.MustCompile(`If zero or negative, `),
}

// configured are the structs that a program fills in, with the number of their fields.
var configured = map[string]int{
	"client.Transport": 11, "client.Pacer": 5, "client.Trace": 3, "cache.Cache": 7, "cache.Source": 3, "fetch.Fetcher": 9, "fetch/ftp.Transport": 2,
	"client/sign.Signer": 3, "cache/redisstore.Store": 2, "client/turns/redisturns.Store": 2,
	"policy/page.Reader": 3, "policy/lint.Answer": 8, "policy/lint.Report": 3, "policy/lint.Style": 2,
}

// told are the structs that the library fills in.
var told = strings.Fields(`
	client.Answer client.DisallowedError client.LateError
	client/sign.Signed cache.Stats fetch.Failure fetch.Result policy.Rule policy.Decision policy.Record
	policy/lint.Finding policy/lint.Line policy/lint.Rule policy/page.Effect policy/page.Limit policy/page.Rel policy/page.Statement
	policy/usage.Mapping policy/usage.Statement`)

func TestEveryFieldSaysWhatItMeansToLeaveItOut(t *testing.T) {
	fields := map[string]int{}
	for _, pkg := range []string{"client", "cache", "fetch", "policy"} {
		err := filepath.WalkDir(filepath.Join("..", pkg), func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "internal" || d.Name() == "testdata"):
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			folder := filepath.ToSlash(filepath.Dir(name))[len("../"):]
			ast.Inspect(file, func(n ast.Node) bool {
				spec, _ := n.(*ast.TypeSpec)
				if spec == nil || !spec.Name.IsExported() {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					name := folder + "." + spec.Name.Name
					fields[name] += checkFields(t, name, s)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, n := range fields {
		if want := configured[name]; n != want && !slices.Contains(told, name) {
			t.Errorf("%s has %d exported fields, and %d were counted here: is it filled in by a program (configured) or by the library (told)?", name, n, want)
		}
	}
	for _, name := range slices.AppendSeq(slices.Clone(told), maps.Keys(configured)) {
		if fields[name] == 0 {
			t.Errorf("%s is no struct with exported fields", name)
		}
	}
}

// checkFields checks the exported fields of a struct that a program fills in, and returns how many there are.
func checkFields(t *testing.T, name string, s *ast.StructType) (fields int) {
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 || !f.Names[0].IsExported() {
			continue
		}
		fields += len(f.Names)
		if configured[name] == 0 {
			continue
		}
		of := name + "." + f.Names[0].Name
		doc := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
		want := lawOfField[of]
		if want == nil {
			want = lawOfFields[typeName(f.Type)]
		}
		if want == nil || !want.MatchString(doc) || len(f.Names) > 1 {
			t.Errorf("%s: got the doc %q, want %v in it, and one field", of, doc, want)
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
		switch e.Sel.Name {
		case "RoundTripper", "Store", "ReadCloser", "UniversalClient":
			return "interface"
		}
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "crypto" {
			return "interface"
		}
		return e.Sel.Name
	case *ast.FuncType:
		return "func"
	case *ast.ArrayType:
		return "slice"
	}
	return "interface" // a pointer
}
