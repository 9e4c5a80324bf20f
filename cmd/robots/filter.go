package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// filterer is "robots filter". Several goroutines call answer and decide, which change nothing here but origins and late.
type filterer struct {
	*shell.App
	site.Network
	outputAt  string
	refusedAt string
	resume    bool
	overwrite bool
	failOn    []string
	parallel  int
	summary   bool
	unordered bool

	// Set by run and lines before the first line is read. Later, write alone adds to tally.
	gate     *site.Gate
	origins  *site.Origins
	output   *os.File // of --output, or nil
	refusals *os.File // of --refused, or nil
	late     lateLines
	meter    shell.Meter
	tally    tally
	skipped  atomic.Int64 // lines, by --resume
	turns    sync.Map     // of batches to ask for their origins, by the number of their first lines
}

// tally counts lines by what became of them. Empty ones count in the meter alone.
type tally [4]int64

// The indexes of a tally.
const (
	allowed = iota
	refused
	unknown // robots.txt was unreachable
	malformed
)

// failures are what --fail-on takes, each with its status. Without the flag, a list that was filtered is a success
// whatever its lines are.
var (
	failures = []string{refused: "refused", unknown: "unknown", malformed: "malformed"}
	statuses = []int{refused: shell.ExitRefused, unknown: shell.ExitUnknown, malformed: shell.ExitUnknown}
)

const filterHelp = `Filter reads URLs from standard input, one on a line, and writes those that the
crawler may fetch to standard output, in the same order. A line that begins with
a brace is a JSON object whose field "url" is asked about; it is written as it
is.

The robots.txt of each origin is fetched once in a run, many at a time. The
result, even a failure, is kept until the run ends. With --unordered, the lines
of hosts that do not answer within a second are put aside, up to 32 MiB, and
answered at the end. Many silent hosts hold up a list half as long with
--parallel 2048, in some 300 MiB.

Memory does not grow with the input: while one origin is slow, up to 65,536
lines behind its first one are worked on, and wait to be written; up to 128 MiB
of robots.txt files are kept, some 50,000 origins, and more with --cache.

With --refused, the other lines go to a file: the URL, a tab, and the reason.
Lines that hold no URL are among them; without --refused, standard error tells
of those. With --json, both outputs are JSON objects.

With --cache, robots.txt files are kept for the next run. Ctrl-C ends after a
whole line, with everything that was fetched in the cache; a second Ctrl-C ends
at once. Run again, a list is read from its beginning, and no site is asked
again.

With --output FILE --resume, a run that was interrupted or killed goes on where
it ended: give it the same list and the same flags. The last line of FILE is
looked up in the list, and the lines behind it are asked about. What was half
written is cut off.

Exit status: 0 the list was filtered, whatever the answers; with --fail-on, 1 a
line was refused, 2 a line is unknown or malformed. Lines that --resume skips do
not count. 2 also if a file could not be read or written.`

// filterCommand makes the subcommand. A line is kept or not by one verdict, so --as takes no "all".
func filterCommand(a *shell.App) *cobra.Command {
	f := &filterer{App: a}
	cmd := &cobra.Command{
		Use:   "filter < URLS > ALLOWED",
		Short: "Keep the URLs of a list that a crawler may fetch",
		Long:  filterHelp,
		Example: `  robots filter --agent ExampleBot < urls.txt > allowed.txt
  robots filter --refused refused.tsv --cache kept < urls.txt > allowed.txt
  robots filter --agent ExampleBot --uses train-ai < urls.txt > usable.txt
  robots filter --output allowed.txt --resume --cache kept < urls.txt
  zcat pages.gz | robots filter --cache redis://localhost:6379 > allowed.jsonl`,
		Args:              shell.Args(0, 0, "none: filter reads standard input, as in robots filter < urls.txt"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              shell.Runs(f.run),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.outputAt, "output", "o", "", "write what is allowed to this new `FILE`, not to standard output")
	flags.BoolVar(&f.overwrite, "overwrite", false, "let --output replace a file that exists")
	flags.BoolVar(&f.resume, "resume", false, "skip the lines that an earlier run has answered in the file of --output")
	flags.StringVar(&f.refusedAt, "refused", "", "write what is refused to this `FILE`, with the reason")
	flags.StringSliceVar(&f.failOn, "fail-on", nil, "fail if a line is of these `KINDS`: refused, unknown, malformed")
	flags.IntVar(&f.parallel, "parallel", 512, "ask `N` origins at a time")
	flags.BoolVar(&f.unordered, "unordered", false, "answer the lines of hosts that keep silent at the end, and wait for none before")
	flags.BoolVar(&f.summary, "summary", false, "end with the number of lines, even if standard error is no terminal")
	cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failures[refused:], cobra.ShellCompDirectiveNoFileComp))
	f.Register(cmd, site.AgentVar, site.DialectVar, site.UsesVar, site.AgreementsVar)
	f.RegisterCache(cmd)
	return cmd
}

// usage returns what is wrong with how the flags go together.
func (f *filterer) usage() error {
	for _, kind := range f.failOn {
		if err := shell.OneOf(kind, failures[refused:]); err != nil {
			return shell.Usagef("--fail-on: %w", err)
		}
	}
	switch {
	case f.parallel < 1:
		return shell.Usagef("--parallel is %d; the least is 1", f.parallel)
	case f.unordered && f.resume:
		return shell.Usagef("--resume finds its place by the order of the lines: leave out --unordered")
	case f.overwrite && (f.outputAt == "" || f.resume):
		return shell.Usagef("--overwrite needs --output FILE, without --resume")
	case f.resume && f.outputAt == "":
		return shell.Usagef("--resume needs --output FILE: standard output cannot be read")
	}
	return nil
}

// run opens what the flags name, and has the list filtered: --output first, which refuses a file that exists, while the
// other is emptied. What was opened is closed in any case: a cache that is not closed loses what it has not written yet.
func (f *filterer) run(ctx context.Context, _ []string) (err error) {
	if err := f.usage(); err != nil {
		return err
	}
	if f.gate, err = f.Open(f.Err); err != nil {
		return err
	}
	defer f.gate.End(ctx, f.App)
	output, refusals := os.O_WRONLY|os.O_EXCL, os.O_WRONLY|os.O_TRUNC
	switch {
	case f.overwrite:
		output = refusals
	case f.resume:
		output, refusals = os.O_RDWR, os.O_RDWR
	}
	if f.outputAt != "" {
		if f.output, err = create(f.outputAt, output, f.In); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.output.Close()) }()
		f.Out = f.output
	}
	if f.refusedAt != "" {
		if f.refusals, err = create(f.refusedAt, refusals, f.In, f.Out); err != nil {
			if f.output != nil && output&os.O_EXCL != 0 { // or the next run would find it there
				os.Remove(f.outputAt)
			}
			return err
		}
		defer func() { err = errors.Join(err, f.refusals.Close()) }()
	}
	return f.lines(ctx)
}

// lines filters standard input. When it ends early, fetches that are under way may end too, and it reports in any case.
func (f *filterer) lines(ctx context.Context) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20) // else garbage may take as much as what is kept
	}
	// The slots of origins bound lookups. Fetches need a bound of their own: one goes on behind a lookup that
	// took a copy from the store in its place.
	f.gate.Fetcher.MaxFetches = f.parallel
	f.gate.Cache.MaxBytes = site.BesideOrigins
	f.origins = site.NewOrigins(f.gate.Find, f.Dialect, f.parallel)
	started := time.Now()
	hide := f.meter.Show(f.In, f.Out, f.Err, f.origins.Progress)
	lines := shell.LineFilter[*filtered]{MaxLine: answer.MaxURL, Answer: f.answer, Write: f.write}
	if f.resume {
		lines.Skip = f.skip
	} else {
		close(f.turn(1))
	}
	err := lines.Run(ctx, f.In)
	if err == nil {
		err = f.answerLate(ctx)
	}
	// The line of the meter goes before anything else is written to standard error.
	hide()
	f.origins.End(grace)
	f.report(time.Since(started))
	return err
}

// grace is how long fetches under way may take after an interruption.
const grace = 5 * time.Second

// filtered is a batch of answered lines. One goroutine makes it, and then write has it to itself.
type filtered struct {
	allowed shell.Output
	refused shell.Output // and all others
	lines   int64        // that were not counted yet, empty ones too
	tally   tally
}

// question is a line whose robots.txt is not known yet. It is decided as soon as that is, and does not hold it: a thousand
// may take gigabytes.
type question struct {
	answer.Listed
	f      *filterer
	lookup *site.Lookup // that is waited for
	taken  atomic.Bool  // by Found, which decides, or else by wait, which puts it aside
	own    *filtered    // the answer; may be read once lookup is done
	behind *filtered    // what is known of the lines up to the next question, or nil
}

// Found decides the line of q, and lets go of it.
func (q *question) Found(r *fetch.Result) {
	if q.taken.CompareAndSwap(false, true) {
		q.Result, q.own = r, new(filtered)
		q.f.decide(q.own, &q.Listed)
		q.Listed = answer.Listed{}
	}
}

// answer reads the URLs of a batch, and decides those of known origins. It has the others looked up, and waits for that.
func (f *filterer) answer(ctx context.Context, lines []shell.Line) (*filtered, error) {
	b := new(filtered)
	if !f.late.again { // then they are counted already
		b.lines = int64(len(lines))
	}
	var l answer.Listed // one for all: a variable of each turn would be on the heap
	questions, to := []*question(nil), &b
	for _, line := range lines {
		// White space around a URL is no part of it: lists that have been through an editor or a
		// spreadsheet hold such lines.
		if line.Text = strings.TrimSpace(line.Text); line.Text == "" {
			continue
		}
		if l = answer.ReadListed(f.Dialect, line.Number, line.Text); l.Err == nil {
			l.Result = f.origins.Known(l.Origin)
		}
		if l.Err == nil && l.Result == nil {
			q := &question{Listed: l, f: f}
			questions, to = append(questions, q), &q.behind
			continue
		}
		if *to == nil {
			*to = new(filtered)
		}
		f.decide(*to, &l)
	}
	if err := f.ask(ctx, lines[0].Number, len(lines), questions); err != nil {
		return nil, err
	}
	for _, q := range questions {
		b.add(q.own)
		b.add(q.behind)
	}
	return b, nil
}

// turn is closed once the lines before number have been asked about.
func (f *filterer) turn(number int) chan struct{} {
	c, _ := f.turns.LoadOrStore(number, make(chan struct{}))
	return c.(chan struct{})
}

// ask has the origins of a batch looked up: all of them before those of the next one, since what is to be written first
// must not queue behind what is not. What it waits for then is a slot, and in the end the lookups.
func (f *filterer) ask(ctx context.Context, number, lines int, questions []*question) (err error) {
	select {
	case <-f.turn(number):
		f.turns.Delete(number)
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, q := range questions {
		if q.lookup, err = f.origins.Start(ctx, q.Origin, q); err != nil {
			return err
		}
	}
	close(f.turn(number + lines))
	return f.wait(ctx, questions)
}

// decide answers a line, and puts it where it belongs. What could not be found out is with the refused ones: a list of what
// may be fetched has no room for "perhaps".
func (f *filterer) decide(b *filtered, q *answer.Listed) {
	// The order counts: of a line with an error, a says nothing, and where robots.txt is unreachable, a refuses too.
	a, kind, to := f.Decide(q), allowed, &b.refused
	switch {
	case q.Err != nil:
		kind = malformed
	case a.Reason == policy.ReasonUnreachable:
		kind = unknown
	case !a.Allowed:
		kind = refused
	default:
		to = &b.allowed
	}
	b.tally[kind]++
	switch {
	case kind == malformed && f.refusals == nil:
		b.allowed.Warn(fmt.Errorf("line %d: %w", q.Number, q.Err))
		return
	case kind != allowed && f.refusals == nil:
		return
	case kind == allowed && !f.JSON:
		to.WriteString(q.Text)
		to.WriteByte('\n')
		return
	}
	v := f.Verdict(q, a)
	v.Cut() // up to 65,536 of them wait to be written
	if f.JSON {
		to.Verdict(&v)
	} else {
		fmt.Fprintf(to, "%s\t%s\n", answer.Visible(answer.Redacted(q.Text)), v.Because())
	}
}

// add puts what was answered, if anything, behind b.
func (b *filtered) add(c *filtered) {
	if c == nil {
		return
	}
	b.allowed.Write(c.allowed.Bytes())
	b.allowed.Problems.Write(c.allowed.Problems.Bytes())
	b.refused.Write(c.refused.Bytes())
	for kind, n := range c.tally {
		b.tally[kind] += n
	}
}

// write is called for one batch after the other. The refused lines go first, so that no line is missing which a later one
// is written after: --resume counts on that. An error ends the run: a full disk must not leave a list with a gap.
func (f *filterer) write(b *filtered) error {
	for kind, n := range b.tally {
		f.tally[kind] += n
	}
	f.meter.Lines.Add(b.lines)
	if b.refused.Len() > 0 { // never without --refused, see decide
		if _, err := f.refusals.Write(b.refused.Bytes()); err != nil {
			return err
		}
	}
	if b.allowed.Problems.Len() > 0 {
		f.meter.Erase()
	}
	return f.Emit(&b.allowed)
}

// report ends a run with what it did. The figures go to standard error: standard output is the list.
func (f *filterer) report(took time.Duration) {
	for kind, n := range f.tally {
		if n > 0 && slices.Contains(f.failOn, failures[kind]) {
			f.Worsen(statuses[kind])
		}
	}
	if !f.summary && !shell.IsTerminal(f.Err) {
		return
	}
	lines := f.meter.Lines.Load()
	if f.resume {
		fmt.Fprintf(f.Err, "%d skipped; ", f.skipped.Load())
	}
	fmt.Fprintf(f.Err, "%s: %d allowed, %d refused, %d unknown, %d malformed\n",
		answer.Plural(int(lines), "line"), f.tally[allowed], f.tally[refused], f.tally[unknown], f.tally[malformed])
	fmt.Fprintf(f.Err, "%d robots.txt fetched in %s, %.0f lines/s\n",
		f.gate.Fetches.Load(), took.Round(time.Millisecond), float64(lines)/took.Seconds())
}

const (
	patience = time.Second // for the hosts of a batch
	maxLate  = 32 << 20    // bytes of lines that are put aside; beyond that they are waited for
)

// lateLines are the lines that were put aside.
type lateLines struct {
	again bool // nothing is put aside any longer

	mu    sync.Mutex // guards what follows
	lines []shell.Line
	size  int
}

// add puts a line aside, if there is room and it is not decided meanwhile, and reports whether it did.
func (l *lateLines) add(q *question) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again || l.size > maxLate || !q.taken.CompareAndSwap(false, true) {
		return false
	}
	l.size += len(q.Text)
	l.lines = append(l.lines, shell.Line{Number: q.Number, Text: q.Text})
	q.Listed = answer.Listed{}
	return true
}

// wait waits for the lookups of a batch. With --unordered it puts the lines aside, as long as there is room, whose hosts
// take longer than patience.
func (f *filterer) wait(ctx context.Context, questions []*question) error {
	patient, cancel := ctx, func() {}
	if f.unordered {
		patient, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	for _, q := range questions {
		switch {
		case q.lookup == nil || q.lookup.Within(patient):
		case ctx.Err() == nil && f.late.add(q): // else what is put aside would be missing from the list
		case !q.lookup.Within(ctx):
			return ctx.Err()
		}
	}
	return nil
}

// answerLate answers the lines that were put aside. Their hosts have been asked.
func (f *filterer) answerLate(ctx context.Context) error {
	f.late.again = true
	for batch := range slices.Chunk(f.late.lines, 128) {
		f.turns.Clear() // they are in no order
		close(f.turn(batch[0].Number))
		b, err := f.answer(ctx, batch)
		if err == nil {
			err = f.write(b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
