package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

// maxRecord is how long a line of JSON may be: a robots.txt at the parsing limit
// (RFC 9309 §2.5), with every byte escaped, still fits.
const maxRecord = 8 << 20

// matcher is "robots match". It has an Asker and no Network, so it cannot fetch. Lines are answered on
// several goroutines, which change nothing here.
type matcher struct {
	*shell.App
	answer.Asker
	robots string
	jsonl  bool
}

// matchCommand makes the subcommand. It compares paths as they are written: it is there to compare readings of the same
// question, so it must not improve the question.
func matchCommand(a *shell.App) *cobra.Command {
	m := &matcher{App: a}
	cmd := &cobra.Command{
		Use:   "match --robots FILE [URL...]",
		Short: "Ask a robots.txt file about URLs, without a network",
		Long: `Match asks a robots.txt file about URLs: those given, else one on each line of
standard input. Empty lines are left out.

A URL begins with http://, https:// or //. Text that begins with one slash is a
path. Both are compared as they are written. Anything else, such as
example.com/a, could be either, and is an error.

With --jsonl, each line of standard input is a JSON object that carries its own
robots.txt, in the format of the robots.txt vectors:

  id                  given back with the answer
  robots, robots_b64  the text of the file; of a large one robots_gen, a list of
                      pieces {text, repeat}
  agents              product tokens, without fallbacks; of several, all groups
                      count as one
  agent               instead, a crawler as --agent takes it
  url, url_b64        a URL or a path; example.com/a is a URL
  profile, dialect    the dialect; else that of --as, or of the crawler

Each is there once, in this spelling. All others are ignored.

For each there is one line of output in the same order, as --json writes it.`,
		Example: `  robots match --robots robots.txt --agent ExampleBot /private/page
  robots match --robots robots.txt --as google < urls.txt
  robots match --jsonl < facts.jsonl > verdicts.jsonl`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              shell.Runs(m.run),
	}
	f := cmd.Flags()
	f.StringVar(&m.robots, "robots", "", "the robots.txt `FILE` to ask; - is standard input")
	f.BoolVar(&m.jsonl, "jsonl", false, "read records that carry their own robots.txt from standard input")
	site.AgentVar(cmd, &m.Asker)
	site.DialectVar(cmd, &m.Asker)
	return cmd
}

// run sees to what may stand together, and then asks in one of three ways.
func (m *matcher) run(ctx context.Context, urls []string) error {
	switch {
	case m.jsonl && (m.robots != "" || len(urls) > 0):
		return shell.Usagef("--jsonl reads everything from standard input: leave out --robots and URLs")
	case m.jsonl && m.Named:
		return shell.Usagef("--jsonl reads the agents of each record: leave out --agent")
	case m.jsonl:
		return m.lines(ctx, maxRecord, m.record)
	case m.robots == "":
		return shell.Usagef("--robots FILE is missing")
	case m.robots == "-" && len(urls) == 0:
		return shell.Usagef("standard input cannot be both the file and the URLs: give URLs as arguments")
	}
	for i, url := range urls {
		if _, err := answer.ReadTarget(m.Dialect, url, false); err != nil {
			return shell.Usagef("argument %d: %w", i+1, err)
		}
	}
	data, err := m.ReadFile(ctx, m.robots)
	if err != nil {
		return err
	}
	if len(urls) > 0 {
		m.In = strings.NewReader(strings.Join(urls, "\n"))
	}
	return m.lines(ctx, answer.MaxURL, m.asker(m.Dialect.Parse(data)))
}

// asker returns a function that writes p's answer about the URL on a line. It may be called concurrently.
func (m *matcher) asker(p *policy.Policy) func(*shell.Output, shell.Line) {
	matching, colours := m.Matching(p), m.Palette()
	return func(o *shell.Output, l shell.Line) {
		v, err := matching.Match(l.Number, l.Text)
		if err != nil {
			m.malformed(o, v, err)
			return
		}
		o.Worsen(shell.StatusOf(&v))
		if m.JSON {
			o.Verdict(&v)
			return
		}
		fmt.Fprintf(o, "%s\t%s\t%s\n", colours.Verdict(v.Allowed), answer.Visible(v.URL), v.Because())
	}
}

// malformed reports a line that could not be understood. JSON has an answer to it in any case: the n-th answer is about the
// n-th question.
func (m *matcher) malformed(o *shell.Output, v answer.Verdict, err error) {
	o.Complain(fmt.Errorf("line %d: %w", v.Number, err))
	if m.JSON || m.jsonl {
		v.Error = err.Error()
		o.Verdict(&v)
	}
}

// lines answers for each line by ask, which may be called concurrently.
func (m *matcher) lines(ctx context.Context, maxLine int, ask func(*shell.Output, shell.Line)) error {
	lines := shell.LineFilter[*shell.Output]{MaxLine: maxLine, Write: m.Emit}
	lines.Answer = func(_ context.Context, batch []shell.Line) (*shell.Output, error) {
		o := new(shell.Output)
		for _, l := range batch {
			if l.Text = strings.TrimSpace(l.Text); l.Text != "" {
				ask(o, l)
			}
		}
		return o, nil
	}
	return lines.Run(ctx, m.In)
}

// record answers for one line of records. What could be read of a malformed one, its id above all, is in the answer.
func (m *matcher) record(o *shell.Output, l shell.Line) {
	var r answer.Question
	v, err := m.decide(&r, l)
	if err != nil {
		url, _ := r.AsWritten()
		v = answer.NewVerdict(answer.Redacted(url), client.Answer{})
		v.Number, v.ID, v.Agent = l.Number, r.ID, strings.Join(r.Agents, ", ")
		m.malformed(o, v, err)
		return
	}
	v.Number, v.ID = l.Number, r.ID
	o.Worsen(shell.StatusOf(&v))
	o.Verdict(&v)
}

// decide reads l into r and answers it.
func (m *matcher) decide(r *answer.Question, l shell.Line) (v answer.Verdict, err error) {
	if len(l.Text) > maxRecord {
		return v, fmt.Errorf("longer than %d bytes", maxRecord)
	}
	if err = r.Read(l.Text); err != nil {
		return v, err
	}
	url, err := r.AsWritten()
	if err != nil {
		return v, err
	}
	k, combined, err := r.Asker(m.Asker)
	if err != nil {
		return v, err
	}
	target, err := answer.ReadTarget(k.Dialect, url, true)
	if err != nil {
		return v, err
	}
	text, err := r.File()
	if err != nil {
		return v, err
	}
	p := k.Dialect.Parse(text)
	group := p.Group(k.Obeys(p))
	if combined {
		group = p.Combined(r.Agents...)
	}
	v = answer.NewVerdict(answer.Redacted(url), client.Answer{Decision: group.Decide(target)})
	k.Sign(&v, k.Dialect, p)
	return v, nil
}
