package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

// maxRecord is how long a line of JSON may be: a robots.txt at the parsing limit
// (RFC 9309 §2.5), with every byte escaped, still fits.
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

// match makes the subcommand. It compares paths as they are written, byte for byte: it is
// there to compare readings of the same question, so it must not improve the question.
func (a *app) match() *cobra.Command {
	m := &matcher{app: a}
	cmd := &cobra.Command{
		Use:   "match --robots FILE [URL...]",
		Short: "Ask a robots.txt file about URLs, without a network",
		Long: `Match asks a robots.txt file about URLs: those given, else one on each line of
standard input. Empty lines are left out.

A URL begins with http://, https:// or //. Text that begins with one slash is a path.
Both are compared as they are written. Anything else, such as example.com/a, could be
either, and is an error.

With --jsonl, each line of standard input is a JSON object that carries its own
robots.txt, in the format of the robots.txt vectors:

  id                               given back with the answer
  robots, robots_b64, robots_gen   the file: text, base64, or a list of {text, repeat}
  agents                           product tokens; of several, all groups count as one
  url, url_b64                     a URL or a path; example.com/a is a URL
  profile                          the dialect; else that of --as

For each there is one line of output in the same order, as --json writes it.`,
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
	case m.jsonl && m.agent != "*":
		return usagef("--jsonl reads the agents of each record: leave out --agent")
	case m.jsonl:
		return m.records(ctx)
	case m.robots == "":
		return usagef("--robots FILE is missing")
	case m.robots == "-" && len(urls) == 0:
		return usagef("standard input cannot be both the file and the URLs: give URLs as arguments")
	}
	for i, url := range urls {
		if _, err := readTargetAs(m.dialect.Dialect, url, false); err != nil {
			return usagef("argument %d: %w", i+1, err)
		}
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

// asker returns a function that writes p's answer about a URL. It may be called
// concurrently.
func (m *matcher) asker(p *policy.Policy) func(o *output, number int, url string) {
	group, colours := p.Group(m.agent.String()), m.palette()
	return func(o *output, number int, url string) {
		v, err := m.verdict(group, number, url)
		if err != nil {
			m.malformed(o, v, err)
			return
		}
		o.worsen(v.status())
		if m.json {
			o.json(v)
			return
		}
		fmt.Fprintf(o, "%s\t%s\t%s\n", colours.verdict(v.Allowed), visible(url), v.because())
	}
}

// verdict is the answer of the crawler's group about a URL. With an error it has the question
// alone.
func (m *matcher) verdict(g policy.Group, number int, url string) (verdict, error) {
	target, err := readTargetAs(m.dialect.Dialect, url, false)
	if err != nil {
		return verdict{Number: number, URL: url}, err
	}
	v := newVerdict(url, client.Answer{Decision: g.Decide(target)})
	v.Number, v.Agent, v.Dialect = number, m.agent.String(), dialectName(m.dialect.Dialect)
	return v, nil
}

// malformed reports a line that could not be understood. JSON has an answer to it in any
// case: the n-th answer is about the n-th question, also for a reader that knows no ids.
func (m *matcher) malformed(o *output, v verdict, err error) {
	o.malformed(v.Number, err)
	if m.json || m.jsonl {
		v.Error = err.Error()
		o.json(v)
	}
}

// stream answers for one URL on each line.
func (m *matcher) stream(ctx context.Context, ask func(o *output, number int, url string)) error {
	typed(m.in, m.err, "URLs")
	lines := lineFilter[*output]{maxLine: maxURL, write: m.emit}
	lines.answer = func(_ context.Context, batch []line) (*output, error) {
		o := new(output)
		for _, l := range batch {
			switch text := strings.TrimSpace(l.text); {
			case len(text) == 0:
			case l.tooLong:
				m.malformed(o, verdict{Number: l.number, URL: text}, fmt.Errorf("longer than %d bytes", maxURL))
			default:
				ask(o, l.number, text)
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

// records answers for one record on each line.
func (m *matcher) records(ctx context.Context) error {
	typed(m.in, m.err, "records")
	var latest atomic.Pointer[parsed] // over all batches
	lines := lineFilter[*output]{maxLine: maxRecord, write: m.emit}
	lines.answer = func(_ context.Context, batch []line) (*output, error) {
		o := new(output)
		last := latest.Load()
		for _, l := range batch {
			if strings.TrimSpace(l.text) != "" {
				last = m.record(o, l, last)
			}
		}
		latest.Store(last)
		return o, nil
	}
	return lines.run(ctx, m.in)
}

// record answers for one line. It returns what was parsed last.
func (m *matcher) record(o *output, l line, last *parsed) *parsed {
	var r record
	d, now, err := m.decide(&r, l, last)
	v := newVerdict(r.text(), client.Answer{Decision: d})
	v.Number, v.ID, v.Agent = l.number, r.ID, strings.Join(r.Agents, ", ")
	if err != nil {
		v.Reason = ""
		m.malformed(o, v, err)
		return last
	}
	v.Dialect = dialectName(now.dialect)
	if !d.Allowed {
		o.worsen(exitRefused)
	}
	o.json(v)
	return now
}

// decide reads l into r and answers it. What was read of a malformed record stays in r,
// for its id.
func (m *matcher) decide(r *record, l line, last *parsed) (policy.Decision, *parsed, error) {
	if l.tooLong {
		return policy.Decision{}, nil, fmt.Errorf("longer than %d bytes", maxRecord)
	}
	if err := json.Unmarshal([]byte(l.text), r); err != nil {
		return policy.Decision{}, nil, err
	}
	d, err := r.dialect(m.dialect.Dialect)
	if err != nil {
		return policy.Decision{}, nil, err
	}
	target, err := r.target(d)
	if err != nil {
		return policy.Decision{}, nil, err
	}
	if len(r.Agents) == 0 {
		return policy.Decision{}, nil, errors.New("agents is empty: give the crawler's product token")
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
