package integration_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// read returns the text of a document, and its blocks of code in the language, in order.
func read(t *testing.T, document, language string) (text string, blocks []string) {
	t.Helper()
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(b), -1) {
		if m[1] == language {
			blocks = append(blocks, m[2])
		}
	}
	return string(b), blocks
}

// compiled writes source to a file of this name and has a go command judge it.
func compiled(t *testing.T, name, source string, command ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", append(command, file)...).CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s\n%s", strings.Join(command, " "), err, out, source)
	}
}

func TestTheReadmesAreShort(t *testing.T) {
	for document, most := range map[string]int{"../README.md": 7_500, "README.md": 22_000} {
		if text, _ := read(t, document, "go"); len(text) > most {
			t.Errorf("%s has %d bytes, want %d at most", document, len(text), most)
		}
	}
}

// The program at the top of the README prints what the README says, at a web in which
// example.com and down.example.com answer as it says.
func TestTheProgramInTheReadmePrintsWhatItSays(t *testing.T) {
	tier.Gate(t)
	aside(t)
	_, programs := read(t, "../README.md", "go")
	_, sessions := read(t, "../README.md", "")
	if len(programs) == 0 || len(sessions) == 0 {
		t.Fatal("the README has no program, or no output of it")
	}
	compiled(t, "main.go", programs[0], "vet")
	command, want, _ := strings.Cut(sessions[0], "\n")
	urls, found := strings.CutPrefix(command, "$ go run . ")
	if !found {
		t.Fatalf("the README runs %q", command)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only some systems take a certificate from SSL_CERT_FILE")
	}
	dir := t.TempDir()
	main, certificate := filepath.Join(dir, "main.go"), filepath.Join(dir, "cert.pem")
	site := httptest.NewTLSServer(http.HandlerFunc(exampleCom))
	defer site.Close()
	p := newProxy(t, "Basic bWU6cmlnaHQ=", nil)
	p.secure = site.Listener.Addr().String()
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw})
	for name, data := range map[string][]byte{main: []byte(programs[0]), certificate: trusted} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, main).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := exec.Command(program, strings.Fields(urls)...)
	through := strings.Replace(p.URL, "://", "://me:right@", 1)
	run.Env = []string{"HTTPS_PROXY=" + through, "SSL_CERT_FILE=" + certificate}
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Run(); err != nil || stdout.String() != want {
		t.Errorf("%v\n%sgot\n%swant\n%s", err, stderr.String(), stdout.String(), want)
	}
}

// exampleCom is the web that the README speaks of.
func exampleCom(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host == "down.example.com":
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/robots.txt":
		w.Write([]byte("User-agent: *\nDisallow: /private/\n"))
	}
}

// around is what the README leaves out of its snippets.
const around = `package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/policy"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

var (
	_ context.Context
	_ *testing.T
	_ *url.URL
	_ cache.Cache
	_ client.Pacer
	_ redisturns.Store
	_ = []any{errors.New, io.WriteString, log.Println, http.Get, httptest.NewServer, time.Now}
	_ = []any{dirstore.Open, redisstore.Open}
)

func again(*url.URL, time.Time) error { return nil }

`

func TestTheSnippetsInTheReadmeCompile(t *testing.T) {
	tier.Gate(t)
	aside(t)
	_, snippets := read(t, "../README.md", "go")
	if len(snippets) != 5 {
		t.Fatalf("the README has %d blocks of Go, want a program and four snippets", len(snippets))
	}
	source := around // of all of them: to build takes most of the time
	for i, s := range snippets[1:] {
		if strings.HasPrefix(s, "func ") {
			source += s
			continue
		}
		source += fmt.Sprintf("func snippet%d(ctx context.Context, gate *client.Transport, c *http.Client, u *url.URL) error {\nif ctx.Err() == nil {\n%s\n}\nreturn nil\n}\n\nvar _ = snippet%[1]d\n\n", i, s)
	}
	compiled(t, "readme_test.go", source, "test", "-count=1", "-vet=all")
}

// The tests that the README of this folder says hold a guarantee are there.
func TestTheTestsInTheReadmeExist(t *testing.T) {
	text, _ := read(t, "README.md", "")
	for _, costs := range []string{"bench", "cachebench", "gatebench", "proxybench", "../client/turns"} {
		more, _ := read(t, costs+"/README.md", "")
		text += more
	}
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(source, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)\\w+)`").FindAllStringSubmatch(text, -1)
	if len(named) < 20 {
		t.Errorf("the README names %d tests, want one for each guarantee", len(named))
	}
	for _, m := range named {
		if !declared[m[1]] {
			t.Errorf("the README names %s, which is no test", m[1])
		}
	}
}

// Each row of the table of guarantees names a test.
func TestEachGuaranteeNamesItsTest(t *testing.T) {
	text, _ := read(t, "README.md", "")
	_, table, found := strings.Cut(text, "| guarantee |")
	table, _, closed := strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if !found || !closed || len(rows) < 31 {
		t.Fatalf("the table of guarantees has %d rows", len(rows)-2)
	}
	for _, row := range rows[2:] {
		if !strings.Contains(row, "`Test") && !strings.Contains(row, "`Fuzz") {
			t.Errorf("no test holds %s", row)
		}
	}
}
