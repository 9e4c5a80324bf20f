// Python runs crawl.py, a polite crawler of thirty lines that is not written in Go: robots serve
// decides for it, and says when. Two of them crawl one embedded web at the same time, and each
// site sees one visitor that keeps its delay.
package main

import (
	"context"
	_ "embed"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/robotsgate/robotsgate/examples/internal/service"
)

//go:embed crawl.py
var crawler string

func main() { service.Main("python3", run) }

func run(ctx context.Context, out, problems io.Writer) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return err
	}
	return service.Crawl(ctx, out, problems, 2, func(ctx context.Context, _, at, web string) (*exec.Cmd, error) {
		p := exec.CommandContext(ctx, python, "-", at, "http://www.example/")
		p.Stdin = strings.NewReader(crawler)
		p.Env = append(os.Environ(), "http_proxy=http://"+web, "no_proxy=127.0.0.1")
		return p, nil
	})
}
