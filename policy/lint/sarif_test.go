package lint_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy/lint"
)

// The objects were held against the published schema of SARIF 2.1.0. A place has no region where the file as a whole is
// meant, and there is a fix where a replacement changes nothing.
func TestSARIFHasThePublishedShape(t *testing.T) {
	const text = "User-agent: *\nDisallow: /a /<b>\nDISALLOW: /zz\n"
	all := []lint.Report{{Name: "my site/robots.txt", Findings: lint.File([]byte(text))}, reports[1], reports[2]}
	var b, compact bytes.Buffer
	if err := lint.WriteSARIF(&b, all...); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	const (
		engines = `"engines":["rfc9309","google","yandex","bing","original"]`
		head    = `{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{"columnKind":"unicodeCodePoints","results":[`
		first   = `{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"my%20site/robots.txt"},"region":{"startColumn":13,"startLine":2}}}],` +
			`"message":{"text":"\"/a /<b>\" holds a blank, so it is one path that hardly any URL begins with"},` +
			`"properties":{` + engines + `,"suggestion":"write one path per line, and a blank inside a path as %20"},"ruleId":"RT004","ruleIndex":3},`
		second = `{"fixes":[{"artifactChanges":[{"artifactLocation":{"uri":"my%20site/robots.txt"},"replacements":[{"deletedRegion":{"startLine":3},` +
			`"insertedContent":{"text":"Disallow: /zz"}}]}],` +
			`"description":{"text":"write fields and names as their specifications do; only paths are case-sensitive"}}],"level":"note","locations":[`
		third = `,"ruleId":"RT009","ruleIndex":8},{"level":"error","locations":[{"physicalLocation":{"artifactLocation":{"uri":"https://example.com/robots.txt"}}}],`
		tool  = `,"ruleId":"RT414","ruleIndex":72}],"tool":{"driver":{"informationUri":"https://github.com/robotsgate/robotsgate","name":"robotsgate lint","rules":[` +
			`{"defaultConfiguration":{"level":"error"},"help":{"text":"name the file robots.txt, in lower case"},` +
			`"helpUri":"https://github.com/robotsgate/robotsgate/blob/main/policy/lint/README.md#rt001-file-name-case","id":"RT001","name":"file-name-case",` +
			`"properties":{` + engines + `},"shortDescription":{"text":"the file's name is not exactly /robots.txt"}},`
		end = `}],"version":"(devel)"}}}]}`
	)
	rest := compact.String()
	for _, part := range []string{head + first + second, third, tool, end} {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("got\n%.2000s\nwant in it\n%s", rest, part)
		}
		rest = after
	}
	if got := strings.Count(compact.String(), `"helpUri"`); got != len(lint.Rules()) || rest != "\n" && rest != "" {
		t.Errorf("got %d rules, want %d; %q at the end", got, len(lint.Rules()), rest)
	}
	b.Reset()
	if err := lint.WriteSARIF(&b); err != nil || !strings.Contains(b.String(), `"results": []`) {
		t.Errorf("without reports: %v\n%.300s", err, b.String())
	}
}
