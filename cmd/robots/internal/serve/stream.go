package serve

// POST /v1/decide: a shell.LineFilter between the body of a request and its answer, both under way at once.
// Unlike filter, it has origins asked as soon as their lines are read, without a Turn, and sends what is
// answered before it waits.

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/policy"
)

// stream answers POST /v1/decide with what "robots filter --json" writes, for refused lines too, in the order
// of the lines. Once it has begun, no status can tell of a failure: it ends the connection, which clients
// notice. It may go on for hours, so a stream takes a place of its own kind as well.
func (v *Service) stream(w http.ResponseWriter, r *http.Request, query url.Values) error {
	if err := accepts(r, mediaNDJSON, "application/jsonl", "application/json", "text/plain", ""); err != nil {
		return err
	}
	k, err := single(v.Asker, query.Get("agent"), query.Get("as"), "as=all is for single questions")
	if err != nil {
		return err
	}
	if !v.streams.Take() {
		return web.Busy()
	}
	defer v.streams.Free()
	w.Header().Set("Content-Type", mediaNDJSON)
	// When the service ends, so does the body, as a failure: what was read before is answered, and then the
	// stream breaks off.
	ends, end := context.WithCancel(v.draining)
	defer end()
	d := &web.Duplex{Request: r, Writer: w, Patience: v.Limits.Stream, Ends: ends}
	defer d.Start()() // before end: the connection goes on to the next request
	s := &decider{Service: v, usual: k, writer: d}
	lines := shell.LineFilter[[]*streamed]{MaxLine: answer.MaxURL, Ahead: maxAhead,
		Answer: s.questions, Write: s.answer, Idle: s.flush, Interrupt: end}
	// net/http ends the context of a request whose body breaks off, as it does at the end of the
	// service; what was read is answered all the same.
	if err := errors.Join(lines.Run(context.WithoutCancel(r.Context()), d), s.flush()); err != nil {
		v.Log.Debug("a stream broke off", "error", err)
		panic(http.ErrAbortHandler) // what was answered must not pass for all
	}
	return nil
}

// maxAhead is how many batches of lines are read before the first is answered, for their origins to
// be looked up at the same time. filter reads further ahead, but is alone: here each of Limits.Streams holds as much.
const maxAhead = 8

// decider answers a stream. questions is called by several goroutines at once, and reads usual only. answer
// and flush, which have the other fields to themselves, are called by one.
type decider struct {
	*Service
	usual  answer.Asker // of lines that name no agent and no dialect
	writer io.Writer
	out    shell.Output
}

// streamed is a line. It is answered as soon as its robots.txt is known, and holds the answer: a thousand robots.txt may
// take gigabytes.
type streamed struct {
	answer.Listed
	as   *answer.Asker
	done chan struct{} // closed once out, err or Err is set
	out  shell.Output
	err  error // the service has ended
}

func (s *decider) questions(ctx context.Context, lines []shell.Line) ([]*streamed, error) {
	all := make([]*streamed, 0, len(lines))
	for _, l := range lines {
		if l.Text = strings.TrimSpace(l.Text); l.Text != "" {
			q, err := s.question(ctx, l)
			if err != nil {
				return nil, err
			}
			all = append(all, q)
		}
	}
	return all, nil
}

// question reads a line, and has its origin looked up if that is not known.
func (s *decider) question(ctx context.Context, l shell.Line) (*streamed, error) {
	q := &streamed{Listed: answer.ReadListed(policy.RFC9309, l.Number, l.Text), as: &s.usual, done: make(chan struct{})}
	if q.IsObject() {
		q.own()
	}
	// What is known costs no goroutine. Of what is not, the Cache has one fetch, however many lines ask.
	if q.Err == nil {
		q.Result, _, _ = s.gate.Cache.Get(ctx, q.Origin, s.known(q.as.Dialect))
	}
	if q.Err != nil || q.Result != nil {
		close(q.done)
		if q.Err == nil { // or the line is all there is, and its answer may be six times as long
			s.say(q)
		}
		return q, nil
	}
	if err := s.lookups.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	go func() {
		defer s.lookups.Release(1)
		defer close(q.done)
		if q.Result, _, q.err = s.get(ctx, s.gate.Cache, q.Origin, q.as.Dialect); q.err == nil {
			s.say(q)
		}
	}()
	return q, nil
}

// say puts what q is answered by into its out, and gives up what it rests on.
func (s *decider) say(q *streamed) {
	verdict := q.as.Verdict(&q.Listed, q.as.Decide(&q.Listed))
	verdict.Cut()
	s.metrics.decisions.WithLabelValues(verdict.Outcome()).Inc()
	q.out.Verdict(&verdict)
	q.Listed = answer.Listed{}
}

// own asks as the agent and in the dialect that an object names, if it names any.
func (q *streamed) own() {
	// Neither name can be there, which spares most objects a second decoding.
	if !strings.Contains(q.Text, `"a`) && !strings.Contains(q.Text, `\u`) { // the object is well-formed
		return
	}
	var by struct {
		Agent string `json:"agent"`
		As    string `json:"as"`
	}
	own, err := *q.as, answer.ReadObject([]byte(q.Text), &by, answer.Lenient)
	if err == nil {
		own, err = single(own, by.Agent, by.As, "as is all, and a line has one answer")
	}
	if err != nil {
		q.Err = cmp.Or(q.Err, err)
	} else {
		q.as = &own
	}
}

// answer writes the answers to a batch. If one has to be waited for, what is known goes out first: a client may send its
// next line only when it has that.
func (s *decider) answer(questions []*streamed) error {
	for _, q := range questions {
		select {
		case <-q.done:
		default:
			if err := s.flush(); err != nil {
				return err
			}
			<-q.done
		}
		if q.err != nil {
			return q.err
		}
		if q.out.Len() == 0 {
			s.say(q)
		}
		s.out.Write(q.out.Bytes())
		if s.out.Len() < shell.BatchBytes {
			continue
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what is answered. If there is nothing, nothing is sent, not even the header.
func (s *decider) flush() error {
	_, err := s.out.WriteTo(s.writer)
	s.out.Reset() // after an error there is no use in trying again
	return err
}
