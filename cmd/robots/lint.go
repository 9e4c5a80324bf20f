package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// linter is "robots lint".
type linter struct {
	*app
	network
	format string
	least  severityFlag
	rules  bool
}

// lint makes the subcommand. The judgement is package lint's; here are the arguments, the
// network, and the exit status.
func (a *app) lint() *cobra.Command {
	l := &linter{app: a}
	cmd := &cobra.Command{
		Use:   "lint FILE|URL...",
		Short: "Find the mistakes in robots.txt files before crawlers do",
		Long: `Lint reads robots.txt files and reports what crawlers will not read as it was
meant: rules without effect, or with the opposite one; lines that crawlers read
differently; and what is worth knowing. For a URL (with http:// or https:// in
front) the robots.txt of its site is fetched, and how it is served is judged too.
A dash is standard input.

The exit status is 1 if there are findings of at least --severity.`,
		Example: `  robots lint robots.txt
  robots lint https://example.com --severity warning
  robots lint site/robots.txt --format sarif > robots.sarif
  robots lint --rules`,
		RunE: runs(l.run),
	}
	f := cmd.Flags()
	f.StringVar(&l.format, "format", "text", "`FORMAT` of the report: text, json or sarif")
	f.Var(&l.least, "severity", "least `SEVERITY` that is reported: info, warning or error")
	f.BoolVar(&l.rules, "rules", false, "list the rules instead, with what each is about")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json", "sarif"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions([]string{"info", "warning", "error"}, cobra.ShellCompDirectiveNoFileComp))
	l.register(cmd)
	return cmd
}

// severityFlag is --severity.
type severityFlag struct{ lint.Severity }

func (f *severityFlag) Type() string { return "severity" }

func (f *severityFlag) Set(name string) error {
	for s := lint.Info; s <= lint.Error; s++ {
		if s.String() == name {
			f.Severity = s
			return nil
		}
	}
	return fmt.Errorf("no severity is called %q: it is info, warning or error", name)
}

// run judges all arguments and writes one report about them, since a SARIF document
// cannot be written in pieces. A file that cannot be read is reported and counted; the
// others may do better.
func (l *linter) run(ctx context.Context, args []string) error {
	write, err := l.writer()
	if err != nil {
		return err
	}
	var out output
	if l.rules {
		l.list(&out)
		return l.emit(&out)
	}
	if len(args) == 0 {
		return usagef("give a FILE or a URL, or - for standard input")
	}
	var reports []lint.Report
	for _, arg := range args {
		name, findings, err := l.one(ctx, arg)
		_, usage := errors.AsType[usageError](err)
		switch {
		case usage || ctx.Err() != nil:
			return err
		case err != nil:
			out.complain(err)
			continue
		}
		reports = append(reports, l.report(&out, name, findings))
	}
	if err := write(&out, reports...); err != nil {
		return err
	}
	return l.emit(&out)
}

// writer is that of --format, or of --json, which every subcommand has. SARIF is JSON
// already, so the two together ask for SARIF.
func (l *linter) writer() (func(io.Writer, ...lint.Report) error, error) {
	switch {
	case l.format == "sarif":
		return lint.WriteSARIF, nil
	case l.format == "json", l.format == "text" && l.json:
		return lint.WriteJSON, nil
	case l.format == "text":
		return lint.WriteText, nil
	default:
		return nil, usagef("no format is called %q: it is text, json or sarif", l.format)
	}
}

// report keeps the findings that are severe enough.
func (l *linter) report(out *output, name string, findings []lint.Finding) lint.Report {
	r := lint.Report{Name: name, Findings: []lint.Finding{}}
	for _, f := range findings {
		if f.Severity >= l.least.Severity {
			r.Findings = append(r.Findings, f)
			out.worsen(exitRefused)
		}
	}
	return r
}

// one returns the findings about one argument, and the name of the file they are about.
func (l *linter) one(ctx context.Context, arg string) (string, []lint.Finding, error) {
	if strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") {
		return l.url(ctx, arg)
	}
	data, err := l.readFile(arg)
	if err != nil {
		return arg, nil, err
	}
	return arg, append(lint.Name(arg), lint.File(data)...), nil
}

// url returns the findings about the robots.txt of a site and how it is served. That
// nobody answered is no finding about a file but a failure to find out; a 503 is one,
// as it closes the site to crawlers.
func (l *linter) url(ctx context.Context, text string) (string, []lint.Finding, error) {
	u, err := parseURL(text)
	if err != nil {
		return text, nil, err
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		return text, nil, err
	}
	g, err := l.open(l.err)
	if err != nil {
		return text, nil, err
	}
	defer g.end(ctx, l.app)
	res, err := g.Fetcher.Fetch(ctx, o, nil)
	if err != nil {
		return text, nil, err
	}
	if res.StatusCode == 0 {
		return text, nil, res.Err
	}
	a := lint.Answer{
		URL:         o.RobotsURL().String(),
		StatusCode:  res.StatusCode,
		ContentType: res.Header.Get("Content-Type"),
		RetryAfter:  res.Header.Get("Retry-After"),
		Redirects:   res.Redirects,
		Body:        res.Body,
		Truncated:   res.Truncated,
	}
	if a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusGone {
		a.Misnamed = l.misnamed(ctx, g, o)
	}
	return a.URL, append(lint.Name(u.Path), a.Findings()...), nil
}

// misnamed is the status of /robot.txt, the commonest slip in the name; 0 if there is
// no answer.
func (l *linter) misnamed(ctx context.Context, g *gate, o fetch.Origin) int {
	u := o.RobotsURL()
	u.Path = "/robot.txt"
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.String(), nil)
	if err != nil {
		return 0
	}
	req.Header.Set("User-Agent", l.userAgent)
	res, err := g.Base.RoundTrip(req)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// list writes the registry.
func (l *linter) list(out *output) {
	for _, r := range lint.Rules() {
		if l.json || l.format == "json" {
			out.json(r)
			continue
		}
		fmt.Fprintf(out, "%s  %-8s %-24s %s\n", r.ID, r.Severity, r.Name, r.Summary)
	}
}
