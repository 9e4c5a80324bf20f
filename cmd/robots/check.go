package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

// checker is "robots check".
type checker struct {
	*app
	network
	all     bool // --as all
	explain bool

	// results holds the whole answers of the origins asked in this run. A cache.Cache
	// would drop the file, which --explain and --as all need.
	results map[fetch.Origin]*fetch.Result
}

// check makes the subcommand. The URLs are few, given by hand, and answered one after
// the other; lists are for filter.
func (a *app) check() *cobra.Command {
	c := &checker{app: a, results: map[fetch.Origin]*fetch.Result{}}
	cmd := &cobra.Command{
		Use:   "check URL...",
		Short: "Say whether a crawler may fetch URLs, and why",
		Long: `Check fetches the robots.txt of each URL's origin and says whether the crawler
may fetch the URL: the verdict, the rule that decided and its line, the group it is
in, how fresh the file is, and the redirects that led to it. A URL without a scheme
means https.

With --as all, one answer of the server is read in every dialect, side by side.`,
		Example: `  robots check https://example.com/private/page --agent ExampleBot
  robots check example.com/a example.com/b --as google --explain
  robots check https://example.com/ --as all --json`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(c.run),
	}
	agentVar(cmd, &c.agent)
	cmd.Flags().Var(dialectsFlag{&c.dialect, &c.all}, "as", "read robots.txt as this `DIALECT` does: "+strings.Join(dialectNames(), ", ")+", or all")
	completeDialects(cmd, "all")
	cmd.Flags().BoolVar(&c.explain, "explain", false, "show the lines of the file that matter, the deciding one marked")
	c.register(cmd)
	c.registerCache(cmd)
	return cmd
}

// dialectsFlag is --as where it also takes "all".
type dialectsFlag struct {
	*dialectFlag
	all *bool
}

func (f dialectsFlag) Set(name string) error {
	if *f.all = name == "all"; *f.all {
		return nil
	}
	return f.dialectFlag.Set(name)
}

// run reads all URLs before it asks about the first: a slip in the last one shall not
// come out after a minute of network.
func (c *checker) run(ctx context.Context, args []string) error {
	if c.all && c.cacheAt != "" {
		return usagef("--as all reads the file itself, which a cache does not keep: leave out --cache")
	}
	var urls []*url.URL
	for _, arg := range args {
		u, err := parseURL(arg)
		if err != nil {
			return err
		}
		urls = append(urls, u)
	}
	g, err := c.open(c.err)
	if err != nil {
		return err
	}
	defer g.end(ctx, c.app)
	for i, u := range urls {
		if err := c.one(ctx, g, args[i], u); err != nil {
			return err
		}
	}
	return nil
}

// one checks one URL, which is printed as it was typed: a reader looks for that. Its
// output is written in one piece, or not at all if the run is interrupted.
func (c *checker) one(ctx context.Context, g *gate, text string, u *url.URL) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return err
	}
	res, err := c.result(ctx, g, o)
	if err != nil {
		return err
	}
	readings := []reading{{c.dialect.Dialect, res}}
	if c.all {
		readings = inAllDialects(res)
	}
	var out output
	for i, r := range readings {
		v, err := c.verdict(text, u, o, r)
		if err != nil {
			return err
		}
		out.worsen(v.status())
		switch {
		case c.json:
			out.json(v)
		case c.all:
			c.row(&out, i, v)
		default:
			c.print(&out, v)
		}
	}
	return c.emit(&out)
}

// verdict asks the gate about one reading of the answer. To ask r.result.Policy would be
// sometimes wrong: only the gate knows the target that goes on the wire, and what holds
// for dot segments. The error of robots.txt moves from the answer
// to the verdict, where scripts look for it in the output of every subcommand.
func (c *checker) verdict(text string, u *url.URL, o fetch.Origin, r reading) (*verdict, error) {
	d, err := client.Decide(r.result.Policy, c.agent.String(), u)
	if err != nil {
		return nil, err
	}
	v := newVerdict(text, d)
	v.Agent, v.Dialect, v.Robots = c.agent.String(), dialectName(r.dialect), newAnswer(o, r.result)
	v.Error, v.Robots.Error = v.Robots.Error, ""
	if c.explain {
		v.Lines = r.explain(c.agent.String(), u.RequestURI(), d)
	}
	return &v, nil
}

// result returns the robots.txt of o: what the cache holds where there is one that
// outlives this run, else the whole answer of the server, asked once.
func (c *checker) result(ctx context.Context, g *gate, o fetch.Origin) (*fetch.Result, error) {
	if c.cacheAt != "" {
		return g.lookup(ctx, o)
	}
	if res, known := c.results[o]; known {
		return res, nil
	}
	res, err := g.Fetcher.Fetch(ctx, o, nil)
	if err == nil {
		c.results[o] = res
	}
	return res, err
}

// print writes a verdict for people: the answer first, then what it rests on.
func (c *checker) print(out *output, v *verdict) {
	p := paletteFor(c.out)
	fmt.Fprintf(out, "%s  %s\n", p.verdict(v.Allowed), visible(v.URL))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "  %-10s %s\n", name, value)
		}
	}
	field("because", v.because())
	field("group", visible(v.Group))
	field("robots", v.Robots.String())
	for _, r := range v.Robots.Redirects {
		field("via", visible(r))
	}
	c.printLines(out, v.Lines)
}

// row prints one dialect's verdict, below the URL.
func (c *checker) row(out *output, i int, v *verdict) {
	if i == 0 {
		fmt.Fprintf(out, "%s\n", visible(v.URL))
	}
	fmt.Fprintf(out, "  %-10s %s  %s\n", v.Dialect, paletteFor(c.out).verdict(v.Allowed), v.because())
	c.printLines(out, v.Lines)
}

// printLines writes the lines of --explain with their numbers. The mark is a character
// and not the colour alone, for logs and for readers who do not see green.
func (c *checker) printLines(out *output, lines []fileLine) {
	p := paletteFor(c.out)
	for _, l := range lines {
		text := fmt.Sprintf("%6d  %s", l.Number, visible(l.Text))
		if l.Decides {
			fmt.Fprintf(out, "  > %s\n", p.good(text))
		} else {
			fmt.Fprintf(out, "    %s\n", text)
		}
	}
}
