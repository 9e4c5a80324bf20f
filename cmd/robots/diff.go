package main

// robots diff: what changes when one robots.txt replaces another. It serves editors and CI. Only a different verdict
// counts: the same verdict from a different line is not a change.

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// differ is "robots diff".
type differ struct {
	*shell.App
	site.Network
	urls   string
	agents []string
}

const diffHelp = `Diff tells for which URLs and crawlers the verdict changes from one robots.txt
to another, and by which lines. OLD and NEW are files, or URLs with http:// or
https://, whose sites are asked.

Without --urls it asks about / and the path of each rule that binds one of the
crawlers, in either file, with an x for a *. Paths that no rule names may
change, too.

Without --agents it asks for the crawlers of check --crawlers, and for those
that either file names. Each is read as its engine reads.

The exit status is 0 if nothing changes, 1 if something does, and 2 if a file
could not be read, a site is unreachable, or a line of --urls is malformed.`

// diffCommand makes the subcommand.
func diffCommand(a *shell.App) *cobra.Command {
	d := &differ{App: a}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Tell what another robots.txt changes, and for whom",
		Long:  diffHelp,
		Example: `  robots diff https://example.com robots.txt
  robots sitemap example.com > urls.txt
  robots diff https://example.com robots.txt --urls urls.txt --agents GPTBot`,
		Args: shell.Args(2, 2, "two files or URLs: OLD and NEW"),
		RunE: shell.Runs(d.run),
	}
	cmd.Flags().StringVar(&d.urls, "urls", "", "ask about the URLs or paths in this `FILE`, one a line; - is standard input")
	cmd.Flags().StringSliceVar(&d.agents, "agents", nil, "ask for these `CRAWLERS`, product tokens with commas between them")
	cmd.RegisterFlagCompletionFunc("agents", cobra.NoFileCompletions)
	d.Register(cmd)
	return cmd
}

func (d *differ) run(ctx context.Context, args []string) error {
	g, err := d.Open(d.Err)
	if err != nil {
		return err
	}
	defer g.End(ctx, d.App)
	var files [2]*fetch.Result
	for i, name := range args {
		if files[i], err = d.read(ctx, g, i, name); err != nil {
			return err
		}
	}
	askers, err := d.askers(files[:])
	if err != nil {
		return err
	}
	all, paths := compare(askers, files[:])
	list := []byte(strings.Join(paths, "\n"))
	if d.urls != "" {
		if list, err = d.ReadFile(ctx, d.urls); err != nil {
			return err
		}
	}
	d.In = bytes.NewReader(list)
	return (&matcher{App: d.App}).lines(ctx, answer.MaxURL, func(o *shell.Output, l shell.Line) { d.line(o, all, l) })
}

// read reads one of the two, for any dialect. An outage is no file: it changes nothing that lasts.
func (d *differ) read(ctx context.Context, g *site.Gate, i int, name string) (*fetch.Result, error) {
	if !isURL(name) {
		text, err := readFile(ctx, d.App, name)
		return &fetch.Result{StatusCode: http.StatusOK, Body: text}, err
	}
	_, o, err := site.ParseSite(policy.RFC9309, i, name)
	if err != nil {
		return nil, err
	}
	res, err := g.Fetcher.Fetch(ctx, o, nil)
	if err == nil && res.Err != nil {
		err = fmt.Errorf("%s is unreachable: %w", o.RobotsURL(), res.Err)
	}
	return res, err
}

// compared is one crawler, and both files as its engine reads them.
type compared struct {
	agent         string
	before, after *answer.Matching
}

// compare has each crawler read both files, and lists the paths to ask about.
func compare(askers []answer.Asker, files []*fetch.Result) (all []compared, paths []string) {
	before, after := answer.InAllDialects(files[0]), answer.InAllDialects(files[1])
	paths = []string{"/"}
	for _, k := range askers {
		at := slices.Index(answer.Dialects[:], k.Dialect)
		old, new := before[at].Policy, after[at].Policy
		all = append(all, compared{k.Agent, k.Matching(old), k.Matching(new)})
		for _, p := range []*policy.Policy{old, new} {
			for rule := range p.Group(k.Obeys(p)).Rules() {
				paths = append(paths, pathsOf(rule.Pattern)...)
			}
		}
	}
	slices.Sort(paths)
	return all, slices.Compact(paths)
}

// askers are those of --agents, or else those of the table and those that a file names.
func (d *differ) askers(files []*fetch.Result) (all []answer.Asker, err error) {
	agents := d.agents
	if agents == nil {
		all = new(answer.Asker).Everyone()
		for _, file := range files {
			for l := range lint.Lines(policy.RFC9309, file.Body) {
				if token := policy.ProductToken(l.Value); l.Kind == lint.LineUserAgent && token != "" {
					agents = append(agents, token)
				}
			}
		}
	}
	for _, agent := range agents {
		if slices.ContainsFunc(all, func(k answer.Asker) bool { return strings.EqualFold(k.Agent, agent) }) {
			continue
		}
		var k answer.Asker
		if err := k.SetAgent(agent); err != nil {
			return nil, shell.Usagef("--agents: %w", err)
		}
		all = append(all, k)
	}
	return all, nil
}

// pathsOf are the path that a pattern names, with an x for a wildcard, and of one that ends there a longer one, too.
func pathsOf(pattern string) []string {
	pattern, ends := strings.CutSuffix(pattern, "$")
	path := "/" + strings.TrimPrefix(strings.TrimRight(pattern, "*"), "/")
	path = strings.NewReplacer("*", "x", " ", "%20", "\t", "%09").Replace(path)
	if strings.HasPrefix(path, "//") { // alone, it names a host
		path = "https://any" + path
	}
	if ends {
		return []string{path, path + "x"}
	}
	return []string{path}
}

// line tells what changes for one URL. Crawlers that the same lines bind before and after are reported together.
func (d *differ) line(o *shell.Output, all []compared, l shell.Line) {
	changes, crawlers := []string{}, map[string][]string{}
	for _, c := range all {
		before, err := c.before.Match(l.Number, l.Text)
		if err != nil {
			o.Complain(fmt.Errorf("line %d: %w", l.Number, err))
			return
		}
		after, _ := c.after.Match(l.Number, l.Text)
		if before.Allowed == after.Allowed {
			continue
		}
		o.Worsen(shell.ExitRefused)
		if d.JSON {
			o.JSON(answer.Object{"url", after.URL, "agent", c.agent, "before", &before, "after", &after})
			continue
		}
		change := fmt.Sprintf("%s  %s\n  because        %s\n  before         %s, %s\n",
			after.Outcome(), answer.Visible(after.URL), after.Because(), before.Outcome(), before.Because())
		if crawlers[change] == nil {
			changes = append(changes, change)
		}
		crawlers[change] = append(crawlers[change], answer.Visible(c.agent))
	}
	for _, change := range changes {
		fmt.Fprintf(o, "%s  for            %s\n", change, strings.Join(crawlers[change], ", "))
	}
}
