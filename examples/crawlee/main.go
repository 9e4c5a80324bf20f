// Crawlee runs a crawler whose requests robots serve decides on and paces, each hop of a redirect included:
// crawl.mjs asks it before each request, and follows redirects itself.
package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/robotsgate/robotsgate/examples/internal/service"
)

//go:embed crawl.mjs package.json
var program embed.FS

func main() { service.Main("node and npm", run) }

func run(ctx context.Context, out, problems io.Writer) error {
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	return service.Crawl(ctx, out, problems, 1, func(ctx context.Context, dir, at, web string) (*exec.Cmd, error) {
		if err := os.CopyFS(dir, program); err != nil {
			return nil, err
		}
		p := exec.CommandContext(ctx, node, "crawl.mjs", at, "http://www.example/")
		p.Dir, p.Env = dir, append(os.Environ(), "WEB=http://"+web)
		return p, install(ctx, dir)
	})
}

// install has npm get Crawlee. What it says is the error.
func install(ctx context.Context, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	p.Dir, p.WaitDelay = dir, time.Second
	if said, err := p.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm install: %w: %s", exec.ErrNotFound, err, said)
	}
	return nil
}
