package serve

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// stream answers POST /v1/decide with what "robots filter --json" writes, for refused lines
// too, in the order of the lines.
func (v *Service) stream(w http.ResponseWriter, r *http.Request) error {
	query, err := parameters(r, "agent", "as")
	if err != nil {
		return err
	}
	if err := accepts(r, mediaNDJSON, "application/jsonl", "application/json", "text/plain", ""); err != nil {
		return err
	}
	k, err := v.asker(query.Get("agent"), query.Get("as"))
	if err != nil {
		return err
	}
	if k.All {
		return web.BadParameter("as", "as=all is for single questions")
	}
	select {
	case v.streams <- struct{}{}:
		defer func() { <-v.streams }()
	default:
		return web.Busy()
	}
	w.Header().Set("Content-Type", mediaNDJSON)
	ends, end := context.WithCancel(v.draining)
	defer end()
	d := &web.Duplex{Request: r, Writer: w, Patience: v.Limits.Stream, Ends: ends}
	defer d.Start()() // before end: the connection goes on to the next request
	s := &decider{Service: v, usual: k, writer: d, end: end, tally: map[string]int{}}
	// net/http ends the context of a request whose body breaks off, as it does at the end of the
	// service; what was read is answered all the same.
	if err := s.run(context.WithoutCancel(r.Context()), d); err != nil {
		v.Log.Debug("a stream broke off", "error", err)
		panic(http.ErrAbortHandler) // what was answered must not pass for all
	}
	return nil
}

// decider answers a stream.
type decider struct {
	*Service
	usual  answer.Asker // of lines that name no agent and no dialect
	writer io.Writer
	end    context.CancelFunc // of reading
	out    shell.Output
	tally  map[string]int // what is in out, by outcome
}

// streamed is a line of a stream on its way to an answer.
type streamed struct {
	answer.Listed
	as     *answer.Asker
	lookup *site.Lookup // of what is not known
}

// A chunk of a stream is at most BatchLines and BatchBytes long. So many of them are read
// before the first is answered, for their origins to be looked up at the same time.
const maxChunks = 8

// chunk is a piece of a stream. err ended reading; it is nil at the end of the body.
type chunk struct {
	lines []streamed
	last  bool
	err   error
}

// run answers the lines of in. One goroutine reads and has origins looked up, this one decides
// and writes.
func (s *decider) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	chunks := make(chan chunk, maxChunks)
	go s.read(ctx, in, chunks)
	err := s.answer(ctx, chunks)
	cancel()
	if err != nil {
		s.end()
	}
	for range chunks { // the body must not be read once the handler has returned
	}
	return err
}

// answer answers chunks up to the last one.
func (s *decider) answer(ctx context.Context, chunks <-chan chunk) error {
	for c := range chunks {
		for i := range c.lines {
			if err := s.decide(ctx, &c.lines[i]); err != nil {
				return err
			}
		}
		if s.out.Len() >= shell.BatchBytes || len(chunks) == 0 {
			if err := s.flush(); err != nil {
				return err
			}
		}
		if c.last {
			return c.err
		}
	}
	return ctx.Err()
}

// read puts the lines of in on chunks, the last one with the error that ended reading.
func (s *decider) read(ctx context.Context, in io.Reader, chunks chan<- chunk) {
	defer close(chunks)
	lines, number := bufio.NewReaderSize(in, shell.BatchBytes), 0
	f := shell.LineFilter[any]{MaxLine: answer.MaxURL}
	for {
		var b shell.Batch[any]
		err := f.Fill(&b, lines, number+1)
		number += len(b.Lines)
		c := chunk{last: err != nil, err: err, lines: make([]streamed, 0, len(b.Lines))}
		if err == io.EOF {
			c.err = nil
		}
		for _, l := range b.Lines {
			if l.Text = strings.TrimSpace(l.Text); l.Text != "" {
				c.lines = append(c.lines, s.question(ctx, l))
			}
		}
		select {
		case chunks <- c:
		case <-ctx.Done():
			return
		}
		if c.last {
			return
		}
	}
}

// question reads a line, and has its origin looked up if that is not known.
func (s *decider) question(ctx context.Context, l shell.Line) streamed {
	q := streamed{Listed: answer.ReadListed(policy.RFC9309, l.Number, l.Text, l.TooLong), as: &s.usual}
	if q.URL != nil && q.IsObject() {
		q.own()
	}
	if q.Err != nil {
		return q
	}
	o, dialect := q.Origin, q.as.Dialect
	if q.Result, _ = s.lookup(site.Ended, o, dialect); q.Result == nil {
		k := &site.Lookup{Done: make(chan struct{})}
		q.lookup = k
		go func() {
			defer close(k.Done)
			if k.Result, _ = s.lookup(ctx, o, dialect); k.Result == nil {
				k.Result = &fetch.Result{Policy: policy.Unreachable(), Err: errEnded}
			}
		}()
	}
	return q
}

// own asks as the agent and in the dialect that an object names.
func (q *streamed) own() {
	if !strings.Contains(q.Text, `"a`) && !strings.Contains(q.Text, `\u`) { // the object is well-formed
		return
	}
	var agent, as string
	err, own := answer.Fields(q.Text, map[string]any{"agent": &agent, "as": &as}), *q.as
	if err == nil && agent != "" {
		err = own.SetAgent(agent)
	}
	if err == nil && as != "" {
		own.Dialect, err = answer.DialectByName(as)
	}
	if err != nil {
		q.Err = err
	} else if agent != "" || as != "" {
		q.as = &own
	}
}

// decide writes the answer to a line. If it has to be waited for, what is known goes out first.
func (s *decider) decide(ctx context.Context, q *streamed) error {
	if q.lookup != nil {
		select {
		case <-q.lookup.Done:
		default:
			if err := s.flush(); err != nil {
				return err
			}
		}
		select {
		case <-q.lookup.Done:
			q.Result = q.lookup.Result
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	verdict := q.as.Verdict(&q.Listed, q.as.Decide(&q.Listed))
	s.tally[verdict.Outcome()]++
	s.out.Verdict(&verdict)
	return nil
}

// flush sends what is answered.
func (s *decider) flush() error {
	if s.out.Len() == 0 {
		return nil
	}
	for outcome, n := range s.tally {
		s.metrics.decisions.WithLabelValues(outcome).Add(float64(n))
	}
	clear(s.tally)
	_, err := s.writer.Write(s.out.Bytes())
	s.out.Reset()
	return err
}
