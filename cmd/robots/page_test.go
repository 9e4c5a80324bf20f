package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// sayingSite says something by every mechanism that "robots usage" reads.
func sayingSite(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		w.Write([]byte("User-agent: *\nContent-Usage: /page train-ai=n, search=1\nContent-Signal: ai-input=no\n" +
			"License: https://a.example/l.xml\nUser-agent: Google-Extended\nDisallow: /\n"))
		return
	}
	if r.URL.Path == "/coded" {
		w.Header().Set("Content-Encoding", "br")
	}
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("X-Robots-Tag", "bingbot: noarchive, noai, max-snippet: 5, : x")
	w.Header().Set("Tdm-Policy", "here")
	w.Write([]byte(`<meta name=robots content="noindex, all"><meta name=TDM-Reservation content=1>`))
}

// What page and usage write, and check about uses, fits the schema, which holds no less.
func TestWhatAPageSaysFitsTheSchema(t *testing.T) {
	to := siteServer(t, sayingSite)
	for _, c := range []struct {
		definition string
		args       []string
	}{
		{"page", []string{"page"}},
		{"usage", []string{"usage"}},
		{"decision", []string{"check", "--uses=train-ai"}},
	} {
		good := stdoutOf(t, "", append(c.args, "http://a.example/page", "--json", to)...)
		checkSchema(t, c.definition, 1, good)
		refusesLess(t, c.definition, good)
		if c.definition != "decision" {
			checkSchema(t, c.definition, 1, stdoutOf(t, "", append(c.args, "http://a.example/other", "--json", to)...))
		}
	}
}

// P-42: page and usage say so, and find nothing out, if not all of a page was read, here because of its coding.
func TestWhatWasNotReadIsTold(t *testing.T) {
	to := siteServer(t, sayingSite)
	for _, c := range []struct {
		path string
		told bool
	}{{"/other", false}, {"/coded", true}} {
		for _, command := range []string{"page", "usage"} {
			text := stdoutOf(t, "", command, "http://a.example"+c.path, to)
			if bytes.Contains(text, []byte("perhaps more: not all of it was read")) != c.told {
				t.Errorf("%s of %s: want it told: %v, got\n%s", command, c.path, c.told, text)
			}
			if status, _ := fails(t, command, "http://a.example"+c.path, to); (status == shell.ExitUnknown) != c.told {
				t.Errorf("%s of %s: status %d, want %d: %v", command, c.path, status, shell.ExitUnknown, c.told)
			}
			object := stdoutOf(t, "", command, "http://a.example"+c.path, "--json", to)
			checkSchema(t, command, 1, object)
			if bytes.Contains(object, []byte(`"incomplete":true`)) != c.told {
				t.Errorf("%s of %s: want it incomplete: %v, got %s", command, c.path, c.told, object)
			}
		}
	}
}

// refusesLess checks that an object that misses a field, or has one more, breaks the schema.
func refusesLess(t *testing.T, definition string, good []byte) {
	t.Helper()
	s := compiled(t, definition)
	var fields map[string]any
	if err := json.Unmarshal(good, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Sorted(maps.Keys(fields)), "extra") {
		bad := maps.Clone(fields)
		if delete(bad, name); name == "extra" {
			bad[name] = 1
		}
		if s.Validate(bad) == nil {
			t.Errorf("%s: with %s changed it is accepted", definition, name)
		}
	}
}
