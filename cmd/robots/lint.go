package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
	fix       bool
	outputAt  string
	overwrite bool
	format    string
	severity  string
	failOn    string
	disable   []string
	rules     bool
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

With --fix, the repaired file is written to standard output, or to --output
FILE, and what is left to say about it to standard error. Only lines are
replaced for which the file says the same to all crawlers. Of the others, the
report has an example, behind a question mark: only the author knows what was
meant.

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
  robots lint robots.txt --fix --output repaired.txt
  robots lint --rules RT203`,
	}
	cmd.RunE = shell.Runs(func(ctx context.Context, args []string) error {
		return l.run(ctx, args, cmd.Flags().Changed) // a default was not asked for
	})
	f := cmd.Flags()
	shell.ChoiceVar(cmd, &l.format, "format", "`FORMAT` of the report: text, json or sarif", "text", "json", "sarif")
	shell.ChoiceVar(cmd, &l.severity, "severity", "least `SEVERITY` that is shown: info, warning or error", severities...)
	shell.ChoiceVar(cmd, &l.failOn, "fail-on", "least `SEVERITY` of a finding shown that makes the exit status 1", severities...)
	f.StringSliceVar(&l.disable, "disable", nil, "leave out these `RULES`, such as RT007,RT403")
	f.BoolVar(&l.rules, "rules", false, "list the rules instead, or explain those that are named: --rules RT203")
	f.BoolVar(&l.fix, "fix", false, "write the repaired file, which says the same to all crawlers")
	f.StringVarP(&l.outputAt, "output", "o", "", "write the repaired file to this new `FILE`, not to standard output")
	f.BoolVar(&l.overwrite, "overwrite", false, "let --output replace a file that exists")
	cmd.RegisterFlagCompletionFunc("disable", func(*cobra.Command, []string, string) (ids []string, _ cobra.ShellCompDirective) {
		for _, r := range lint.Rules() {
			ids = append(ids, r.ID+"\t"+r.Summary)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	})
	l.Register(cmd)
	return cmd
}

// By number.
var severities = []string{lint.SeverityInfo: "info", lint.SeverityWarning: "warning", lint.SeverityError: "error"}

func severity(name string) lint.Severity { return lint.Severity(slices.Index(severities, name)) }

// run judges all arguments and writes one report about them: a SARIF document cannot be written in pieces. A file that cannot
// be read is reported and counts as status 2; the others may do better. Wrong usage ends the run, and so does an
// interruption: what was found until then would pass for the whole. With --fix there is one argument, and repair writes.
func (l *linter) run(ctx context.Context, args []string, given func(flag string) bool) error {
	if err := l.misuse(args, given); err != nil {
		return err
	}
	write, err := l.writer(given("format"))
	if err != nil {
		return err
	}
	if l.disable, err = ruleIDs(l.disable); err != nil {
		return err
	}
	if l.rules {
		return l.explain(args)
	}
	if len(args) == 0 {
		return shell.Usagef("give a FILE or a URL, or - for standard input")
	}
	if i := slices.Index(args, "-"); i >= 0 && slices.Contains(args[i+1:], "-") {
		return shell.Usagef("standard input can be read once: give - once")
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
			continue
		case l.fix:
			if err := l.repair(&out, r); err != nil {
				return err
			}
			continue
		}
		r.Findings = l.shown(&out, r.Findings)
		reports = append(reports, r)
	}
	if err := write(&out, reports...); err != nil {
		return err
	}
	return l.Emit(&out)
}

// writer is that of --format, or of --json, which every subcommand has and is the same as --format json. formatted tells
// whether --format was given: the two may ask for different things.
func (l *linter) writer(formatted bool) (func(io.Writer, ...lint.Report) error, error) {
	switch {
	case l.JSON && formatted && l.format != "json":
		return nil, shell.Usagef("--json and --format %s exclude each other", l.format)
	case l.JSON:
		l.format = "json"
	}
	writers := map[string]func(io.Writer, ...lint.Report) error{"text": l.text, "json": lint.WriteJSON, "sarif": lint.WriteSARIF}
	return writers[l.format], nil
}

// text writes for people: in colours and in the width of the terminal, if there is one.
func (l *linter) text(w io.Writer, reports ...lint.Report) error {
	style := lint.Style{Color: l.Palette().On}
	if f, ok := l.Out.(*os.File); ok && shell.IsTerminal(f) {
		style.Width, _, _ = term.GetSize(int(f.Fd())) // 0 if that is not known
	}
	return lint.WriteText(w, style, reports...)
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

// shown keeps the findings that are severe enough and not disabled.
func (l *linter) shown(out *shell.Output, findings []lint.Finding) []lint.Finding {
	shown := []lint.Finding{}
	for _, f := range findings {
		if !l.shows(f) {
			continue
		}
		// What is not shown does not fail the run either, or its status would have no reason.
		shown = append(shown, f)
		if f.Severity >= severity(l.failOn) {
			out.Worsen(shell.ExitRefused)
		}
	}
	return shown
}

func isURL(arg string) bool {
	scheme, _, found := strings.Cut(arg, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// one returns the report about one argument: a URL, or else the name of a file. Most who forget the scheme of
// a site name what looks like one, and are told.
func (l *linter) one(ctx context.Context, arg string) (lint.Report, error) {
	if isURL(arg) {
		return l.url(ctx, arg)
	}
	data, err := l.ReadFile(ctx, arg)
	host, _, _ := strings.Cut(arg, "/")
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(strings.Trim(host, "."), ".") && !strings.HasSuffix(host, ".txt") {
		err = fmt.Errorf("%w: for a site write https://%s", err, arg)
	}
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
	if l.fix && (a.StatusCode < 200 || a.StatusCode > 299) {
		return r, fmt.Errorf("%s answers %d: there is no file to repair", a.URL, a.StatusCode)
	}
	if l.fix && a.Truncated {
		return r, fmt.Errorf("%s is longer than %d bytes: its rest would be lost", a.URL, fetch.MaxBytes)
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

// explain writes the registry, or what it says about some rules. No rule named means all.
func (l *linter) explain(names []string) error {
	if l.format == "sarif" {
		return shell.Usagef("--rules writes text or JSON")
	}
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
			err = errors.Join(err, l.page(&out, r))
		}
	default:
		for _, r := range rules {
			fmt.Fprintf(&out, "%s  %-8s %-24s %s\n", r.ID, r.Severity, r.Name, r.Summary)
		}
	}
	if err != nil {
		return err
	}
	return l.Emit(&out)
}

// page explains a rule by its example and what is reported there.
func (l *linter) page(out *shell.Output, r lint.Rule) error {
	fmt.Fprintf(out, "%s %s (%s: %s)\n\n  %s\n\n", r.ID, r.Name, r.Severity, r.Engines, r.Summary)
	for line := range strings.SplitSeq(r.Example, "\n") {
		fmt.Fprintln(out, strings.TrimRight("    "+answer.Visible(line), " "))
	}
	found := slices.DeleteFunc(lint.File([]byte(r.Example)), func(f lint.Finding) bool { return f.ID != r.ID })
	out.WriteByte('\n')
	if len(found) > 0 {
		// One is enough: an example may show a mistake twice, in two spellings.
		err := l.text(out, lint.Report{Name: "robots.txt", Findings: found[:1], Text: []byte(r.Example)})
		fmt.Fprintf(out, "\n%s\n", r.URL())
		return err
	}
	if r.Unchecked != "" {
		fmt.Fprintf(out, "  not checked: %s\n", r.Unchecked)
	}
	fmt.Fprintf(out, "  fix: %s\n\n%s\n", r.Advice, r.URL())
	return nil
}

// misuse reports flags that do not go together: one of them would have no effect, and who gave it would
// believe that it had. given tells whether a flag was given: it may have a default.
func (l *linter) misuse(args []string, given func(flag string) bool) error {
	idle, why := site.Flags, "no argument is a URL, such as https://example.com"
	switch {
	case l.rules:
		idle, why = append([]string{"severity", "fail-on", "disable"}, site.Flags...), "--rules judges no file"
	case slices.ContainsFunc(args, isURL):
		idle = nil
	}
	if i := slices.IndexFunc(idle, given); i >= 0 {
		return shell.Usagef("--%s would have no effect: %s", idle[i], why)
	}
	switch {
	case !l.fix && (l.outputAt != "" || l.overwrite):
		return shell.Usagef("--output and --overwrite are for the file that --fix repairs")
	case l.overwrite && l.outputAt == "":
		return shell.Usagef("--overwrite needs --output FILE")
	case !l.fix:
		return nil
	case l.rules || l.JSON || given("format"):
		return shell.Usagef("--fix writes the repaired file: leave out --rules, --format and --json")
	case len(args) != 1:
		return shell.Usagef("--fix repairs one FILE or URL")
	}
	return nil
}

// repair writes the file of a report anew, and to standard error what is left to say about it. A finding that --severity or
// --disable hides is not repaired either: the report would not say why a line has changed.
func (l *linter) repair(out *shell.Output, r lint.Report) error {
	// How the file was served is judged no more: a repair cannot change it, and the output is a file.
	a := lint.Answer{StatusCode: 200, ContentType: "text/plain", Body: r.Text}
	if strings.Contains(r.Name, "://") {
		a.URL = r.Name
	}
	a.Body = a.Fix(l.shows)
	left := lint.Report{Name: r.Name, Findings: l.shown(out, a.Findings()), Text: a.Body}
	// What is left is about the file that is written, if it has a name.
	if l.outputAt != "" && l.outputAt != "-" {
		left.Name = l.outputAt
	}
	if err := l.text(&out.Problems, left); err != nil {
		return err
	}
	if l.outputAt == "" || l.outputAt == "-" {
		out.Write(a.Body)
		return nil
	}
	f, err := create(l.outputAt, replacing(l.overwrite))
	if err != nil {
		return err
	}
	_, err = f.Write(a.Body)
	return errors.Join(err, f.Close()) // some file systems tell of a full disk at Close only
}

// shows reports whether a finding is severe enough and not disabled.
func (l *linter) shows(f lint.Finding) bool {
	return f.Severity >= severity(l.severity) && !slices.Contains(l.disable, f.ID)
}
