// Package serve is "robots serve": it answers over HTTP what the subcommands answer at a prompt, for programs, for
// gateways, and with a page for people. It knows no subcommand; what they share is in packages answer and site.
//
// routes.go stands on top: which path has which handler, and what a request goes through before. At the bottom is
// service.go, what handlers share: room, bodies and answers. Between them, a file for each thing that is asked: decide,
// stream, match, authz, turns, and form with readings and view for the page.
package serve

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Service answers requests. Its exported fields must not change after Open. Until serves, or Handler in
// tests. It is one type, since all that it bounds is bounded for all questions together.
type Service struct {
	answer.Asker // of questions that name no agent and no dialect
	Limits       Limits
	Log          *slog.Logger
	Guard        web.Guard
	Trusted      web.Gateways
	Gateways     bool          // /authz may be asked under any Host
	Private      bool          // sites in private networks are asked too
	TurnTime     time.Duration // for a turn to end, or it gives its place back

	// gate decides, and its Fetcher reads in the dialect of the Asker. general reads by RFC 9309, from which
	// fetch.Result.In reads the other dialects: what goes to files, and for questions that name another one.
	gate     *site.Gate
	general  *fetch.Fetcher
	files    *cache.Cache    // of whole answers
	draining context.Context // ends when no more questions are taken; those under way go on

	// What is held while a client is waited for, which may be long: a place, disk, and the policy of a match.
	underway web.Places // of questions
	streams  web.Places // a page that is read for its parts takes one, too
	policies *web.Memory
	spool    *web.Memory
	turns    leases

	// What must be given back before: see admit.
	work  *web.Memory
	small *web.Memory // what is small does not wait for what is large

	metrics *metrics
}

// Open makes g the gate of the service, and gives it a Pacer, for turns, and a Trace. g has to be ended after
// Until.
func (v *Service) Open(g *site.Gate) {
	l := &v.Limits
	v.underway, v.streams = make(web.Places, l.Questions), make(web.Places, l.Streams)
	// A quarter of the room is for small work, so that one large file never holds up all questions.
	v.work, v.small = web.NewMemory(l.Work-l.Work/4), web.NewMemory(l.Work/4)
	v.policies, v.spool = web.NewMemory(l.Policies), web.NewMemory(l.Spool)
	v.turns = leases{Time: v.TurnTime, Bounded: make(web.Places, l.Turns), held: map[string]lease{}}
	v.gate = g
	g.Pacer = new(client.Pacer)
	g.Share() // before newMetrics, which wraps the store that Share looks for
	g.Trace = &client.Trace{Fetched: v.fetched}
	m := newMetrics(g)
	m.Gauge("robots_work_bytes", "Memory admitted for bodies, files and answers.",
		func() int64 { return v.work.Held() + v.small.Held() + v.policies.Held() })
	m.Gauge("robots_spool_bytes", "Room taken on disk by bodies and answers of slow clients.", v.spool.Held)
	m.Gauge("robots_streams_underway", "Streams of POST /v1/decide.", func() int64 { return int64(len(v.streams)) })
	v.metrics = m
	v.general = g.FetcherFor(policy.RFC9309)
	// Beside the Cache of the gate, where files would leave less room for rules. Who asks for a file wants to
	// see what the site serves, not what is decided by in an outage. With its spread, a failure holds for a
	// minute at least; a site that goes on failing is asked less and less often, as by the gate, and the
	// answer says when.
	v.files = &cache.Cache{
		KeepBody: true, MaxBytes: maxFiles, MaxTTL: time.Minute, MinRetry: 75 * time.Second, Outage: cache.Strict,
	}
}

// fetched counts readings, and has the log say why one failed. It is told of each robots.txt that was read: by get,
// and for turns, which the client.Transport fetches for, by the Trace of the gate.
func (v *Service) fetched(_ context.Context, f client.FetchedInfo) {
	v.metrics.Fetched(f)
	if f.Err == nil && f.Result.Err != nil {
		v.Log.Debug("robots.txt is unreachable", "origin", f.Origin, "error", f.Result.Err)
	}
}

// admit waits until there is memory for work that takes n bytes, no longer than Limits.Question. Without it, 32
// bodies of 8 MiB took 5.6 GB, since what reads them takes many times their size. What is admitted must be
// released before the client is waited for, or one that stalls would hold it. release may be called twice, and
// is never nil.
func (v *Service) admit(ctx context.Context, n int64) (release func(), err error) {
	waits, cancel := context.WithTimeout(ctx, v.Limits.Question)
	defer cancel()
	from := v.work
	if n <= smallWork { // nothing large ever has this room
		from = v.small
	}
	if release, err = from.Take(waits, n); err != nil { // the client has gone, or it took too long
		return func() {}, cmp.Or(ctx.Err(), error(web.Busy()))
	}
	return release, nil
}

// send answers with what a subcommand would have written. It is for small answers, which lie in memory while
// the client takes them; answer is for the others. The deadline is that of the client from here on: until now it was
// longest, see problems.
func (v *Service) send(w http.ResponseWriter, contentType string, body []byte) error {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(v.Limits.Answer))
	w.Header().Set("Content-Type", contentType)
	w.Write(body) // an error says that the client has gone
	return nil
}

// answer has write write an answer of any size into a spool, gives up what release stands for, and only then
// sends it: so a slow client holds room on disk and no memory. If write fails, nothing was sent, and the
// error is told.
func (v *Service) answer(
	w http.ResponseWriter, status int, contentType string, release func(), write func(io.Writer) error,
) error {
	defer release()
	spool, err := web.NewSpool(v.spool)
	if err != nil {
		return err
	}
	defer spool.Close()
	if err := write(spool); err != nil {
		return err
	}
	release() // all that follows is at the pace of the client
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if from, err := spool.Reader(0); err == nil {
		io.Copy(&web.Paced{ResponseWriter: w, Patience: v.Limits.Answer}, from) // an error says that the client has gone
	}
	return nil
}

// body reads a body of one of these media types into a spool, which has to be closed: a client may send slowly, and
// what it has sent takes no memory meanwhile.
func (v *Service) body(w http.ResponseWriter, r *http.Request, most int64, types ...string) (*web.Spool, error) {
	if err := accepts(r, types...); err != nil {
		return nil, err
	}
	spool, err := web.NewSpool(v.spool)
	if err == nil && r.ContentLength > most {
		err = &http.MaxBytesError{Limit: most}
	} else if err == nil {
		_, err = io.Copy(spool, http.MaxBytesReader(w, r.Body, most))
	}
	if err == nil {
		return spool, nil
	}
	spool.Close()
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		return nil, web.NewProblem(http.StatusRequestEntityTooLarge, "size", "the body is larger than %d bytes", most)
	case errors.Is(err, web.ErrFull):
		return nil, web.Busy()
	}
	return nil, web.BadParameter("body", "the body could not be read: %v", err)
}

// text is body for what is read into memory, and waits for room: the work that follows takes cost bytes for
// each. With an error there is nothing to release.
func (v *Service) text(
	w http.ResponseWriter, r *http.Request, most, cost int64, types ...string,
) (data []byte, release func(), err error) {
	spool, err := v.body(w, r, most, types...)
	if err != nil {
		return nil, func() {}, err
	}
	defer spool.Close()
	if release, err = v.admit(r.Context(), cost*spool.Size()); err != nil {
		return nil, release, err
	}
	from, err := spool.Reader(0)
	if err == nil {
		data, err = io.ReadAll(from)
	}
	if err != nil {
		release()
	}
	return data, release, err
}
