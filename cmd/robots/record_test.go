package main

import (
	"bytes"
	"math"
	"math/bits"
	"testing"
)

// Each line that is not empty gets an answer, in order, whatever it holds, and nothing
// panics.
func FuzzMatchJSONL(f *testing.F) {
	for _, seed := range []string{
		``,
		"\n \n",
		`{"id":1,"robots":"User-agent: *\nDisallow: /x","agents":["a"],"url":"/x"}`,
		`{"robots_b64":"VXNlci1hZ2VudDogKgo=","agents":["a","b"],"url_b64":"L3g=","profile":"Google"}`,
		`{"robots_gen":[{"text":"a","repeat":3}],"agents":["a"],"url":"http://h"}` + "\n{",
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
		status := run(t.Context(), []string{"match", "--jsonl"}, streams{bytes.NewReader(in), &out, &problems})
		if got := bytes.Count(out.Bytes(), []byte("\n")); got != want {
			t.Errorf("%d answers to %d lines:\n%s", got, want, out.String())
		}
		if (status == exitUnknown) != (problems.Len() > 0) {
			t.Errorf("status %d with problems %q", status, problems.String())
		}
	})
}

func TestGeneratedFilesAreBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []repeated
		bytes  int // -1: refused
	}{
		{"none", []repeated{}, 0},
		{"two pieces", []repeated{{"ab", 2}, {"c", 3}}, 7},
		{"nothing many times", []repeated{{"", math.MaxInt}}, 0},
		{"at the bound", []repeated{{"a", maxGenerated}}, maxGenerated},
		{"above the bound", []repeated{{"a", maxGenerated}, {"a", 1}}, -1},
		{"overflowing", []repeated{{"aaaaaaaa", 1 << (bits.UintSize - 3)}}, -1},
		{"negative", []repeated{{"a", -1}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := generate(c.pieces)
			if got := len(data); (c.bytes < 0) != (err != nil) || err == nil && got != c.bytes {
				t.Errorf("got %d bytes and error %v, want %d", got, err, c.bytes)
			}
		})
	}
}
