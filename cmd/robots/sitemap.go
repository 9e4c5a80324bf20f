package main

// robots sitemap: the URLs that a site lists in its sitemaps, for filter and other programs. The sitemaps are asked for as
// a crawler asks for pages: robots.txt allows them, and one follows the other at the pace that the site wants.

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/sitemap"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// lister is "robots sitemap".
type lister struct {
	*shell.App
	site.Network
	refused bool

	out    shell.Output
	origin fetch.Origin
	robots *fetch.Result
	found  sitemap.Count
}

const sitemapHelp = `Sitemap writes the URLs that the sitemaps of a site list, one a line. It reads
the sitemaps that robots.txt names, and those of their indexes: XML, gzip and
text, up to 50,000 URLs and 50 MB each, and up to 1,000 of them. They are asked
for as pages are: if robots.txt allows them, and at the pace that it asks for.

With --refused it counts the URLs that robots.txt of the site refuses, by the
line that does, in place of the list. URLs of other sites are not asked about.

` + shell.URLHelp + `

The exit status is 2 if robots.txt could not be read or names no sitemap, or if
a sitemap could not be read to its end; what came before is written. It is 1 if
--refused finds one.`

// sitemapCommand makes the subcommand.
func sitemapCommand(a *shell.App) *cobra.Command {
	l := &lister{App: a}
	cmd := &cobra.Command{
		Use:   "sitemap URL",
		Short: "List the URLs in the sitemaps of a site",
		Long:  sitemapHelp,
		Example: `  robots sitemap example.com
  robots sitemap example.com --refused --agent Googlebot
  robots sitemap example.com | robots filter --agent ExampleBot`,
	}
	l.One(cmd, a, l.run)
	cmd.Flags().BoolVar(&l.refused, "refused", false, "count the URLs that are refused, by the line that refuses them")
	l.Register(cmd, site.AgentVar, site.DialectVar)
	return cmd
}

func (l *lister) run(ctx context.Context, gate *site.Gate, u *url.URL, o fetch.Origin) (err error) {
	if l.JSON && !l.refused {
		return shell.Usagef("--json is for --refused: a list is text")
	}
	gate.Pacer, gate.Cache.KeepBody = &client.Pacer{}, true
	// It is asked for in its turn, and what was read is in the Cache then.
	if _, err = gate.Lookup(ctx, u); err != nil {
		return err
	}
	if l.robots, _, err = gate.Find(ctx, o); err != nil {
		return err
	}
	l.origin, l.found.By = o, []*sitemap.Refusal{}
	sitemaps := slices.Collect(l.robots.Policy.Sitemaps())
	relative := l.relative()
	switch {
	case l.robots.Err != nil:
		return fmt.Errorf("robots.txt of %s is unreachable: %w", u.Host, l.robots.Err)
	case len(sitemaps) == 0 && !relative:
		return fmt.Errorf("robots.txt of %s names no sitemap", u.Host)
	case len(sitemaps) == 0:
		return nil
	}
	r := sitemap.Reader{
		// Ten times the time of a robots.txt: it may have to wait for its turn, and have 50 MB.
		Client:    &http.Client{Transport: gate.Transport, Timeout: 10 * l.Timeout},
		UserAgent: l.UserAgent, URL: l.write, Failed: l.failed, Files: 1000,
	}
	if l.refused {
		r.URL = func(loc string) error { l.found.Add(&l.Asker, o, l.robots, loc); return nil }
	}
	if err := r.Read(ctx, sitemaps...); err != nil {
		return err
	}
	if l.refused {
		l.tell()
	}
	return l.Emit(&l.out)
}

// relative tells of the lines that name a sitemap by no whole URL, and reports whether there is one.
func (l *lister) relative() (found bool) {
	var out shell.Output
	for _, f := range lint.File(l.robots.Body) {
		if f.ID == "RT407" {
			out.Complain(fmt.Errorf("%s: line %d: %s", l.origin.RobotsURL(), f.Line, f.Message))
			found = true
		}
	}
	l.Emit(&out) // to standard error
	return found
}

// tell writes what was found, the most first.
func (l *lister) tell() {
	l.found.Sort()
	if l.found.Refused > 0 {
		l.out.Worsen(shell.ExitRefused)
	}
	if l.JSON {
		l.out.JSON(l.found)
		return
	}
	fmt.Fprintf(&l.out, "%d of %s in the sitemaps are refused\n", l.found.Refused, answer.Plural(l.found.URLs, "URL"))
	for _, r := range l.found.By {
		fmt.Fprintf(&l.out, "  %6d  %s: such as %s\n", r.URLs, r.Because, answer.Visible(r.Example))
	}
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
