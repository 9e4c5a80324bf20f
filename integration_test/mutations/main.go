// Command mutations changes one line of the code at a time and reports each change that no
// test notices. A change is compiled from an overlay, so that no file of the work tree is
// touched.
//
//	go run ./integration_test/mutations          # all of each testdata/mutations.txt
//	go run ./integration_test/mutations pacer    # those whose file or name contains "pacer"
//	go run ./integration_test/mutations -for 4m  # as many as begin in that time, others each time
//
// It exits with 1 if a mutation survives or does not fit the code any more, and if a test
// that is to notice one fails without it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// mutation is a row of a testdata/mutations.txt.
type mutation struct {
	at       string // the row, as file:line
	file     string // from the root of the module
	old, new string // old occurs once in the file
	name     string // what would be wrong
	pkg      string // has the tests
	tests    string // separated by spaces: one of them has to fail; empty: of all in pkg
}

func main() {
	within := flag.Duration("for", time.Hour, "`time` in which mutations may begin")
	flag.Parse()
	if err := run(flag.Arg(0), *within); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

func run(words string, within time.Duration) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	rows, err := readAll(root)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(m mutation) bool { return !strings.Contains(m.file+" "+m.name, words) })
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	started := time.Now()
	var mu sync.Mutex // guards bad, and keeps lines apart
	bad := 0
	todo := make(chan int)
	var workers sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) { // some mutants wait, or hang
		workers.Go(func() {
			for i := range todo {
				began := time.Now()
				said, err := try(root, filepath.Join(dir, fmt.Sprint(i)), rows[i])
				mu.Lock()
				if err != nil {
					bad++
					said = err.Error()
				}
				fmt.Printf("%s: %s: %s (%.0f s)\n", rows[i].file, rows[i].name, said, time.Since(began).Seconds())
				mu.Unlock()
			}
		})
	}
	tried := 0
	for i := range rows {
		if time.Since(started) > within {
			break
		}
		todo <- i
		tried++
	}
	close(todo)
	workers.Wait()
	if err := baseline(root, dir, rows[:tried]); err != nil {
		return err
	}
	fmt.Printf("%d of %d mutations in %v\n", tried, len(rows), time.Since(started).Round(time.Second))
	if bad > 0 {
		return fmt.Errorf("%d of %d mutations were not noticed, or could not be tried", bad, tried)
	}
	return nil
}

// moduleRoot is the folder of the module that this program is part of.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// mutate returns the text of the file after the mutation.
func (m mutation) mutate(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.at, err)
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s: %s has %q %d times: mend the row", m.at, m.file, m.old, n)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

func (m mutation) pattern() string {
	if m.tests == "" {
		return "."
	}
	return "^(" + strings.Join(strings.Fields(m.tests), "|") + ")$"
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// try runs the tests of a mutation in a folder of its own, and says which of them noticed.
func try(root, dir string, m mutation) (string, error) {
	text, err := m.mutate(root)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	mutated, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): mutated}})
	if err := errors.Join(err, os.WriteFile(mutated, text, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	out, err := goTest(root, dir, "-overlay="+overlay, "-run="+m.pattern(), m.pkg)
	var tests []string
	for _, f := range failed.FindAllSubmatch(out, -1) {
		tests = append(tests, string(f[1]))
	}
	switch {
	case err == nil:
		return "", fmt.Errorf("SURVIVES %s", m.tests)
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return "", fmt.Errorf("does not compile\n%s", out)
	case len(tests) == 0:
		return "noticed by the end of the process", nil // a panic, or the time that a test may take
	}
	return "noticed by " + strings.Join(tests, " "), nil
}

// baseline checks that the tests of what was tried are there, and pass without any mutation.
func baseline(root, dir string, rows []mutation) error {
	tests := map[string][]string{}
	for _, m := range rows {
		tests[m.pkg] = append(tests[m.pkg], strings.Fields(m.tests)...)
	}
	for pkg, names := range tests {
		out, err := goTest(root, dir, "-v", "-run=^("+strings.Join(names, "|")+")$", pkg)
		if err != nil {
			return fmt.Errorf("%s fails without a mutation: %w\n%s", pkg, err, out)
		}
		for _, name := range names {
			if !bytes.Contains(out, []byte("--- PASS: "+name+" ")) {
				return fmt.Errorf("%s has no test %s, or skips it: mend the row", pkg, name)
			}
		}
	}
	return nil
}

// goTest gives the tests a folder for their files: a mutant that ends its process leaves them there.
func goTest(root, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout=60s"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	return cmd.CombinedOutput()
}
