package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/fetch"
)

// filterer is "robots filter".
type filterer struct {
	*app
	network
	refusedAt string
	parallel  int
	summary   bool

	// Set by run.
	gate    *gate
	origins *asker
	turns   *turns
	refused io.Writer
	meter   meter
	tally   tally

	processors chan struct{} // one element for each batch that computes
}

// filter makes the subcommand.
func (a *app) filter() *cobra.Command {
	f := &filterer{app: a}
	cmd := &cobra.Command{
		Use:   "filter < URLS > ALLOWED",
		Short: "Keep the URLs of a list that a crawler may fetch",
		Long: `Filter reads URLs from standard input, one on a line, and writes those that the
crawler may fetch to standard output, in the same order. A line that begins with a
brace is a JSON object whose field "url" is asked about; it is written as it is.

The robots.txt of each origin is fetched once, many at a time. Memory does not grow
with the input: where one origin is slow, the lines behind its first one are worked on
up to 65,536 ahead, and wait to be written; up to 256 MiB of robots.txt files are
kept, some 100,000 origins, and more with --cache.

With --refused, the other lines go to a file: the URL, a tab, and the reason; lines
that hold no URL are among them. With --json, both outputs are JSON objects.

With --cache, robots.txt files are kept for the next run. Ctrl-C ends after a whole
line, with everything that was fetched in the cache; a second Ctrl-C ends at once.`,
		Example: `  robots filter --agent ExampleBot < urls.txt > allowed.txt
  robots filter --agent ExampleBot --refused refused.tsv --cache robots.db < urls.txt > allowed.txt
  zcat pages.jsonl.gz | robots filter --cache redis://localhost:6379 > allowed.jsonl`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(f.run),
	}
	agentVar(cmd, &f.agent)
	dialectVar(cmd, &f.dialect)
	cmd.Flags().StringVar(&f.refusedAt, "refused", "", "write what is refused to this `FILE`, with the reason")
	cmd.Flags().IntVar(&f.parallel, "parallel", 64, "ask `N` origins at a time")
	cmd.Flags().BoolVar(&f.summary, "summary", false, "say at the end how many lines there were, even if standard error is no terminal")
	f.register(cmd)
	f.registerCache(cmd)
	return cmd
}

// run opens what the flags name, in the order in which a mistake costs least, and has the
// list filtered. What was opened is closed in any case: a cache that is not closed loses
// what it has not written yet.
func (f *filterer) run(ctx context.Context, _ []string) (err error) {
	if f.parallel < 1 {
		return usagef("--parallel is %d; the least is 1", f.parallel)
	}
	if f.gate, err = f.open(f.err); err != nil {
		return err
	}
	defer f.gate.end(ctx, f.app)
	f.refused = io.Discard
	if f.refusedAt != "" {
		file, err := os.Create(f.refusedAt)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		f.refused = file
	}
	return f.lines(ctx)
}

// lines filters standard input. When it ends early, fetches that are under way may end
// too, so that their origins need not be asked again; new ones do not begin.
func (f *filterer) lines(ctx context.Context) error {
	work, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	f.origins = &asker{
		lookup: f.gate.lookup,
		slots:  make(chan struct{}, f.parallel),
		work:   work,
		asks:   map[fetch.Origin]*ask{},
		most:   maxAsks,
	}
	f.turns = newTurns(1)
	f.processors = make(chan struct{}, runtime.GOMAXPROCS(0))
	started := time.Now()
	f.meter.show(f.in, f.err)
	lines := lineFilter[*filtered]{maxLine: maxURL, answer: f.answer, write: f.write}
	err := lines.run(ctx, f.in)
	f.meter.hide()
	f.origins.end(grace)
	f.report(time.Since(started))
	return err
}

// grace is how long fetches under way may take after an interruption.
const grace = 5 * time.Second

// filtered is a batch of answered lines.
type filtered struct {
	output         // allowed lines
	refused output // the others
	tally   tally
	octets  int64 // of the lines in the input
}

// question is a line on its way to an answer.
type question struct {
	line
	url    *url.URL
	origin fetch.Origin
	ask    *ask
	broken error // the line holds no URL that could be asked about
}

// answer takes a batch through four stages: read the URLs, have their origins asked,
// wait for that, decide. Those that compute run on one goroutine for each processor,
// or hundreds of batches would keep the network waiting for its turn.
func (f *filterer) answer(ctx context.Context, lines []line) (*filtered, error) {
	questions := make([]question, len(lines))
	f.processors <- struct{}{}
	for i, l := range lines {
		questions[i] = newQuestion(l)
	}
	<-f.processors
	if err := f.ask(ctx, questions); err != nil {
		return nil, err
	}
	f.processors <- struct{}{}
	defer func() { <-f.processors }()
	b := &filtered{tally: tally{Lines: int64(len(lines))}}
	for i, q := range questions {
		b.octets += int64(len(lines[i].text) + len("\n"))
		if len(q.text) == 0 {
			continue
		}
		v, err := f.verdict(ctx, q)
		if err != nil {
			return nil, err
		}
		f.sort(b, q, v)
	}
	return b, nil
}

// newQuestion reads a line. White space around a URL is no part of it: lists that have
// been through an editor or a spreadsheet hold such lines.
func newQuestion(l line) question {
	l.text = bytes.TrimSpace(l.text)
	q := question{line: l}
	if len(l.text) == 0 {
		return q
	}
	if q.url, q.broken = urlOf(l); q.broken == nil {
		q.origin, q.broken = fetch.OriginOf(q.url)
	}
	return q
}

// ask has all origins of a batch asked, after those of the batches before it: what is to
// be written first must not queue behind what is not.
func (f *filterer) ask(ctx context.Context, questions []question) error {
	first, next := questions[0].number, questions[len(questions)-1].number+1
	if err := f.turns.wait(ctx, first); err != nil {
		return err
	}
	for i := range questions {
		if q := &questions[i]; q.url != nil && q.broken == nil {
			q.ask = f.origins.start(ctx, q.origin)
		}
	}
	f.turns.pass(next)
	for _, q := range questions {
		if q.ask == nil {
			continue
		}
		select {
		case <-q.ask.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// urlOf returns the URL on a line of input. No URL begins with a brace, so that lists of
// URLs and of JSON objects need no flag to tell them apart.
func urlOf(l line) (*url.URL, error) {
	if l.tooLong {
		return nil, fmt.Errorf("longer than %d octets", maxURL)
	}
	text := string(l.text)
	if text[0] == '{' {
		var record struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal(l.text, &record); err != nil {
			return nil, err
		}
		if text = record.URL; text == "" {
			return nil, errors.New(`the field "url" is not there: give it`)
		}
	}
	return parseURL(text)
}

// verdict answers a question whose origin has been asked. An error means that ctx ended.
func (f *filterer) verdict(ctx context.Context, q question) (verdict, error) {
	v := verdict{Number: q.number, URL: string(q.text)}
	switch {
	case q.broken != nil:
		v.Error = q.broken.Error()
		return v, nil
	case q.ask.result != nil:
		v.decided(q.ask.result.Policy.Decide(f.agent.String(), q.url.RequestURI()))
		if err := q.ask.result.Err; err != nil {
			v.Error = err.Error()
		}
		return v, nil
	}
	a, err := f.gate.Decide(ctx, q.url)
	switch {
	case ctx.Err() != nil:
		return v, ctx.Err()
	case err != nil: // a URL that net/http would not send
		v.Error = err.Error()
	default:
		v.decided(a.Decision)
	}
	return v, nil
}

// sort puts an answered line where it belongs. What could not be found out is with the
// refused ones: a list of what may be fetched has no room for "perhaps".
func (f *filterer) sort(b *filtered, q question, v verdict) {
	to := &b.refused
	switch status := v.status(); {
	case v.Reason == "":
		b.tally.Malformed++
		b.malformed(q.number, errors.New(v.Error))
	case status == exitUnknown:
		b.tally.Unknown++
		b.worsen(status)
	case status == exitRefused:
		b.tally.Refused++
		b.worsen(status)
	default:
		b.tally.Allowed++
		to = &b.output
	}
	switch {
	case f.json:
		v.Agent, v.Dialect = f.agent.String(), f.dialect.String()
		if q.url != nil && q.text[0] == '{' {
			v.URL, v.Record = q.url.String(), q.text
		}
		to.json(v)
	case to == &b.output:
		to.Write(q.text)
		to.WriteByte('\n')
	case f.refusedAt != "":
		fmt.Fprintf(to, "%s\t%s\n", visible(v.URL), v.because())
	}
}

// write is called for one batch after the other. The refused lines go first: should the
// run be killed in between, no line is missing that a later one is written after.
func (f *filterer) write(b *filtered) error {
	f.tally.add(&b.tally)
	f.meter.add(b.tally.Lines, b.octets)
	if len(b.problems) > 0 {
		f.meter.clear()
	}
	if _, err := f.refused.Write(b.refused.Bytes()); err != nil {
		return err
	}
	return f.emit(&b.output)
}

// tally counts lines by their answers.
type tally struct {
	Lines     int64 `json:"lines"` // empty ones too
	Allowed   int64 `json:"allowed"`
	Refused   int64 `json:"refused"`
	Unknown   int64 `json:"unknown"` // robots.txt was unreachable
	Malformed int64 `json:"malformed"`
}

func (t *tally) add(o *tally) {
	t.Lines += o.Lines
	t.Allowed += o.Allowed
	t.Refused += o.Refused
	t.Unknown += o.Unknown
	t.Malformed += o.Malformed
}

// report ends a run with what it did, where somebody looks on or has asked for it.
func (f *filterer) report(took time.Duration) {
	if !f.summary && !isTerminal(f.err) {
		return
	}
	fetched := f.gate.fetches.Load()
	if f.json {
		var o output
		o.json(struct {
			tally
			Fetched int64   `json:"fetched"`
			Seconds float64 `json:"seconds"`
		}{f.tally, fetched, took.Seconds()})
		f.err.Write(o.Bytes())
		return
	}
	fmt.Fprintf(f.err, "%d lines: %d allowed, %d refused, %d unknown, %d malformed; %d robots.txt fetched; %s, %.0f lines/s\n",
		f.tally.Lines, f.tally.Allowed, f.tally.Refused, f.tally.Unknown, f.tally.Malformed, fetched,
		took.Round(time.Millisecond), float64(f.tally.Lines)/took.Seconds())
}
