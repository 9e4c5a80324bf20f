package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/policy"
)

// maxRecord is how long a line of JSON may be: a robots.txt at the parsing limit
// (RFC 9309 §2.5), with every octet escaped, still fits.
const maxRecord = 8 << 20

// maxURL is how long a URL may be that is read from a stream.
const maxURL = 64 << 10

// matcher is "robots match".
type matcher struct {
	*app
	robots  string
	agent   agentFlag
	dialect dialectFlag
	jsonl   bool
}

// match makes the subcommand. It takes URLs as they are written, down to the octet: it is
// there to compare readings of the same question, so it must not improve the question.
func (a *app) match() *cobra.Command {
	m := &matcher{app: a}
	cmd := &cobra.Command{
		Use:   "match --robots FILE [URL...]",
		Short: "Ask a robots.txt file about URLs, without a network",
		Long: `Match asks a robots.txt file about URLs: those given, else one on each line of
standard input. A URL is a full one or a path; it is taken as written.

With --jsonl, each line of standard input is a JSON object that carries its own
robots.txt, in the format of the robots.txt vectors:

  id                               given back with the answer
  robots, robots_b64, robots_gen   the file: text, base64, or a list of {text, repeat}
  agents                           product tokens; of several, all groups count as one
  url, url_b64                     a full URL or a path
  profile                          the dialect; else that of --as

For each there is one line of output, in the same order: {id, allowed, line}, or
{id, error} where the input is malformed. "line" is that of the deciding rule, 0 if
no rule decided. Empty lines are left out.`,
		Example: `  robots match --robots robots.txt --agent ExampleBot /private/page
  robots match --robots robots.txt --as google < urls.txt
  robots match --jsonl < facts.jsonl > verdicts.jsonl`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(m.run),
	}
	f := cmd.Flags()
	f.StringVar(&m.robots, "robots", "", "the robots.txt `FILE` to ask; - is standard input")
	f.BoolVar(&m.jsonl, "jsonl", false, "read records that carry their own robots.txt from standard input")
	agentVar(cmd, &m.agent)
	dialectVar(cmd, &m.dialect)
	return cmd
}

// run sees to what may stand together, and then asks in one of three ways.
func (m *matcher) run(ctx context.Context, urls []string) error {
	switch {
	case m.jsonl && (m.robots != "" || len(urls) > 0):
		return usagef("--jsonl reads everything from standard input: leave out --robots and URLs")
	case m.jsonl:
		return m.records(ctx)
	case m.robots == "":
		return usagef("--robots FILE is missing")
	case m.robots == "-" && len(urls) == 0:
		return usagef("standard input cannot be both the file and the URLs: give URLs as arguments")
	}
	data, err := m.readFile(m.robots)
	if err != nil {
		return err
	}
	ask := m.asker(m.dialect.Parse(data))
	if len(urls) == 0 {
		return m.stream(ctx, ask)
	}
	var o output
	for i, url := range urls {
		ask(&o, i+1, url)
	}
	return m.emit(&o)
}

// asker returns a function that writes p's answer about a URL. It may be used by
// several goroutines.
func (m *matcher) asker(p *policy.Policy) func(o *output, number int, url string) {
	group, colours := p.Group(m.agent.String()), paletteFor(m.out)
	return func(o *output, number int, url string) {
		v := newVerdict(url, group.Decide(targetOf(url)))
		o.worsen(v.status())
		if m.json {
			v.Number, v.Agent, v.Dialect = number, m.agent.String(), m.dialect.String()
			o.json(v)
			return
		}
		fmt.Fprintf(o, "%s\t%s\t%s\n", colours.verdict(v.Allowed), visible(url), v.because())
	}
}

// stream answers for one URL on each line.
func (m *matcher) stream(ctx context.Context, ask func(o *output, number int, url string)) error {
	lines := lineFilter[*output]{maxLine: maxURL, write: m.emit}
	lines.answer = func(_ context.Context, batch []line) (*output, error) {
		o := new(output)
		for _, l := range batch {
			switch {
			case len(l.text) == 0:
			case l.tooLong:
				o.malformed(l.number, fmt.Errorf("longer than %d octets", maxURL))
			default:
				ask(o, l.number, string(l.text))
			}
		}
		return o, nil
	}
	return lines.run(ctx, m.in)
}

// parsed is a robots.txt that was asked about, kept because the next record is likely
// to ask about the same one.
type parsed struct {
	from    record
	dialect policy.Dialect
	policy  *policy.Policy
}

// recordVerdict answers a record; either Allowed and Line or Error is there.
type recordVerdict struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Allowed *bool           `json:"allowed,omitempty"`
	Line    *int            `json:"line,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// records answers for one record on each line.
func (m *matcher) records(ctx context.Context) error {
	var latest atomic.Pointer[parsed] // over all batches
	lines := lineFilter[*output]{maxLine: maxRecord, write: m.emit}
	lines.answer = func(_ context.Context, batch []line) (*output, error) {
		o := new(output)
		last := latest.Load()
		for _, l := range batch {
			if len(bytes.TrimSpace(l.text)) > 0 {
				last = m.record(o, l, last)
			}
		}
		latest.Store(last)
		return o, nil
	}
	return lines.run(ctx, m.in)
}

// record answers for one line, with a line in any case: the n-th answer is about the
// n-th record, also for a reader that knows no ids. It returns what was parsed last.
func (m *matcher) record(o *output, l line, last *parsed) *parsed {
	var r record
	d, now, err := m.decide(&r, l, last)
	if err != nil {
		o.malformed(l.number, err)
		o.json(recordVerdict{ID: r.ID, Error: err.Error()})
		return last
	}
	if !d.Allowed {
		o.worsen(exitRefused)
	}
	o.json(recordVerdict{ID: r.ID, Allowed: &d.Allowed, Line: &d.Rule.Line})
	return now
}

// decide reads l into r and answers it. What was read of a malformed record stays in r,
// for its id.
func (m *matcher) decide(r *record, l line, last *parsed) (policy.Decision, *parsed, error) {
	if l.tooLong {
		return policy.Decision{}, nil, fmt.Errorf("longer than %d octets", maxRecord)
	}
	if err := json.Unmarshal(l.text, r); err != nil {
		return policy.Decision{}, nil, err
	}
	target, err := r.target()
	if err != nil {
		return policy.Decision{}, nil, err
	}
	if len(r.Agents) == 0 {
		return policy.Decision{}, nil, errors.New("agents is empty: give the crawler's product token")
	}
	d, err := r.dialect(m.dialect.Dialect)
	if err != nil {
		return policy.Decision{}, nil, err
	}
	if last == nil || last.dialect != d || !r.sameRobots(&last.from) {
		text, err := r.robots()
		if err != nil {
			return policy.Decision{}, nil, err
		}
		last = &parsed{*r, d, d.Parse(text)}
	}
	if len(r.Agents) == 1 { // Combined has to compile a group
		return last.policy.Decide(r.Agents[0], target), last, nil
	}
	return last.policy.Combined(r.Agents...).Decide(target), last, nil
}
