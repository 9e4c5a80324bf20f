// Ftp gates requests for ftp URLs: package fetch/ftp, registered with the http.Transport below the gate, reads robots.txt
// and pages over FTP.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"os/signal"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch/ftp"
)

const agent = "ExampleBot/1.0 (+https://example.com/bot)"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, os.Stdout); {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Println("nothing to show: install vsftpd, or add /usr/sbin to the PATH")
	case err != nil:
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	site, stop, err := serve(ctx, map[string]string{
		"robots.txt": "User-agent: *\nDisallow: /private\n",
		"public":     "hello",
		"private":    "secret",
	})
	if err != nil {
		return err
	}
	defer stop()

	base := http.DefaultTransport.(*http.Transport).Clone()
	base.RegisterProtocol("ftp", &ftp.Transport{DialContext: base.DialContext})
	c := &http.Client{Transport: &client.Transport{Base: base, UserAgent: agent}}
	for _, path := range []string{"/public", "/private"} {
		fmt.Fprintln(out, get(c, site, path))
	}
	return nil
}

func get(c *http.Client, site, path string) string {
	res, err := c.Get(site + path)
	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok {
		return fmt.Sprintf("refused %s: %v", path, refusal.Decision)
	}
	if err != nil {
		return "failed " + path + ": " + err.Error()
	}
	defer res.Body.Close()
	file, err := io.ReadAll(res.Body)
	if err != nil {
		return "failed " + path + ": " + err.Error()
	}
	return fmt.Sprintf("sent %s: %s", path, file)
}
