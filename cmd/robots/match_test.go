package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

func TestTargetOfURL(t *testing.T) {
	for _, c := range vectors.Read[struct{ ID, URL, Path string }](t, "vectors/google-url-path.jsonl") {
		if got := answer.TargetOf(c.URL); got != c.Path {
			t.Errorf("%s: targetOf(%q) = %q, want %q", c.ID, c.URL, got, c.Path)
		}
	}
	for _, c := range []struct{ url, want string }{
		{"http://h#a/b", "/"},
		{"http://h?q#/b", "/?q"},
		{"/a?b=http://c/d", "/a?b=http://c/d"},
		{"?http://c/d", "/?http://c/d"},
		{"http://h//a", "//a"},
		{"//h//a", "//a"},
		{"#/a", "/"},
		{"http://h/a#b#c", "/a"},
		{"a://b://c/d", "//c/d"},
	} {
		if got := answer.TargetOf(c.url); got != c.want {
			t.Errorf("targetOf(%q) = %q, want %q", c.url, got, c.want)
		}
	}
}

// matchJSONL runs the command in this process.
func matchJSONL(t testing.TB, in io.Reader) (got []answer.Verdict, status int) {
	t.Helper()
	var out, problems bytes.Buffer
	status = run(t.Context(), []string{"match", "--jsonl"}, shell.Streams{In: in, Out: &out, Err: &problems})
	if problems.Len() > 0 {
		t.Log(problems.String())
	}
	return verdicts(t, out.Bytes()), status
}

// verdicts reads the objects of text.
func verdicts(t testing.TB, text []byte) (all []answer.Verdict) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var v answer.Verdict
		if err := d.Decode(&v); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
		all = append(all, v)
	}
}

// The command gives the verdict and the line that the library gives when asked record
// by record, and they come in the order of the records. It answers no record without a URL.
func TestMatchAgreesWithTheLibrary(t *testing.T) {
	for _, name := range []string{"vectors/google.jsonl", "vectors/rfc9309.jsonl"} {
		t.Run(name, func(t *testing.T) {
			records := vectors.Read[struct {
				answer.Question
				Allowed, Contested bool
			}](t, name, "scope", "section", "topic", "note", "oracle")
			got, status := matchJSONL(t, vectors.Open(t, name))
			if status < shell.ExitRefused || len(got) != len(records) {
				t.Fatalf("%d verdicts and status %d, want %d and %d", len(got), status, len(records), shell.ExitRefused)
			}
			for i, r := range records {
				want := askLibrary(t, &r.Question)
				if !r.Contested && want.Allowed != r.Allowed {
					t.Errorf("%s: the library says %v, want %v", r.ID, want.Allowed, r.Allowed)
				}
				if url, _ := r.AsWritten(); url == "" {
					checkMalformed(t, got[i])
				} else if string(got[i].ID) != string(r.ID) ||
					got[i].Allowed != want.Allowed || got[i].Line != want.Rule.Line {
					t.Errorf("%s: got %s %v by line %d, want %v by line %d", r.ID,
						got[i].ID, got[i].Allowed, got[i].Line, want.Allowed, want.Rule.Line)
				}
			}
		})
	}
}

func checkMalformed(t *testing.T, v answer.Verdict) {
	t.Helper()
	if v.Reason != answer.ReasonMalformed || v.Allowed || v.Error == "" {
		t.Errorf("%s: %q: got %+v, want it malformed", v.ID, v.URL, v)
	}
}

func askLibrary(t *testing.T, r *answer.Question) policy.Decision {
	t.Helper()
	text, err := r.File()
	if err != nil {
		t.Fatal(err)
	}
	d, err := answer.DialectByName(r.Profile)
	if err != nil {
		t.Fatal(err)
	}
	url, _ := r.AsWritten()
	return d.Parse(text).Combined(r.Agents...).Decide(answer.TargetOf(url))
}

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
