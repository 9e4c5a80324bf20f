package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// compiled is one definition of the schema that "robots schema" writes.
func compiled(t *testing.T, definition string) *jsonschema.Schema {
	t.Helper()
	var out bytes.Buffer
	if status := run(t.Context(), []string{"schema"}, shell.Streams{Out: &out, Err: t.Output()}); status != shell.ExitOK {
		t.Fatalf("robots schema: status %d, want %d", status, shell.ExitOK)
	}
	doc, err := jsonschema.UnmarshalJSON(&out)
	if err != nil {
		t.Fatal(err)
	}
	id := doc.(map[string]any)["$id"].(string)
	if want := "/v1"; !strings.HasSuffix(id, want) {
		t.Errorf("$id is %s, want it to end with %s", id, want)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(id + "#/$defs/" + definition)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schemaSite answers for many sites, by the first label of their names.
func schemaSite(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.Host, ".")
	switch name {
	case "missing":
		w.WriteHeader(http.StatusNotFound)
	case "down":
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "moved":
		http.Redirect(w, r, "http://rules.example/robots.txt", http.StatusFound)
	case "loop":
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	case "latin1":
		w.Write([]byte("Disallow: /\xe4\n"))
	case "partial":
		w.WriteHeader(http.StatusPartialContent)
		w.Write([]byte("User-agent: *\nDisallow: /private\n"))
	case "short":
		w.Header().Set("Cache-Control", "max-age=5")
	case "rules":
		w.Write([]byte("User-agent: *\nDisallow: /private\nSitemap: https://rules.example/s.xml\n"))
	}
}

var schemaSites = []string{"missing", "down", "moved", "loop", "latin1", "short", "partial", "rules"}

func TestWhatIsWrittenFitsTheSchema(t *testing.T) {
	tier.Gate(t)
	to := siteServer(t, schemaSite)
	file, refused := written(t, "User-agent: *\nDisallow: /x\nDisallow /y\n"), filepath.Join(t.TempDir(), "refused")
	var urls []string
	for _, name := range schemaSites {
		urls = append(urls, "http://"+name+".example/private")
	}
	list := strings.Join(urls, "\n") + "\nfoo bar\n{\"url\":\"http://rules.example/\",\"id\":1}\n{\"url\":\n"
	records := `{"id":1,"robots":"","agents":["a"],"url":"/x"}` + "\n" +
		`{"id":{"a":1},"robots":"User-agent:a\nDisallow:/","agents":["a","b"],"url_b64":"L3g="}` + "\n{}\n[\n"
	for _, c := range []struct {
		definition string
		args       []string
		in         string
		least      int // objects
	}{
		{"decision", append([]string{"check", "--json", "--explain", to}, urls...), "", 7},
		{"decision", append([]string{"check", "--json", "--as=all", to}, urls...), "", 35},
		{"decision", []string{"check", "--json", "--connect-to=::127.0.0.1:1", "--timeout=1s", urls[0]}, "", 1},
		{"decision", []string{"check", "--json", "--crawlers", to, urls[7]}, "", 36},
		{"decision", []string{"check", "--json", "--hosts", to, urls[7]}, "", 4},
		{"change", []string{"diff", "--json", to, "http://rules.example", file}, "", 18},
		{"decision", []string{"filter", "--json", "--refused=" + refused, to}, list, 1},
		{"decision", []string{"match", "--json", "--robots=" + file}, "/x\n/y\n//z\nfoo bar\n", 4},
		{"decision", []string{"match", "--jsonl"}, records, 4},
		{"report", []string{"lint", "--json", file}, "", 1},
		{"report", []string{"lint", "--json", "-"}, strings.Repeat("Disallow /y\n", 50), 1},
		{"report", []string{"lint", "--json", to, urls[0], urls[1], urls[2], urls[4], urls[7]}, "", 5},
		{"report", append([]string{"lint", "--json"}, lintExamples(t)...), "", 50},
		{"rule", []string{"lint", "--json", "--rules"}, "", 50},
		{"sitemap", []string{"sitemap", "--refused", "--json", to, urls[7]}, "", 1},
		{"fetched", []string{"fetch", "--json", "--connect-to=::127.0.0.1:1", "--timeout=1s", urls[0]}, "", 1},
	} {
		t.Run(strings.Join(c.args[:2], " "), func(t *testing.T) {
			checkSchema(t, c.definition, c.least, stdoutOf(t, c.in, c.args...))
		})
	}
	for _, url := range urls {
		checkSchema(t, "fetched", 1, stdoutOf(t, "", "fetch", "--json", to, url))
	}
	checkSchema(t, "decision", 4, read(t, refused))
}

// lintExamples are files with the mistakes that lint knows.
func lintExamples(t *testing.T) (names []string) {
	for _, r := range lint.Rules() {
		names = append(names, written(t, r.Example))
	}
	return names
}

// stdoutOf is what the command writes to standard output.
func stdoutOf(t *testing.T, in string, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	if status := run(t.Context(), args, shell.Streams{In: strings.NewReader(in), Out: &out, Err: t.Output()}); status == shell.ExitUsage {
		t.Fatalf("%q: status %d", args, status)
	}
	return out.Bytes()
}

// checkSchema checks every line of data.
func checkSchema(t *testing.T, definition string, least int, data []byte) {
	t.Helper()
	s, n := compiled(t, definition), 0
	for l := range bytes.Lines(data) {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(l))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s\n%v", l, err)
		}
		n++
	}
	if n < least {
		t.Fatalf("%d objects, want at least %d", n, least)
	}
}

// A field that is missing, unknown or of another type breaks the contract.
func TestTheSchemaRefusesWhatIsNotPromised(t *testing.T) {
	refusesLess(t, "report", stdoutOf(t, "Disallow /y\n", "lint", "--json", "-"))
	refusesLess(t, "rule", stdoutOf(t, "", "lint", "--json", "--rules", "RT101"))
	good := stdoutOf(t, `{"id":1,"robots":"User-agent: *\nDisallow: /x","agents":["a"],"url":"/x"}`, "match", "--jsonl")
	refusesLess(t, "decision", good)
	s := compiled(t, "decision")
	for _, change := range []map[string]any{
		{"line": 0}, {"reason": "because"}, {"allowed": nil}, {"number": "1"}, {"dialect": "lycos"}, {"rule": nil},
		{"reason": "malformed", "allowed": true, "error": "why"},
	} {
		var bad map[string]any
		if err := json.Unmarshal(good, &bad); err != nil {
			t.Fatal(err)
		}
		if maps.Copy(bad, change); s.Validate(bad) == nil {
			t.Errorf("with %v it is accepted", change)
		}
	}
}
