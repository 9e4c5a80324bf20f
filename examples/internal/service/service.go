// Package service runs robots serve, and programs that ask it, for the examples.
package service

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// start builds robots in dir, runs "robots serve" until stop, and returns its URL. All names lead to the address web.
func start(ctx context.Context, dir, web string, problems io.Writer) (url string, stop func(), err error) {
	robots := filepath.Join(dir, "robots")
	if _, err := exec.LookPath("go"); err != nil {
		return "", nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", robots, "github.com/robotsgate/robotsgate/cmd/robots")
	build.Stderr = problems
	// Go ends its compilers when it is interrupted, and not when it is killed.
	build.Cancel, build.WaitDelay = func() error { return build.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := build.Run(); err != nil {
		return "", nil, err
	}
	p := exec.CommandContext(ctx, robots, "serve", "--listen=127.0.0.1:0", "--cache=none", "--private",
		"--connect-to=::"+web)
	p.Stderr = problems
	said, err := p.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := p.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		p.Process.Kill()
		p.Wait()
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		stop()
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "robots serve: ")), stop, err
}
