package main

import (
	"bytes"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// Each line that is not empty gets an answer, in order, whatever it holds, and nothing
// panics.
func FuzzMatchJSONL(f *testing.F) {
	for _, seed := range []string{
		``,
		"\n \n",
		`{"id":1,"robots":"User-agent: *\nDisallow: /x","agents":["a"],"url":"/x"}`,
		`{"robots_b64":"VXNlci1hZ2VudDogKgo=","agents":["a","b"],"url_b64":"L3g=","profile":"Google"}`,
		`{"robots":"","agents":["a"],"url":"http://h"}` + "\n{",
		`{"id":[1,{"a":null}],"agents":null}` + "\nnull\n[]\n\"x\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want := 0
		for l := range bytes.Lines(in) {
			if len(bytes.TrimSpace(l)) > 0 {
				want++
			}
		}
		var out, problems bytes.Buffer
		status := run(t.Context(), []string{"match", "--jsonl"}, shell.Streams{In: bytes.NewReader(in), Out: &out, Err: &problems})
		if got := bytes.Count(out.Bytes(), []byte("\n")); got != want {
			t.Errorf("%d answers to %d lines:\n%s", got, want, out.String())
		}
		if (status == shell.ExitUnknown) != (problems.Len() > 0) {
			t.Errorf("status %d with problems %q", status, problems.String())
		}
	})
}
