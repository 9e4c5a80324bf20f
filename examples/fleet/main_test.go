package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// TestMain lets copies of the test be the workers.
func TestMain(m *testing.M) {
	if os.Getenv("FLEET_WORKER") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheFleetProvesWhatItSays(t *testing.T) {
	tier.Nightly(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	var out bytes.Buffer
	if err := fleet(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		`(?m)^ *\d+ s: [1-9]\d* sites met, 1\.00 robots\.txt fetches each, .* of \d+ URLs done$`,
		`(?m)^     2 +\d+ +\d+ +\d+ +\d+  killed$`,
		`(?m)^     [134] +\d+ +\d+ +[1-9]\d* +\d+$`, // claimed what that had
		`2220 of 2220 pages that are allowed`,
		`  0 requests for a page that is not\n`,
		`  300 requests for the robots\.txt of 300 sites\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output does not match %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("control sequences, and no terminal:\n%q", &out)
	}
}

// What the sites should not have seen is an error, and so the exit status.
func TestTheProofCanFail(t *testing.T) {
	tier.Nightly(t)
	for _, tt := range []struct {
		name  string
		spoil func(w *web)
		says  string // "" if nothing is wrong
	}{
		{"nothing wrong", func(*web) {}, ""},
		{"a page missing", func(w *web) { delete(w.sites["site1.example"].fetches, "/3") }, "57 of 58 pages"},
		{"a page twice", func(w *web) { w.sites["site1.example"].fetches["/3"]++ }, ""},
		{"a forbidden page", func(w *web) { w.sites["site2.example"].fetches["/private/1"]++ }, "1 requests for a page that is not"},
		{"a page of a closed site", func(w *web) { w.sites["site7.example"].fetches["/"]++ }, "1 requests"},
		{"too early", func(w *web) { w.sites["site0.example"].gap = delay - 2*time.Millisecond }, "0.498 s"},
		{"robots.txt twice", func(w *web) { w.sites["site0.example"].fetches["/robots.txt"]++ }, "robots.txt of"},
		{"a site not met", func(w *web) { delete(w.sites["site7.example"].fetches, "/robots.txt") }, "robots.txt of"},
	} {
		w := newWeb(8)
		w.server.Close()
		for name, s := range w.sites {
			for _, path := range append(paths, "/robots.txt") {
				if path == "/robots.txt" || s.allowed(path) {
					w.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://"+name+path, nil))
				}
			}
			s.gap = delay
		}
		tt.spoil(w)
		err := w.proof(new(bytes.Buffer))
		if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}
