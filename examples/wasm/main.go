// Wasm builds package policy for browsers, and serves a page that decides without a server: each
// answer is computed in the page. It shows what the page answers in a headless Chromium, if there
// is one. With -serve it serves the page until it is interrupted.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed index.html
var page []byte

func main() {
	serve := flag.Bool("serve", false, "serve the page until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "wasm:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, serve bool) error {
	dir, err := os.MkdirTemp("", "wasm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := build(ctx, dir); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	defer server.Close()
	go server.Serve(l)
	url := fmt.Sprintf("http://%s/", l.Addr())
	if serve {
		fmt.Fprintln(out, "the page is at", url)
		<-ctx.Done()
		return nil
	}
	answer, err := visit(ctx, dir, url)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer)
	return nil
}

// build puts into dir what the page needs: itself, package policy as WebAssembly, and Go's own
// script that runs it.
func build(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "robots.wasm"),
		"github.com/robotsgate/robotsgate/examples/wasm/robots")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"index.html": page, "wasm_exec.js": script} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// visit returns what the page answers in a browser.
func visit(ctx context.Context, dir, url string) (string, error) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		return "there is no chromium here: see the page with -serve", nil
	}
	args := []string{"--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-quic", "--user-data-dir=" + filepath.Join(dir, "profile"),
		"--timeout=20000", "--virtual-time-budget=20000", "--dump-dom", url}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.CommandContext(ctx, browser, args...)
	var dom, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &dom, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, &errs)
	}
	m := regexp.MustCompile(`<p id="answer"[^>]*>(.*?)</p>`).FindSubmatch(dom.Bytes())
	if m == nil {
		return "", fmt.Errorf("the page has no answer:\n%s", &dom)
	}
	return string(m[1]), nil
}
