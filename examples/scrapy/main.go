// Scrapy runs a spider whose requests robots serve decides on and paces, each hop of a redirect included:
// robotsgate.py is a downloader middleware that asks it.
package main

import (
	"context"
	"embed"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/robotsgate/robotsgate/examples/internal/service"
)

//go:embed *.py
var spider embed.FS

func main() { service.Main("scrapy", run) }

func run(ctx context.Context, out, problems io.Writer) error {
	scrapy, err := exec.LookPath("scrapy")
	if err != nil {
		return err
	}
	return service.Crawl(ctx, out, problems, 1, func(ctx context.Context, dir, at, web string) (*exec.Cmd, error) {
		p := exec.CommandContext(ctx, scrapy, "runspider", filepath.Join(dir, "crawl.py"), "-s", "ROBOTSGATE="+at,
			"-s", "LOG_LEVEL=ERROR", "-a", "start=http://www.example/")
		p.Env = append(os.Environ(), "PYTHONPATH="+dir, "http_proxy=http://"+web, "no_proxy=127.0.0.1")
		return p, os.CopyFS(dir, spider)
	})
}
