package main

// robots sitemap: the URLs that a site lists in its sitemaps, for filter and other programs. The sitemaps are asked for as
// a crawler asks for pages: robots.txt allows them, and one follows the other at the pace that the site wants.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/sitemap"
	"github.com/robotsgate/robotsgate/policy"
)

// lister is "robots sitemap".
type lister struct {
	*shell.App
	site.Network
	out shell.Output
}

const sitemapHelp = `Sitemap writes the URLs that the sitemaps of a site list, one a line. It reads
the sitemaps that robots.txt names, and those of their indexes: XML, gzip and
text, up to 50,000 URLs and 50 MB each, and up to 1,000 of them. They are asked
for as pages are: if robots.txt allows them, and at the pace that it asks for.

` + shell.URLHelp + `

The exit status is 2 if robots.txt could not be read or names no sitemap, or if
a sitemap could not be read to its end; what came before is written.`

// sitemapCommand makes the subcommand.
func sitemapCommand(a *shell.App) *cobra.Command {
	l := &lister{App: a}
	cmd := &cobra.Command{
		Use:   "sitemap URL",
		Short: "List the URLs in the sitemaps of a site",
		Long:  sitemapHelp,
		Example: `  robots sitemap example.com
  robots sitemap example.com | robots filter --agent ExampleBot`,
		Args:              shell.One("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              shell.Runs(l.run),
	}
	l.Register(cmd, site.AgentVar, site.DialectVar)
	return cmd
}

func (l *lister) run(ctx context.Context, args []string) error {
	u, _, err := site.ParseSite(l.Dialect, 0, args[0])
	if err != nil {
		return err
	}
	gate, err := l.Open(l.Err)
	if err != nil {
		return err
	}
	defer gate.End(ctx, l.App)
	gate.Pacer = &client.Pacer{}
	file, err := gate.Lookup(ctx, u)
	if err != nil {
		return err
	}
	sitemaps := slices.Collect(file.Sitemaps())
	switch {
	case file.Reason() == policy.ReasonUnreachable:
		return fmt.Errorf("robots.txt of %s is unreachable", answer.Visible(u.Host))
	case len(sitemaps) == 0:
		return fmt.Errorf("robots.txt of %s names no sitemap", answer.Visible(u.Host))
	}
	r := sitemap.Reader{
		Open:   func(ctx context.Context, u *url.URL) (io.ReadCloser, error) { return l.open(ctx, gate, u) },
		URL:    l.write,
		Failed: l.failed,
	}
	if err := r.Read(ctx, sitemaps...); err != nil {
		return err
	}
	return l.Emit(&l.out)
}

// open asks for a sitemap. It has ten times the time of a robots.txt: it may have to wait for its turn, and have 50 MB.
func (l *lister) open(ctx context.Context, gate *site.Gate, u *url.URL) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*l.Timeout)
	req, err := l.Get(ctx, u.String())
	if err != nil {
		cancel()
		return nil, err
	}
	resp, err := (&http.Client{Transport: gate.Transport}).Do(req)
	if err != nil {
		cancel()
		return nil, err
	}
	body := closing{resp.Body, cancel}
	if resp.StatusCode != http.StatusOK {
		body.Close()
		return nil, fmt.Errorf("status %s", resp.Status)
	}
	return body, nil
}

// closing does something more when it is closed.
type closing struct {
	io.ReadCloser
	more func()
}

func (c closing) Close() error {
	defer c.more()
	return c.ReadCloser.Close()
}

// write writes a URL, in blocks.
func (l *lister) write(loc string) error {
	l.out.WriteString(answer.Visible(loc) + "\n")
	if l.out.Len() < 64<<10 {
		return nil
	}
	err := l.Emit(&l.out)
	l.out = shell.Output{}
	return err
}

func (l *lister) failed(loc string, err error) {
	l.out.Worsen(shell.ExitUnknown)
	fmt.Fprintf(&l.out.Problems, "robots: sitemap %s: %s\n", answer.Visible(loc), answer.Visible(err.Error()))
}
