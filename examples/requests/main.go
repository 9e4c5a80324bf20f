// Requests runs a crawler whose requests robots serve decides on and paces, each hop of a redirect included:
// robotsgate.py is a transport adapter for Python's requests that asks it.
package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/robotsgate/robotsgate/examples/internal/service"
)

//go:embed *.py
var crawler embed.FS

func main() { service.Main("python3 with requests", run) }

func run(ctx context.Context, out, problems io.Writer) error {
	python, err := exec.LookPath("python3")
	if err == nil && exec.CommandContext(ctx, python, "-c", "import requests").Run() != nil {
		err = fmt.Errorf("requests: %w", exec.ErrNotFound)
	}
	if err != nil {
		return err
	}
	return service.Crawl(ctx, out, problems, func(ctx context.Context, dir, at, web string) (*exec.Cmd, error) {
		p := exec.CommandContext(ctx, python, filepath.Join(dir, "crawl.py"), at, "http://www.example/", "http://down.example/")
		p.Env = append(os.Environ(), "http_proxy=http://"+web, "no_proxy=127.0.0.1")
		return p, os.CopyFS(dir, crawler)
	})
}
