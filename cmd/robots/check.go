package main

// robots check: a few URLs that a person types, each with all that its answer rests on. filter.go is for
// lists, and match.go asks a file. What a verdict is, and how it is put into words, is in package answer.
//
// It asks many sites at once and keeps each file whole until it is read. The exit status is that of
// the worst answer: 1 if a URL is refused, and 2 if robots.txt of one is unreachable, which is no refusal.

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
)

// checker is "robots check". Its fields are flags. Those of the Asker, of the way to the server and of
// --cache are in package site, because other subcommands have them, too.
type checker struct {
	*shell.App
	site.Network
	crawlers, hosts bool
}

// checkCommand makes the subcommand. The URLs are few and given by hand; lists are for filter.
func checkCommand(a *shell.App) *cobra.Command {
	c := &checker{App: a}
	cmd := &cobra.Command{
		Use:   "check URL...",
		Short: "Say whether a crawler may fetch URLs, and why",
		Long: `Check fetches the robots.txt of each URL's site and reports whether the crawler
may fetch the URL: the verdict, the rule that decided and its line, the group it
is in, how fresh the file is, and the redirects that led to it. Sites are asked
at the same time, each once; the answers come in the order of the URLs.

` + shell.URLHelp + `

With --as all, one answer of the server is read in every dialect, side by side.
With --crawlers, each crawler that is known reads it as its engine does, and the
site as a whole (/) is asked about, too. --hosts asks at http and https, with
and without www; the answer has the sha256 of each file.`,
		Example: `  robots check https://example.com/private/page --agent ExampleBot
  robots check example.com/a example.com/b --as google --explain
  robots check https://example.com/ --as all --json
  robots check https://example.com/ --crawlers
  robots check https://example.com/essays/1 --uses train-ai`,
		Args:              shell.Args(1, shell.Many, "a URL"),
		ValidArgsFunction: cobra.NoFileCompletions, // else shells offer the names of files
		RunE:              shell.Runs(c.run),
	}
	cmd.Flags().BoolVar(&c.Explain, "explain", false, "show the lines of the file that matter, the deciding one marked")
	cmd.Flags().BoolVar(&c.crawlers, "crawlers", false, "ask for each crawler that is known, and about the whole site, too")
	cmd.Flags().BoolVar(&c.hosts, "hosts", false, "ask at http and https, with and without www; files that differ have another sha256")
	c.Register(cmd, site.AgentVar, site.DialectsVar, site.UsesVar, site.AgreementsVar)
	c.RegisterCache(cmd)
	return cmd
}

// checked is one URL on its way to an answer. ask looks its site up, once for all URLs of the site, and waits for that.
type checked struct {
	number int    // of the argument, from 1
	text   string // as typed, and so it is shown: that is what people look for in the output
	url    *url.URL
	origin fetch.Origin
	ask    func() site.Found
}

// maxAsked is how many URLs check asks about at a time, from the first that is not answered. Each may hold 2 MB.
const maxAsked = 64

// run reads all URLs before it asks about the first: a slip in the last one must not come out after a minute
// of network. The gate is opened behind that: wrong usage makes no file for --cache. Then it asks many sites at once and
// writes the answers in the order of the URLs, each as soon as those before it are written.
func (c *checker) run(ctx context.Context, args []string) (err error) {
	if c.crawlers {
		if c.Named || c.SaidDialect() != "" {
			return shell.Usagef("--crawlers asks for each crawler, as its engine reads: leave out --agent and --as")
		}
		c.SetAgent(answer.AnyOther) // whatever --user-agent says
	}
	var urls []checked
	var g *site.Gate // which is there, as is the last ctx, before a site is asked
	sites := map[fetch.Origin]func() site.Found{}
	for i, arg := range args {
		texts, err := c.widen(i, arg)
		if err != nil {
			return err
		}
		for _, text := range texts {
			u, o, err := site.ParseSite(c.Dialect, i, text)
			if err != nil {
				return err
			}
			if sites[o] == nil {
				sites[o] = sync.OnceValue(func() (f site.Found) { f.Result, f.Until, f.Err = g.Find(ctx, o); return f })
			}
			urls = append(urls, checked{i + 1, text, u, o, sites[o]})
		}
	}
	if g, err = c.Open(c.Err); err != nil {
		return err
	}
	defer g.End(ctx, c.App)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before the gate ends: behind an error, what is under way is given up
	g.Fetcher.MaxFetches = maxAsked
	g.Cache.KeepBody, g.Cache.MaxBytes = true, 8<<20 // it is shown, or read anew, and each site looked up once
	begun := 0
	for i, u := range urls {
		for ; begun < min(i+maxAsked, len(urls)); begun++ {
			go urls[begun].ask()
		}
		urls[i] = checked{} // what is written holds no file
		answered := c.Waiting(u.origin)
		f := u.ask()
		// Whatever a site does is a Result. An Err is our own: an interruption, or a key that does not sign.
		if answered(); f.Err != nil {
			return f.Err
		}
		if err := c.one(u, f); err != nil {
			return err
		}
	}
	return nil
}

// one writes the answer about one URL in one piece, for as many crawlers and in as many readings as the flags ask for.
// A URL that fetch.OriginOf takes may still be one that net/http would not send: that is wrong usage, too.
func (c *checker) one(u checked, f site.Found) error {
	var out shell.Output
	var verdicts []*answer.Verdict
	askers := []answer.Asker{c.Asker}
	if c.crawlers {
		askers = c.Everyone()
	}
	for _, k := range askers {
		for _, r := range k.Readings(f.Result) {
			v, err := k.Check(u.url, r, answer.New(u.origin, r, f.Until))
			if err != nil {
				return shell.Usagef("argument %d: %w", u.number, answer.NotURL(u.text, err))
			}
			v.Number = u.number
			v.About(u.text, u.url)
			if c.hosts && v.Robots.Outcome == answer.OutcomeRules {
				v.Robots.SHA256 = fmt.Sprintf("%x", sha256.Sum256(r.Body))
			}
			out.Worsen(shell.StatusOf(v))
			verdicts = append(verdicts, v)
		}
	}
	switch {
	case c.JSON:
		for _, v := range verdicts {
			out.Verdict(v)
		}
	case c.All, c.crawlers:
		c.table(&out, verdicts)
	default:
		c.print(&out, verdicts[0])
	}
	return c.Emit(&out)
}

// print writes a verdict for people: the answer first, then what it rests on. What is empty is left out here;
// programs read --json, where each field is always there.
func (c *checker) print(out *shell.Output, v *answer.Verdict) {
	fmt.Fprintf(out, "%s  %s\n", c.Palette().Verdict(v.Allowed), answer.Visible(v.URL))
	out.Field("asked", v.Asked)
	out.Field("because", v.Because())
	if v.Agent != "*" { // the default is not worth a line
		out.Field("agent", v.Agent)
	}
	if v.DialectBy == answer.ByCrawler {
		out.Field("read as", v.Dialect+", as its engine does")
	}
	out.Field("group", v.Group)
	if v.Fallback != "" {
		out.Field("", "no group names "+v.Agent+": it obeys "+v.Fallback)
	}
	if v.CrawlDelay != nil {
		out.Field("delay", fmt.Sprintf("%gs between requests", *v.CrawlDelay))
	}
	out.Field("robots", v.Robots.URL)
	for _, r := range v.Robots.Redirects {
		out.Field("via", r)
	}
	out.Field("answer", v.Robots.String())
	// A user who meant a site that only speaks http sees a failure of https without having typed it.
	if v.Robots.Status == nil && !strings.Contains(v.URL, "://") {
		out.Field("hint", "without a scheme https is asked: for http write http://"+strings.TrimSpace(v.URL))
	}
	c.printLines(out, v.Lines)
}

// table writes the verdicts of the dialects, or crawlers, below their URL. Those that follow each other and show the
// same lines show them once, below the last of them. What they share, such as the redirects, is left out, but
// for a wall: what all of them have read may be no robots.txt.
func (c *checker) table(out *shell.Output, verdicts []*answer.Verdict) {
	fmt.Fprintf(out, "%s\n", answer.Visible(verdicts[0].URL))
	for i, v := range verdicts {
		label := v.Dialect
		if c.crawlers {
			label = fmt.Sprintf("%-6s  %-18s", v.Purpose, v.Agent)
		}
		fmt.Fprintf(out, "  %-10s %s  %s\n", label, c.Palette().Verdict(v.Allowed), v.Because())
		if i+1 == len(verdicts) || !slices.Equal(v.Lines, verdicts[i+1].Lines) {
			c.printLines(out, v.Lines)
		}
	}
	if verdicts[0].Robots.Wall {
		fmt.Fprintf(out, "  %-10s %s\n", "answer", "perhaps a wall and no robots.txt")
	}
}

// printLines writes the lines of --explain with their numbers. The mark is a character
// and not the colour alone, for logs and for readers who do not see green.
func (c *checker) printLines(out *shell.Output, lines []answer.FileLine) {
	p := c.Palette()
	for _, l := range lines {
		text := fmt.Sprintf("%6d  %s", l.Number, answer.Visible(l.Text))
		if l.Decides {
			fmt.Fprintf(out, "  > %s\n", p.Good(text))
		} else {
			fmt.Fprintf(out, "    %s\n", text)
		}
	}
}

// widen is what is asked for an argument: that, the whole site besides, or the same at its four hosts.
func (c *checker) widen(i int, arg string) (urls []string, err error) {
	u, _, err := site.ParseSite(c.Dialect, i, arg)
	switch {
	case err != nil:
		return nil, err
	case c.crawlers && !c.hosts && u.RequestURI() != "/":
		return []string{arg, u.ResolveReference(&url.URL{Path: "/"}).String()}, nil
	case !c.hosts:
		return []string{arg}, nil
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, ":") || !strings.Contains(host, ".") {
		return nil, shell.Usagef("argument %d: --hosts takes a name such as example.com, without a port", i+1)
	}
	for _, scheme := range []string{"http", "https"} {
		for _, name := range []string{host, "www." + host} {
			at := *u
			at.Scheme, at.Host = scheme, name
			urls = append(urls, at.String())
		}
	}
	return urls, nil
}
