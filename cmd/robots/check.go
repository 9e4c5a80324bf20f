package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/fetch"
)

// checker is "robots check".
type checker struct {
	*app
	network
	all     bool // --as all
	explain bool
	uses    usesFlag
}

// check makes the subcommand. The URLs are few and given by hand; lists are for filter.
func (a *app) check() *cobra.Command {
	c := &checker{app: a}
	cmd := &cobra.Command{
		Use:   "check URL...",
		Short: "Say whether a crawler may fetch URLs, and why",
		Long: `Check fetches the robots.txt of each URL's site and reports whether the crawler may
fetch the URL: the verdict, the rule that decided and its line, the group it is in,
how fresh the file is, and the redirects that led to it. Sites are asked at the same
time, each once; the answers come in the order of the URLs.

` + urlHelp + `

With --uses, a URL that the rules allow is refused if robots.txt disallows one of these
uses of it; see robots usage.

With --as all, one answer of the server is read in every dialect, side by side.`,
		Example: `  robots check https://example.com/private/page --agent ExampleBot
  robots check example.com/a example.com/b --as google --explain
  robots check https://example.com/ --as all --json
  robots check https://example.com/essays/1 --uses train-ai`,
		Args:              atLeastOne("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(c.run),
	}
	agentVar(cmd, &c.agent)
	cmd.Flags().Var(dialectsFlag{&c.dialect, &c.all}, "as",
		"read robots.txt as this `DIALECT` does: "+strings.Join(dialectNames(), ", ")+", or all")
	completeDialects(cmd, "all")
	cmd.Flags().BoolVar(&c.explain, "explain", false, "show the lines of the file that matter, the deciding one marked")
	usesVar(cmd, &c.uses)
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

// checked is one URL on its way to an answer.
type checked struct {
	number int
	text   string // as typed
	url    *url.URL
	*asked
}

// maxAsked is how many sites check asks at a time.
const maxAsked = 64

// run reads all URLs before it asks about the first: a slip in the last one must not
// come out after a minute of network.
func (c *checker) run(ctx context.Context, args []string) error {
	if c.all && c.cacheAt != "" {
		return usagef("--as all reads the file itself, which a cache does not keep: leave out --cache")
	}
	var urls []checked
	asks := map[fetch.Origin]*asked{}
	var all []*asked
	for i, arg := range args {
		u, o, err := parseSiteAs(c.dialect.Dialect, i, arg)
		if err != nil {
			return err
		}
		if asks[o] == nil {
			asks[o] = newAsked(o)
			all = append(all, asks[o])
		}
		urls = append(urls, checked{i + 1, arg, u, asks[o]})
	}
	g, err := c.open(c.err)
	if err != nil {
		return err
	}
	defer g.end(ctx, c.app)
	return c.answer(ctx, g, urls, all)
}

// answer asks all sites at once and writes the answers in the order of the URLs. It
// returns when no lookup is under way.
func (c *checker) answer(ctx context.Context, g *gate, urls []checked, all []*asked) error {
	var lookups sync.WaitGroup
	defer lookups.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.Fetcher.MaxFetches = maxAsked
	lookup := g.fetch // a cache.Cache would drop the file, which --explain and --as all need
	if c.cacheAt != "" {
		lookup = g.lookup
	}
	for _, a := range all {
		lookups.Go(func() { a.run(ctx, lookup) })
	}
	for _, u := range urls {
		if c.await(u.asked, all...); u.err != nil {
			return u.err
		}
		if err := c.one(g, u); err != nil {
			return err
		}
	}
	return nil
}

// one writes the answer about one URL in one piece.
func (c *checker) one(g *gate, u checked) error {
	var out output
	var verdicts []*verdict
	for _, r := range c.readings(u.result) {
		v, err := c.verdict(g, u, r)
		if err != nil {
			return usagef("argument %d: %w", u.number, notURL(u.text, err))
		}
		out.worsen(v.status())
		verdicts = append(verdicts, v)
	}
	switch {
	case c.json:
		for _, v := range verdicts {
			out.json(*v)
		}
	case c.all:
		c.table(&out, verdicts)
	default:
		c.print(&out, verdicts[0])
	}
	return c.emit(&out)
}

// readings are those that --as names.
func (c *checker) readings(res *fetch.Result) []reading {
	if c.all {
		return inAllDialects(res)
	}
	return []reading{{c.dialect.Dialect, res}}
}

// verdict asks the gate about one reading of the answer. To ask r.result.Policy would be
// wrong at times: only the gate knows the target that goes on the wire, and what holds
// for dot segments.
func (c *checker) verdict(g *gate, u checked, r reading) (*verdict, error) {
	a, err := decide(r.result.Policy, c.agent.String(), u.url, c.uses)
	if err != nil {
		return nil, err
	}
	v := newVerdict(u.text, a)
	v.Number, v.Agent, v.Dialect = u.number, c.agent.String(), dialectName(r.dialect)
	v.Robots = g.answer(u.origin, r.result)
	if v.Robots.Error != nil {
		v.Error = *v.Robots.Error
	}
	if c.explain {
		v.Lines = append([]fileLine{}, r.bound(c.agent.String()).explain(u.url.RequestURI(), a.Decision)...)
		if by := a.By; by != nil {
			v.Lines = append(v.Lines, fileLine{by.Line, string(by.By) + ": " + by.Text, true})
			slices.SortStableFunc(v.Lines, func(a, b fileLine) int { return a.Number - b.Number })
		}
	}
	return &v, nil
}

// print writes a verdict for people: the answer first, then what it rests on.
func (c *checker) print(out *output, v *verdict) {
	fmt.Fprintf(out, "%s  %s\n", c.palette().verdict(v.Allowed), visible(v.URL))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "  %-10s %s\n", name, value)
		}
	}
	field("because", v.because())
	if v.Agent != "*" {
		field("agent", visible(v.Agent))
	}
	field("group", visible(v.Group))
	field("robots", visible(v.Robots.URL))
	for _, r := range v.Robots.Redirects {
		field("via", visible(r))
	}
	field("answer", v.Robots.String())
	if v.Robots.Status == nil && !strings.Contains(v.URL, "://") {
		field("hint", "without a scheme https is asked: for http write http://"+visible(strings.TrimSpace(v.URL)))
	}
	c.printLines(out, v.Lines)
}

// table writes the verdicts of the dialects below their URL. Dialects that show the same
// lines show them once, below the last of them.
func (c *checker) table(out *output, verdicts []*verdict) {
	fmt.Fprintf(out, "%s\n", visible(verdicts[0].URL))
	for i, v := range verdicts {
		fmt.Fprintf(out, "  %-10s %s  %s\n", v.Dialect, c.palette().verdict(v.Allowed), v.because())
		if i+1 == len(verdicts) || !slices.Equal(v.Lines, verdicts[i+1].Lines) {
			c.printLines(out, v.Lines)
		}
	}
}

// printLines writes the lines of --explain with their numbers. The mark is a character
// and not the colour alone, for logs and for readers who do not see green.
func (c *checker) printLines(out *output, lines []fileLine) {
	p := c.palette()
	for _, l := range lines {
		text := fmt.Sprintf("%6d  %s", l.Number, visible(l.Text))
		if l.Decides {
			fmt.Fprintf(out, "  > %s\n", p.good(text))
		} else {
			fmt.Fprintf(out, "    %s\n", text)
		}
	}
}
