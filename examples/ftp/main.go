// Ftp puts the gate over a client for FTP. The gate reads robots.txt over FTP itself; the pages
// come from what is registered for ftp with the http.Transport below it.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/jlaffaye/ftp"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
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
	base.RegisterProtocol("ftp", pages{})
	c := &http.Client{Transport: &client.Transport{
		Base:      base,
		UserAgent: agent,
		Fetcher:   &fetch.Fetcher{FTP: true}, // leave it out and ftp pages are sent unasked
	}}
	for _, path := range []string{"/public", "/private", "/%2Fprivate"} {
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

// pages sends requests for ftp, one session each.
type pages struct{}

func (pages) RoundTrip(req *http.Request) (*http.Response, error) {
	addr := net.JoinHostPort(req.URL.Hostname(), cmp.Or(req.URL.Port(), "21"))
	conn, err := ftp.Dial(addr, ftp.DialWithContext(req.Context()))
	if err != nil {
		return nil, err
	}
	if err := conn.Login("anonymous", "anonymous@example.com"); err != nil {
		return nil, errors.Join(err, conn.Quit())
	}
	file, err := conn.Retr(strings.TrimPrefix(req.URL.Path, "/"))
	if err != nil {
		return nil, errors.Join(err, conn.Quit())
	}
	return &http.Response{StatusCode: http.StatusOK, Body: body{file, conn}, ContentLength: -1, Request: req}, nil
}

// body is a file that ends its session.
type body struct {
	io.ReadCloser
	conn *ftp.ServerConn
}

func (b body) Close() error { return errors.Join(b.ReadCloser.Close(), b.conn.Quit()) }
