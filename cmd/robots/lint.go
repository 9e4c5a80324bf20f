package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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
)

// linter is "robots lint". Its fields are flags. severity bounds what is shown, and failOn which of that counts
// for the exit status: a finding that is not shown never counts.
type linter struct {
	*shell.App
	site.Network
	fix      bool
	format   string
	severity string
	failOn   string
	disable  []string
	rules    bool
}

const lintHelp = `Lint reads robots.txt files and reports what crawlers will not read as it was
meant: rules without effect, or with the opposite one; lines that crawlers read
differently; and what is worth knowing. A dash is standard input.

For a URL (with http:// or https:// in front) the robots.txt of its site is
fetched, and how it is served is judged too. If the site has none, /robot.txt is
asked for as well, in case that the file is there by mistake.

A comment in the file silences a rule. The first form below is for the whole
file; the second is for the next line, or for its own if it follows a record:
  # robots-lint: ignore-file RT403
  # robots-lint: ignore RT314, RT007 why it is meant so

With --fix, the repaired FILE is written to standard output, and what is left to
say about it to standard error. Only lines are replaced for which the file says
the same to all crawlers. Of the others, the report has an example, behind a
question mark: only the author knows what was meant.

The exit status is 1 if a finding is shown that is as severe as --fail-on; with
--fix, one about the repaired file. It is 2 if robots.txt is unreachable (no
answer, 5xx, a broken one). See --color for colours.`

// lintCommand makes the subcommand. It has no --agent and no --as: a file is judged for all crawlers.
func lintCommand(a *shell.App) *cobra.Command {
	l := &linter{App: a, severity: "info", failOn: "warning"}
	cmd := &cobra.Command{
		Use:   "lint FILE|URL...",
		Short: "Find the mistakes in robots.txt files before crawlers do",
		Long:  lintHelp,
		Example: `  robots lint robots.txt
  robots lint https://example.com --severity warning
  robots lint robots.txt --disable RT007,RT403 --fail-on error
  robots lint site/robots.txt --format sarif > robots.sarif
  robots lint robots.txt --fix > repaired.txt
  robots lint --rules RT203`,
		RunE: shell.Runs(l.run),
	}
	f := cmd.Flags()
	shell.ChoiceVar(cmd, &l.format, "format", "`FORMAT` of the report: text, json or sarif", "text", "json", "sarif")
	shell.ChoiceVar(cmd, &l.severity, "severity", "least `SEVERITY` that is shown: info, warning or error", severities...)
	shell.ChoiceVar(cmd, &l.failOn, "fail-on", "least `SEVERITY` of a finding shown that makes the exit status 1", severities...)
	f.StringSliceVar(&l.disable, "disable", nil, "leave out these `RULES`, such as RT007,RT403")
	f.BoolVar(&l.rules, "rules", false, "list the rules instead, or explain those that are named: --rules RT203")
	f.BoolVar(&l.fix, "fix", false, "write the repaired file, which says the same to all crawlers")
	cmd.RegisterFlagCompletionFunc("disable", cobra.NoFileCompletions)
	l.Register(cmd)
	return cmd
}

// By number.
var severities = []string{lint.SeverityInfo: "info", lint.SeverityWarning: "warning", lint.SeverityError: "error"}

func severity(name string) lint.Severity { return lint.Severity(slices.Index(severities, name)) }

// run judges all arguments and writes one report about them: a SARIF document cannot be written in pieces. A file that cannot
// be read is reported and counts as status 2; the others may do better. Wrong usage ends the run, and so does an
// interruption: what was found until then would pass for the whole.
func (l *linter) run(ctx context.Context, args []string) (err error) {
	if l.JSON {
		l.format = "json"
	}
	if l.disable, err = ruleIDs(l.disable); err != nil {
		return err
	}
	switch {
	case l.rules:
		return l.explain(args)
	case len(args) == 0:
		return shell.Usagef("give a FILE or a URL, or - for standard input")
	case l.fix && (len(args) != 1 || isURL(args[0])):
		return shell.Usagef("--fix repairs one FILE")
	case l.fix:
		return l.repair(ctx, args[0])
	}
	var out shell.Output
	var reports []lint.Report
	for _, arg := range args {
		r, err := l.one(ctx, arg)
		_, usage := errors.AsType[shell.UsageError](err)
		switch {
		case usage || ctx.Err() != nil:
			return err
		case err != nil:
			out.Complain(err)
		default:
			r.Findings = l.shown(&out, r.Findings)
			reports = append(reports, r)
		}
	}
	return cmp.Or(l.write(&out, reports...), l.Emit(&out))
}

func (l *linter) write(w io.Writer, reports ...lint.Report) error {
	switch l.format {
	case "json":
		return lint.WriteJSON(w, reports...)
	case "sarif":
		return lint.WriteSARIF(w, reports...)
	}
	return lint.WriteText(w, lint.Style{Color: l.Palette().On, Width: shell.WidthOf(l.Out)}, reports...)
}

// ruleIDs returns the identifiers of rules that are named by identifier or by name, in any case. A name that
// no rule has is wrong usage: with a slip in --disable, the rule would stay on without a word.
func ruleIDs(names []string) ([]string, error) {
	ids := []string{}
	for _, name := range names {
		i := slices.IndexFunc(lint.Rules(), func(r lint.Rule) bool {
			return strings.EqualFold(r.ID, name) || strings.EqualFold(r.Name, name)
		})
		if i < 0 {
			return nil, shell.Usagef("no rule is called %q: robots lint --rules lists them", name)
		}
		ids = append(ids, lint.Rules()[i].ID)
	}
	return ids, nil
}

// shown keeps the findings that are severe enough and not disabled. What is not shown does not fail the run either, or
// its status would have no reason.
func (l *linter) shown(out *shell.Output, findings []lint.Finding) []lint.Finding {
	shown := slices.DeleteFunc(findings, func(f lint.Finding) bool { return !l.shows(f) })
	if slices.ContainsFunc(shown, func(f lint.Finding) bool { return f.Severity >= severity(l.failOn) }) {
		out.Worsen(shell.ExitRefused)
	}
	return shown
}

func isURL(arg string) bool {
	scheme, _, found := strings.Cut(arg, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// readFile reads a file where a URL may stand, too. Where there is none of a name that looks like a site without its
// scheme, the error says what to write.
func readFile(ctx context.Context, a *shell.App, name string) ([]byte, error) {
	data, err := a.ReadFile(ctx, name)
	host, _, _ := strings.Cut(name, "/")
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(strings.Trim(host, "."), ".") && !strings.HasSuffix(host, ".txt") {
		err = fmt.Errorf("%w: for a site write https://%s", err, name)
	}
	return data, err
}

// one returns the report about one argument: a URL, or else the name of a file.
func (l *linter) one(ctx context.Context, arg string) (lint.Report, error) {
	if isURL(arg) {
		return l.url(ctx, arg)
	}
	data, err := readFile(ctx, l.App, arg)
	return answer.Linted(arg, data), err
}

// url returns the report about the robots.txt of a site and how it is served, as RFC 9309 reads it: each check of package
// lint knows the engines by itself. A server that does not answer is no finding but a failure to find out; a 503 is both.
func (l *linter) url(ctx context.Context, text string) (r lint.Report, err error) {
	u, o, err := answer.ReadSite(policy.RFC9309, text)
	if err != nil {
		return r, shell.Usagef("%w", err)
	}
	g, err := l.Open(l.Err)
	if err != nil {
		return r, err
	}
	defer g.End(ctx, l.App)
	// The Cache of a gate keeps no file, and a report is about what is served now.
	res, err := g.Fetcher.Fetch(ctx, o, nil)
	if err != nil {
		return r, err
	}
	if !answer.HasServed(res) {
		return r, res.Err
	}
	if res.Err != nil {
		l.Worsen(shell.ExitUnknown)
	}
	a := answer.Served(o, res)
	// Only these say that there is no file. A 403 is about who asks.
	if a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusGone {
		a.Misnamed = l.misnamed(ctx, g, o)
	}
	return lint.Report{Name: a.URL, Findings: append(lint.Name(u.Path), a.Findings()...), Text: a.Body}, nil
}

// misnamed is the beginning of /robot.txt, the commonest slip in the name, or nil. It is only a hint, so no failure is
// reported.
func (l *linter) misnamed(ctx context.Context, g *site.Gate, o fetch.Origin) []byte {
	u := o.RobotsURL()
	u.Path = "/robot.txt"
	ctx, cancel := context.WithTimeout(client.WithoutRobots(ctx), l.Timeout)
	defer cancel()
	// The gate adds what /robots.txt was asked with: fields of --header, and a signature. A redirect is not
	// followed: sites that answer everything with a page mostly redirect there. Whether it has rules shows at once.
	_, body, _ := l.Read(ctx, g, u.String(), 64<<10)
	return body
}

// explain writes the registry, or what it says about some rules, with an example. No rule named means all.
func (l *linter) explain(names []string) error {
	ids, err := ruleIDs(names)
	if err != nil {
		return err
	}
	rules := slices.DeleteFunc(lint.Rules(), func(r lint.Rule) bool {
		return len(ids) > 0 && !slices.Contains(ids, r.ID)
	})
	var out shell.Output
	switch {
	case l.format == "json":
		err = lint.WriteRulesJSON(&out, rules...)
	case len(ids) > 0:
		for _, r := range rules {
			fmt.Fprintf(&out, "%s %s (%s: %s)\n\n  %s\n\n", r.ID, r.Name, r.Severity, r.Engines, r.Summary)
			for line := range strings.SplitSeq(r.Example, "\n") {
				fmt.Fprintln(&out, strings.TrimRight("    "+answer.Visible(line), " "))
			}
			if r.Unchecked != "" {
				fmt.Fprintf(&out, "\n  not checked: %s", r.Unchecked)
			}
			fmt.Fprintf(&out, "\n  fix: %s\n\n%s\n", r.Advice, r.URL())
		}
	default:
		for _, r := range rules {
			fmt.Fprintf(&out, "%s  %-8s %-24s %s\n", r.ID, r.Severity, r.Name, r.Summary)
		}
	}
	return cmp.Or(err, l.Emit(&out))
}

// repair writes a file anew, and to standard error what is left to say about it. A finding that --severity or --disable
// hides is not repaired either: the report would not say why a line has changed.
func (l *linter) repair(ctx context.Context, name string) error {
	r, err := l.one(ctx, name)
	if err != nil {
		return err
	}
	var out shell.Output
	a := lint.Answer{StatusCode: http.StatusOK, ContentType: "text/plain", Body: r.Text} // as if it were served well
	a.Body = a.Fix(l.shows)
	if bytes.Equal(a.Body, r.Text) {
		out.Warn(fmt.Errorf("%s: no line is replaced: the file is as it was", name))
	}
	out.Write(a.Body)
	r.Findings, r.Text = l.shown(&out, a.Findings()), a.Body
	return cmp.Or(l.write(&out.Problems, r), l.Emit(&out))
}

// shows reports whether a finding is severe enough and not disabled.
func (l *linter) shows(f lint.Finding) bool {
	return f.Severity >= severity(l.severity) && !slices.Contains(l.disable, f.ID)
}
