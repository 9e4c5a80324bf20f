package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// pager is "robots page" and "robots usage": it fetches one page that a person names, and
// shows what is said about it.
type pager struct {
	*shell.App
	site.Network
}

const askedByYou = `The page is fetched once because you ask for it, even if robots.txt disallows it to
crawlers.`

const pageHelp = `Page shows each statement of a page's X-Robots-Tag fields and meta elements, where it
stands, and what they come to for a crawler and for the engines. It reports from which of
these robots.txt hides the page, so that they do not see them, and where engines differ.

` + shell.URLHelp + `

` + askedByYou + `

The exit status is 1 if there is a finding, and 2 if the page could not be had.`

func pageCommand(a *shell.App) *cobra.Command {
	cmd := pagerCommand(a, (*pager).showPage)
	cmd.Use, cmd.Long = "page URL", pageHelp
	cmd.Short = "Show what a page says to crawlers, and what engines make of it"
	cmd.Example = `  robots page https://example.com/a
  robots page https://example.com/a --agent ExampleBot --json`
	return cmd
}

const usageHelp = `Usage shows the preferences about the use of a page, by training of models, as their
input, or for search: what they come to, and which statement says so. It reads
Content-Usage, Content-Signal and License in robots.txt, the groups of Google-Extended
and Applebot-Extended, the page's header and its meta elements. If --agent is a crawler of
an engine, such as Googlebot, page rules also count for what that engine takes them for.

` + shell.URLHelp + `

` + askedByYou + `

The exit status is 1 if a use is disallowed, and 2 if robots.txt or the page could not
be had.`

func usageCommand(a *shell.App) *cobra.Command {
	cmd := pagerCommand(a, (*pager).showUsage)
	cmd.Use, cmd.Long = "usage URL", usageHelp
	cmd.Short = "Show for which uses a page may be used, and who says so"
	cmd.Example = `  robots usage https://example.com/a
  robots usage https://example.com/a --agent ExampleBot --json`
	return cmd
}

// pagerCommand makes a subcommand that sees a page and shows it.
func pagerCommand(a *shell.App, show func(*pager, *shell.Output, *seen)) *cobra.Command {
	p := &pager{App: a}
	cmd := &cobra.Command{
		Args:              shell.One("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: shell.Runs(func(ctx context.Context, args []string) error {
			u, err := answer.ReadURL(policy.RFC9309, args[0])
			if err != nil {
				return shell.Usagef("%w", err)
			}
			g, err := p.Open(p.Err)
			if err != nil {
				return err
			}
			defer g.End(ctx, p.App)
			s, err := p.see(ctx, g, u)
			if err != nil {
				return err
			}
			var out shell.Output
			show(p, &out, s)
			return p.Emit(&out)
		}),
	}
	site.AgentVar(cmd, &p.Asker)
	p.Register(cmd)
	return cmd
}

const moreUnread = "perhaps more: not all of it was read"

// seen is what one page and its robots.txt say.
type seen struct {
	url      *url.URL // of the final response
	status   int
	policy   *policy.Policy
	decision client.Answer
	rules    page.Rules
	said     []usage.Statement // of the header and of meta elements
}

// see fetches a page and the robots.txt of the origin that answered.
func (p *pager) see(ctx context.Context, g *site.Gate, u *url.URL) (*seen, error) {
	within, cancel := context.WithTimeout(client.WithoutRobots(ctx), p.Timeout)
	defer cancel()
	req, err := p.Get(within, u.String())
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: g.Transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	s := &seen{url: resp.Request.URL, status: resp.StatusCode}
	body := client.PageRules(resp)
	body.Meta = func(name, content string, offset int64) {
		s.said = append(s.said, usage.ParseMeta(name, content, offset)...)
	}
	const enough = 1<<20 + 1 // a Reader scans a MiB, and tells that there was more
	if _, err := io.CopyN(io.Discard, resp.Body, enough); err != nil && err != io.EOF {
		return nil, err
	}
	s.rules = body.Rules()
	if resp.StatusCode/100 == 2 {
		s.said = append(usage.ParseHeader(resp.Header), s.said...)
	}
	if s.policy, err = g.Lookup(ctx, s.url); err != nil {
		return nil, err
	}
	s.decision, err = client.DecideWith(s.policy, p.Agent, s.url)
	return s, err
}

// engines are those whose effect page shows, by the tokens that they answer to, the narrowest
// first.
var engines = []struct {
	dialect policy.Dialect
	tokens  []string
}{
	{policy.RFC9309, nil}, // the crawler of --agent
	{policy.Google, []string{"googlebot"}},
	{policy.Yandex, []string{"yandexbot", "yandex"}},
	{policy.Bing, []string{"bingbot", "msnbot"}},
}

// seenRecord is how page and usage begin an object of --json. As everywhere, a field is
// null where it does not apply, and never left out.
type seenRecord struct {
	URL     string  `json:"url"`
	Status  int     `json:"status"`
	Agent   string  `json:"agent"`
	Allowed bool    `json:"allowed"` // by robots.txt
	Reason  string  `json:"reason"`
	Line    *int    `json:"line"`
	Rule    *string `json:"rule"`
}

func (p *pager) record(s *seen) seenRecord {
	v := answer.NewVerdict(s.url.String(), s.decision)
	return seenRecord{v.URL, s.status, p.Agent, v.Allowed, v.Reason, answer.OrNull(v.Line), answer.OrNull(v.Rule)}
}

type pageRecord struct {
	seenRecord
	Statements []pageStatement `json:"statements"`
	Incomplete bool            `json:"incomplete"`
	Effects    []pageEffect    `json:"effects"`
	Findings   []pageFinding   `json:"findings"`
}

// pageStatement is a page.Statement in JSON.
type pageStatement struct {
	Line    *int    `json:"line"`
	Offset  *int64  `json:"offset"`
	Rule    *string `json:"rule"`
	Value   *string `json:"value"`
	Scope   *string `json:"scope"`
	Text    string  `json:"text"`
	Problem *string `json:"problem"`
}

func newPageStatement(s page.Statement) pageStatement {
	r := pageStatement{
		Line: answer.OrNull(s.Line), Rule: answer.OrNull(s.Rule), Value: answer.OrNull(s.Value), Scope: answer.OrNull(s.Scope),
		Text: s.Text, Problem: answer.OrNull(s.Problem),
	}
	if s.Line == 0 {
		r.Offset = &s.Offset
	}
	return r
}

type pageEffect struct {
	Engine string `json:"engine"`
	Effect string `json:"effect"`
}

type pageFinding struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

func (p *pager) showPage(out *shell.Output, s *seen) {
	v := pageRecord{
		seenRecord: p.record(s), Incomplete: s.rules.Incomplete(),
		Statements: []pageStatement{}, Findings: []pageFinding{},
	}
	for st := range s.rules.All() {
		v.Statements = append(v.Statements, newPageStatement(st))
	}
	p.judge(s, &v)
	switch {
	case s.status/100 != 2:
		out.Worsen(shell.ExitUnknown)
	case len(v.Findings) > 0:
		out.Worsen(shell.ExitRefused)
	}
	if p.JSON {
		out.JSON(v)
		return
	}
	p.printPage(out, s, v)
}

// judge fills in what the statements come to, and what is wrong with that.
func (p *pager) judge(s *seen, v *pageRecord) {
	var hidden []string // crawlers that may not see the noindex that is for them
	conflict := false
	for _, e := range engines {
		tokens, name := e.tokens, answer.DialectName(e.dialect)
		if tokens == nil {
			tokens, name = []string{p.Agent}, p.Agent
		}
		effect := s.rules.For(e.dialect, tokens...)
		v.Effects = append(v.Effects, pageEffect{name, effect.String()})
		if e.dialect == policy.Yandex { // it alone lets positive words win, over what is for it
			strict := s.rules.For(policy.RFC9309, tokens...)
			conflict = strict.NoIndex != effect.NoIndex || strict.NoFollow != effect.NoFollow ||
				strict.NoArchive != effect.NoArchive
		}
		d, err := client.DecideWith(s.policy, named(s.policy, tokens), s.url)
		if err == nil && !d.Allowed && !effect.MayIndex(time.Now()) {
			if d.Rule.Line > 0 {
				name += fmt.Sprintf(": line %d", d.Rule.Line)
			}
			hidden = append(hidden, name)
		}
	}
	if hidden != nil {
		v.find("RT405", " ("+strings.Join(hidden, ", ")+")")
	}
	if conflict {
		v.find("RT406", "")
	}
}

// named returns the first of an engine's tokens that has a group of its own, or else the first.
func named(p *policy.Policy, tokens []string) string {
	for _, token := range tokens {
		if group := p.Group(token).Token(); group != "" && group != "*" {
			return token
		}
	}
	return tokens[0]
}

// find adds a finding in the words of package lint, which knows it from here only.
func (v *pageRecord) find(id, whom string) {
	rules := lint.Rules()
	i := slices.IndexFunc(rules, func(r lint.Rule) bool { return r.ID == id })
	v.Findings = append(v.Findings, pageFinding{id, rules[i].Summary + ": " + rules[i].Advice + whom})
}

func (p *pager) printPage(out *shell.Output, s *seen, v pageRecord) {
	fmt.Fprintf(out, "%s\n", answer.Visible(v.URL))
	p.printHead(out, s)
	for st := range s.rules.All() {
		fmt.Fprintf(out, "  %-10s %s", "says", answer.Visible(st.String()))
		if st.Problem != "" {
			fmt.Fprintf(out, "  (%s)", st.Problem)
		}
		fmt.Fprintln(out)
	}
	if v.Incomplete {
		fmt.Fprintf(out, "  %-10s %s\n", "says", moreUnread)
	}
	for _, e := range v.Effects {
		fmt.Fprintf(out, "  %-10s %s\n", e.Engine, e.Effect)
	}
	for _, f := range v.Findings {
		fmt.Fprintf(out, "  %-10s %s\n", f.ID, f.Message)
	}
}

// printHead writes how the page came, and what robots.txt says about fetching it.
func (p *pager) printHead(out *shell.Output, s *seen) {
	fmt.Fprintf(out, "  %-10s %d %s\n", "status", s.status, http.StatusText(s.status))
	fmt.Fprintf(out, "  %-10s %s\n", "robots", answer.Visible(s.decision.String()))
}

type usageRecord struct {
	seenRecord
	Preferences []preferenceRecord  `json:"preferences"`
	Statements  []*answer.Statement `json:"statements"`
	Incomplete  bool                `json:"incomplete"`
}

type preferenceRecord struct {
	Label      string            `json:"label"`
	Preference usage.Preference  `json:"preference"`
	By         *answer.Statement `json:"by"` // null: unknown
	by         usage.Statement
}

// asEngine returns the page rules as the engine reads them whose crawler the agent is, if any:
// some rules are about use at one engine only.
func asEngine(rules page.Rules, agent string) []usage.Statement {
	for _, e := range engines {
		if slices.ContainsFunc(e.tokens, func(token string) bool { return strings.EqualFold(token, agent) }) {
			return usage.ParseRules(rules, e.dialect, e.tokens...)
		}
	}
	return nil
}

func (p *pager) showUsage(out *shell.Output, s *seen) {
	table := usage.Table()
	var tokens []string
	for _, m := range table {
		if m.By == usage.PolicyToken && !slices.Contains(tokens, m.Key) {
			tokens = append(tokens, m.Key)
		}
	}
	agent := p.Agent
	said := usage.ParseRobots(s.policy, agent, s.url.RequestURI(), tokens...)
	for _, label := range site.UsageLabels() {
		// What a server may make of dot segments counts too, as it does for the gate.
		if a, _ := client.DecideWith(s.policy, agent, s.url, label); a.By != nil && !slices.Contains(said, *a.By) {
			said = append(said, *a.By)
		}
	}
	said = append(append(said, s.said...), usage.ParseRules(s.rules, policy.RFC9309, agent)...)
	said = append(said, asEngine(s.rules, agent)...)
	v := usageRecord{seenRecord: p.record(s), Statements: []*answer.Statement{}, Incomplete: s.rules.Incomplete()}
	for _, st := range said {
		v.Statements = append(v.Statements, answer.NewStatement(st))
	}
	for i, label := range site.UsageLabels() {
		w := preferenceRecord{Label: label}
		switch w.Preference, w.by, _ = usage.For(said, usage.Label(label), table...); {
		case w.Preference != usage.Unknown:
			w.By = answer.NewStatement(w.by)
		case i > 2:
			continue // only the labels of the standard are shown where nothing is known
		}
		if w.Preference == usage.Disallow {
			out.Worsen(shell.ExitRefused)
		}
		v.Preferences = append(v.Preferences, w)
	}
	p.printUsage(out, s, v, said)
}

func (p *pager) printUsage(out *shell.Output, s *seen, v usageRecord, said []usage.Statement) {
	if s.status/100 != 2 || s.decision.Reason == policy.ReasonUnreachable {
		out.Worsen(shell.ExitUnknown)
	}
	if p.JSON {
		out.JSON(v)
		return
	}
	fmt.Fprintf(out, "%s\n", answer.Visible(v.URL))
	p.printHead(out, s)
	for _, w := range v.Preferences {
		by := ""
		if w.By != nil {
			by = answer.Visible(w.by.String())
		}
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-14s %-9s %s", w.Label, w.Preference, by), " "))
	}
	for _, st := range said {
		switch {
		case st.Problem != "":
			fmt.Fprintf(out, "  %-14s %s  (%s)\n", "without effect", answer.Visible(st.String()), answer.Visible(st.Problem))
		case st.Key == "License" || st.Key == "tdm-policy": // a contract, which a person has to read
			fmt.Fprintf(out, "  %-14s %s\n", "terms", answer.Visible(st.String()))
		}
	}
	if v.Incomplete {
		fmt.Fprintf(out, "  %-14s %s\n", "says", moreUnread)
	}
}
