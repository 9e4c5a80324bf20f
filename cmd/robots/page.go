package main

// robots page and robots usage, which differ only in what they show. Packages page and usage of the library
// read the statements; what engines make of them is page.Rules.For and usage.For. A page is fetched without
// asking robots.txt, because a person asks for this one; what robots.txt says about it is a part of the
// answer.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
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
	out, text shell.Output // text is what people read, without --json
}

const askedByYou = `The page is fetched once because you ask for it, even if robots.txt disallows it
to crawlers.`

const pageHelp = `Page shows each statement of a page's X-Robots-Tag fields and meta elements,
where it stands, and what they come to for a crawler and for the engines. It
reports from which of these robots.txt hides the page, so that they do not see
them, and where engines differ.

` + shell.URLHelp + `

` + askedByYou + `

The exit status is 1 if there is a finding, and 2 if robots.txt or the page
could not be had, or not be read whole.`

// pageCommand makes the subcommand that shows the statements for crawlers. Its exit status is 1 for a
// finding, not for a noindex: the owner wants that.
func pageCommand(a *shell.App) *cobra.Command {
	const short = "Show what a page says to crawlers, and what engines make of it"
	return pagerCommand(a, "page", short, pageHelp, (*pager).page)
}

const usageHelp = `Usage shows the preferences about the use of a page, by training of models, as
their input, or for search: what they come to, and which statement says so. It
reads Content-Usage, Content-Signal and License in robots.txt, the groups of
Google-Extended and Applebot-Extended, the page's header and its meta elements.
If --agent is a crawler of an engine, such as Googlebot, page rules also count
for what that engine takes them for.

` + shell.URLHelp + `

` + askedByYou + `

The exit status is 1 if a use is disallowed, and 2 if robots.txt or the page
could not be had, or not be read whole.`

// usageCommand makes the subcommand that shows the preferences about use. There a use that is disallowed
// makes the status 1, as a refusal does for check: a script asks whether it may use the page.
func usageCommand(a *shell.App) *cobra.Command {
	const short = "Show for which uses a page may be used, and who says so"
	return pagerCommand(a, "usage", short, usageHelp, (*pager).usage)
}

// pagerCommand makes a subcommand that sees a page and shows it, even if it could not be had. show writes text, and
// returns fields for --json. The subcommand has no --cache: its user wants to see what is there now.
func pagerCommand(a *shell.App, name, short, long string, show func(*pager, *seen) answer.Object) *cobra.Command {
	p := &pager{App: a}
	cmd := &cobra.Command{
		Use:   name + " URL",
		Short: short,
		Long:  long,
		Example: fmt.Sprintf(`  robots %s https://example.com/a
  robots %[1]s https://example.com/a --agent ExampleBot --json`, name),
	}
	p.One(cmd, a, func(ctx context.Context, g *site.Gate, u *url.URL, _ fetch.Origin) error {
		g.Cache.KeepBody = true // each engine reads the file anew
		s, err := p.see(ctx, g, u)
		if err != nil {
			return err
		}
		p.printHead(s)
		fields := show(p, s)
		// What was not read of a page may say more, and disallow more.
		unread := s.rules.Incomplete()
		if unread {
			p.text.Field("says", "perhaps more: not all of it was read")
		}
		if unread || s.status/100 != 2 || s.decision.Reason == policy.ReasonUnreachable {
			p.out.Worsen(shell.ExitUnknown)
		}
		if p.JSON {
			p.out.JSON(append(append(p.head(s), fields...), "incomplete", unread))
		} else {
			p.text.WriteTo(&p.out)
		}
		return p.Emit(&p.out)
	})
	p.Register(cmd, site.AgentVar)
	return cmd
}

// seen is what one page and its robots.txt say.
type seen struct {
	url      *url.URL // of the final response
	status   int
	robots   *fetch.Result // with its file
	policy   *policy.Policy
	decision client.Answer
	rules    page.Rules
	said     []usage.Statement // of the header and of meta elements
}

// see fetches a page and the robots.txt of the origin that answered: after a redirect, that one's statements
// count, and which one that is, is known only then. The time for robots.txt is the Fetcher's, and not within
// that for the page. An error is of the page, or an interruption. If robots.txt is unreachable, decision says
// so, and what the page says is still shown.
func (p *pager) see(ctx context.Context, g *site.Gate, u *url.URL) (*seen, error) {
	req, err := p.Get(client.WithoutRobots(ctx), u.String())
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: g.Transport, Timeout: p.Timeout}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	s := &seen{url: resp.Request.URL, status: resp.StatusCode}
	// It sees what is read of the body, so its rules are complete only behind the copy below.
	body := client.PageRules(resp)
	const enough = 1<<20 + 1 // a Reader tells that there was more
	if _, err := io.CopyN(io.Discard, resp.Body, enough); err != nil && err != io.EOF {
		return nil, &url.Error{Op: "Get", URL: s.url.Redacted(), Err: err} // as Do says it
	}
	s.rules = body.Rules()
	body.Metas(func(name, content string, offset int64) {
		s.said = append(s.said, usage.ParseMeta(name, content, offset)...)
	})
	// An error page says nothing about the use of the page that is not there. Else the header goes first: of
	// several statements that come to the same, the first is the one that is named.
	if resp.StatusCode/100 == 2 {
		s.said = append(usage.ParseHeader(resp.Header), s.said...)
	}
	o, err := fetch.OriginOf(s.url)
	if err != nil {
		return nil, err
	}
	// The second call finds in the Cache what the first has read.
	if s.robots, _, err = g.Find(ctx, o); err != nil {
		return nil, err
	}
	s.policy = s.robots.Policy
	s.decision, err = g.Decide(client.WithToken(ctx, p.Obeys(s.policy)), s.url)
	return s, err
}

// head is how page and usage begin an object of --json. As everywhere, a field is null where it does not
// apply, and never left out. The caller appends its own fields.
func (p *pager) head(s *seen) answer.Object {
	v := answer.NewVerdict("", s.decision)
	p.Sign(&v, p.Dialect, s.policy)
	return answer.Object{
		"url", s.url.Redacted(), "status", s.status, "agent", v.Agent, "dialect", v.Dialect, "dialect_by", v.DialectBy,
		"fallback", answer.OrNull(v.Fallback), "allowed", v.Allowed, // by robots.txt
		"reason", v.Reason, "line", answer.OrNull(v.Line), "rule", answer.OrNull(v.Rule),
	}
}

// pageEffect is what all statements come to for one engine, or for the crawler of --agent, and whether it may list the page.
type pageEffect struct {
	Engine  string  `json:"engine"`
	Effect  string  `json:"effect"`
	Allowed bool    `json:"allowed"` // by robots.txt
	Line    *int    `json:"line"`
	NoIndex *string `json:"noindex"`
	Verdict string  `json:"verdict"`
}

// pageFinding is something that is wrong with them, by the ID of a rule of package lint.
type pageFinding struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// page is "robots page".
func (p *pager) page(s *seen) answer.Object {
	statements := []answer.Object{}
	for st := range s.rules.All() {
		var offset any
		if st.Line == 0 { // else it stands in the header
			offset = st.Offset
		}
		statements = append(statements, answer.Object{
			"line", answer.OrNull(st.Line), "offset", offset, "rule", answer.OrNull(st.Rule),
			"value", answer.OrNull(st.Value), "scope", answer.OrNull(st.Scope), "text", st.Text,
			"problem", answer.OrNull(st.Problem),
		})
		p.text.Field("says", withProblem(st.String(), st.Problem))
	}
	effects, findings := p.judge(s)
	for _, e := range effects {
		p.text.Field(e.Engine, e.Effect)
	}
	for _, e := range effects {
		p.text.Field("listed", e.Verdict)
	}
	for _, f := range findings {
		p.text.Field(f.ID, f.Message)
		p.out.Worsen(shell.ExitRefused)
	}
	return answer.Object{"statements", statements, "effects", effects, "findings", findings}
}

func withProblem(statement, problem string) string {
	if problem == "" {
		return statement
	}
	return statement + "  (" + problem + ")"
}

// judge returns what the statements come to, and what is wrong with that: RT405 for a noindex on a page that
// robots.txt hides from those it is for, and RT406 for statements that engines settle differently. Each
// engine is asked about by itself: a noindex may name one, and robots.txt may shut out that one alone.
func (p *pager) judge(s *seen) (effects []pageEffect, findings []pageFinding) {
	effects, findings = []pageEffect{}, []pageFinding{}
	if s.status/100 != 2 { // its statements are about an error, and no page
		return effects, findings
	}
	var hidden []string // crawlers that may not see the noindex that is for them
	conflict := false
	for i, l := range p.Listings(s.robots, s.url, s.rules) {
		name := answer.DialectName(l.Dialect)
		if i == 0 {
			name = p.Agent
		}
		effects = append(effects, pageEffect{name, l.Effect.String(), l.Fetch.Allowed, answer.OrNull(l.Fetch.Line),
			answer.OrNull(l.NoIndex), l.String()})
		if l.Dialect == policy.Yandex { // it alone lets positive words win, over what is for it
			strict := s.rules.For(policy.RFC9309, l.Tokens...)
			conflict = strict.NoIndex != l.Effect.NoIndex || strict.NoFollow != l.Effect.NoFollow ||
				strict.NoArchive != l.Effect.NoArchive
		}
		if !l.Fetch.Allowed && l.NoIndex != "" {
			if l.Fetch.Line > 0 {
				name += fmt.Sprintf(": line %d", l.Fetch.Line)
			}
			hidden = append(hidden, name)
		}
	}
	find := func(id, whom string) { // in the words of package lint, which knows it from here only
		i := slices.IndexFunc(lint.Rules(), func(r lint.Rule) bool { return r.ID == id })
		findings = append(findings, pageFinding{id, lint.Rules()[i].Summary + ": " + lint.Rules()[i].Advice + whom})
	}
	if hidden != nil {
		find("RT405", " ("+strings.Join(hidden, ", ")+")")
	}
	if conflict {
		find("RT406", "")
	}
	return effects, findings
}

// printHead writes which page it is, how it came, and what robots.txt says about fetching it.
func (p *pager) printHead(s *seen) {
	fmt.Fprintln(&p.text, answer.Visible(s.url.Redacted()))
	status := fmt.Sprint(s.status, " ", http.StatusText(s.status))
	if s.status/100 != 2 {
		status += ": this is no page, and has no rules"
	}
	p.text.Field("status", status)
	why := s.decision.Decision.String()
	if s.decision.Unreachable != nil {
		why += ": " + s.decision.Unreachable.Error()
	}
	p.text.Field("robots", why)
}

// asEngine returns the page rules as the engine reads them whose crawler the agent is, if any:
// some rules are about use at one engine only.
func asEngine(rules page.Rules, agent string) []usage.Statement {
	for _, tokens := range answer.Engines {
		if slices.ContainsFunc(tokens, func(token string) bool { return strings.EqualFold(token, agent) }) {
			c, _ := answer.KnownCrawler(agent)
			return usage.ParseRules(rules, c.Dialect, tokens...)
		}
	}
	return nil
}

// usage is "robots usage". It gathers the statements from wherever they may stand, in the order
// robots.txt, header, page, page rules; usage.For says which of them counts. What the engine of --agent makes
// of a rule is added to what the rule says by itself, and takes nothing away from that.
func (p *pager) usage(s *seen) answer.Object {
	table := usage.Table()
	var tokens []string
	// The groups of tokens such as Google-Extended say something about use.
	for _, m := range table {
		if m.By == usage.PolicyToken && !slices.Contains(tokens, m.Key) {
			tokens = append(tokens, m.Key)
		}
	}
	agent := p.Obeys(s.policy)
	said := usage.ParseRobots(s.policy, agent, s.url.RequestURI(), tokens...)
	said = append(append(said, s.said...), usage.ParseRules(s.rules, policy.RFC9309, p.Agent)...)
	said = append(said, asEngine(s.rules, p.Agent)...)
	preferences, statements := []answer.Object{}, []answer.Statement{}
	for i, label := range site.UsageLabels() {
		is, by, _ := usage.For(said, usage.Label(label), table...)
		if is == usage.Unknown && i > 2 { // see site.UsageLabels for their order
			continue // only the labels of the standard are shown where nothing is known
		}
		if is == usage.Disallow {
			p.out.Worsen(shell.ExitRefused)
		}
		var statement any // null: unknown
		value := is.String()
		if is != usage.Unknown {
			statement, value = answer.Statement{Statement: by}, fmt.Sprintf("%-9s %s", is, by)
		}
		preferences = append(preferences, answer.Object{"label", label, "preference", is, "by", statement})
		p.text.Field(label, value)
	}
	// All are in JSON. For people there are those without effect, and the terms: no preference tells of them.
	for _, st := range said {
		statements = append(statements, answer.Statement{Statement: st})
		switch {
		case st.Problem != "":
			p.text.Field("without effect", withProblem(st.String(), st.Problem))
		case st.Key == "License" || st.Key == "tdm-policy": // a contract, which a person has to read
			p.text.Field("terms", st.String())
		}
	}
	return answer.Object{"preferences", preferences, "statements", statements}
}
