package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// readmeSites are the sites of README.md.
func readmeSites(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil
	switch r.Host {
	case "shop.example":
		w.Header().Set("Cache-Control", "max-age=7200")
		switch r.URL.Path {
		case "/robots.txt":
			w.Write([]byte("User-agent: *\nDisallow: /cart/\nSitemap: http://shop.example/sitemap.xml\n"))
		case "/sitemap.xml":
			w.Write([]byte("http://shop.example/\nhttp://shop.example/cart/\nhttp://shop.example/cart/7\nhttp://shop.example/a\n"))
		}
	case "essays.example":
		if r.URL.Path == "/robots.txt" {
			w.Write([]byte("User-agent: *\nDisallow: /drafts/\nContent-Usage: /essays/ train-ai=n, search=y\n"))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("X-Robots-Tag", "googlebot: nosnippet, noindexing")
		w.Write([]byte(`<head><meta name="robots" content="noindex, all"></head>`))
	case "busy.example":
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Each "$ " line of README.md gives what stands below it. A file that "cat" shows for the
// first time is made by that.
func TestReadmeSessions(t *testing.T) {
	readme := string(read(t, "README.md"))
	t.Chdir(t.TempDir())
	shell := readmeShell{t: t, to: siteServer(t, readmeSites)}
	sessions := 0
	for i, block := range strings.Split(readme, "```\n") {
		if i%2 == 0 || !strings.HasPrefix(block, "$ ") {
			continue
		}
		for command := range strings.SplitSeq(block, "$ ") {
			if line, want, _ := strings.Cut(command, "\n"); line != "" {
				sessions++
				if got := shell.run(line, want); keyID.ReplaceAllString(got, "ID") != keyID.ReplaceAllString(want, "ID") {
					t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", line, got, want)
				}
			}
		}
	}
	if sessions < 10 {
		t.Errorf("%d commands, want at least 10", sessions)
	}
}

// keyID is a key, or its ID, and another in each run.
var keyID = regexp.MustCompile(`(?m)(^|")[\w-]{43}("|$)`)

func TestReadmeHasTheExitStatuses(t *testing.T) {
	if !strings.Contains(string(read(t, "README.md")), "```\n"+exitHelp+"\n```\n") {
		t.Errorf("README.md does not have\n%s", exitHelp)
	}
}

// readmeShell runs the commands of the sessions.
type readmeShell struct {
	t      *testing.T
	to     string
	status int
}

func (s *readmeShell) run(line, want string) string {
	words := strings.Fields(line)
	switch words[0] {
	case "echo":
		return fmt.Sprintln(s.status)
	case "cat":
		data, err := os.ReadFile(words[1])
		if os.IsNotExist(err) {
			data = []byte(want)
			err = os.WriteFile(words[1], data, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return string(data)
	}
	var in, out bytes.Buffer
	args := words[1:]
	if i := slices.Index(args, "<"); i >= 0 {
		in.Write(read(s.t, args[i+1]))
		args = args[:i]
	}
	if slices.Contains([]string{"check", "fetch", "filter", "page", "sitemap", "usage"}, args[0]) {
		args = append(slices.Clone(args), s.to)
	}
	s.status = run(s.t.Context(), args, shell.Streams{In: &in, Out: &out, Err: &out})
	return out.String()
}
