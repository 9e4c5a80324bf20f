package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
)

// getter is "robots fetch". answer.Fetched is what it shows, and what GET /v1/robots of serve answers.
type getter struct {
	*shell.App
	site.Network
	raw bool
}

// fetchCommand makes the subcommand. It has no --cache: it shows what a server does.
func fetchCommand(a *shell.App) *cobra.Command {
	g := &getter{App: a}
	cmd := &cobra.Command{
		Use:   "fetch URL",
		Short: "Fetch the robots.txt of a site and show how it came",
		Long: `Fetch asks a site for its robots.txt as a crawler does. It shows the status, the
redirects, the header fields that concern caching, how long the answer holds and
why, and the file. URL is any URL of the site.

` + shell.URLHelp + `

The exit status is 2 if robots.txt is unreachable (no answer, 5xx, a broken
one), which disallows everything; a 4xx is an answer.`,
		Example: `  robots fetch example.com
  robots fetch http://localhost:8080 --raw > robots.txt
  robots fetch example.com --json`,
	}
	g.One(cmd, a, g.run)
	cmd.Flags().BoolVar(&g.raw, "raw", false, "write the file only, byte for byte")
	g.Register(cmd, site.DialectVar)
	return cmd
}

// run asks the server and no Cache, which would drop most of the header.
func (g *getter) run(ctx context.Context, gate *site.Gate, _ *url.URL, o fetch.Origin) error {
	if g.JSON && g.raw {
		return shell.Usagef("--raw writes the file only: leave out --json")
	}
	answered := g.Waiting(o)
	res, err := gate.Fetcher.Fetch(ctx, o, nil)
	if answered(); err != nil { // of this process; what a server did is in the Result
		return err
	}
	res = res.In(g.Dialect)
	return g.show(res, answer.NewFetched(res, answer.New(o, res, time.Time{})))
}

// show writes the answer in one of three forms. With --raw there may be nothing to write, and a warning says why.
func (g *getter) show(res *fetch.Result, f *answer.Fetched) error {
	var out shell.Output
	if res.Err != nil { // a 404 has none: that there are no rules has been found out
		out.Worsen(shell.ExitUnknown)
	}
	if res.Truncated && !g.JSON { // which says so
		out.Warn(fmt.Errorf("%s is longer than %d bytes: the rest was not read", f.Robots.URL, answer.MaxFile))
	}
	switch {
	case g.JSON:
		out.JSON(f)
	case g.raw && res.Err != nil:
		out.Warn(res.Err)
	case g.raw && f.Bytes == 0:
		out.Warn(fmt.Errorf("%s: no file, or an empty one: %s", f.Robots.URL, f.Robots))
	case g.raw:
		out.Write(res.Body)
	default:
		g.print(&out, res, f)
	}
	return g.Emit(&out)
}

// print writes the answer for people, and the file below an empty line, made visible: a hostile file could otherwise steer
// the terminal.
func (g *getter) print(out *shell.Output, res *fetch.Result, f *answer.Fetched) {
	a := f.Robots
	fmt.Fprintf(out, "%s\n", answer.Visible(a.URL))
	if a.Status != nil {
		out.Field("status", fmt.Sprintf("%d %s", *a.Status, http.StatusText(*a.Status)))
	}
	out.Field("effect", a.Outcome)
	if a.Wall {
		out.Field("wall", "it may be the answer of a wall, and no robots.txt")
	}
	if a.Error != nil {
		out.Field("error", *a.Error)
	}
	for _, r := range a.Redirects {
		out.Field("via", r)
	}
	// Lines of one field are shown apart, as they were sent: so a second one that a proxy has added shows.
	for _, name := range answer.CachingFields {
		for _, value := range f.Header[name] {
			out.Field(strings.ToLower(name), value)
		}
	}
	out.Field("lifetime", answer.ExplainLifetime(res, a))
	if f.Bytes == 0 {
		return
	}
	out.Field("holds", f.Holds())
	out.WriteByte('\n')
	for l := range strings.Lines(string(res.Body)) {
		fmt.Fprintln(out, answer.Visible(strings.TrimRight(l, "\r\n")))
	}
}
