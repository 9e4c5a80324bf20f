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
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
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

	gate     *site.Gate
	files    *cache.Cache    // of whole answers
	draining context.Context // ends when no more questions are taken; those under way go on

	underway web.Places // questions
	streams  web.Places // a page that is read takes one, too
	turns    leases
	wholes   *semaphore.Weighted // questions that need a file
	lookups  *semaphore.Weighted // for streams
	held     *web.Memory         // for bodies and answers, as long as a client takes
	work     *web.Memory         // see admit

	metrics *metrics
}

// Open makes g the gate of the service, and gives it a Pacer, for turns, and a Trace. g has to be ended after Until.
func (v *Service) Open(g *site.Gate) {
	l := &v.Limits
	v.underway, v.streams = make(web.Places, l.Questions), make(web.Places, l.Streams)
	v.wholes = semaphore.NewWeighted(maxWholes)
	v.lookups = semaphore.NewWeighted(maxLookups)
	v.work, v.held = web.NewMemory(l.Work), web.NewMemory(l.Held)
	v.turns.Time, v.turns.Bounded = v.TurnTime, make(web.Places, l.Turns)
	v.gate = g
	g.Pacer = new(client.Pacer)
	g.Share()
	g.Trace = &client.Trace{Fetched: v.fetched}
	v.metrics = newMetrics(g)
	// Beside the Cache of the gate, where files would leave less room for rules. Who asks for a file wants to see what
	// the site serves, not what is decided by in an outage. A failure holds for a minute at least, too; a site that goes
	// on failing is asked less and less often, as by the gate, and the answer says when.
	v.files = &cache.Cache{
		KeepBody: true, MaxBytes: maxFiles, MinTTL: time.Minute, MaxTTL: time.Minute, Outage: cache.Strict,
	}
}

// fetched counts readings, and has the log say why one failed. It gets each robots.txt that was read: by get,
// and for turns, which the client.Transport fetches for, by the Trace of the gate.
func (v *Service) fetched(ctx context.Context, o fetch.Origin, r *fetch.Result, took time.Duration, err error) {
	v.metrics.Fetched(ctx, o, r, took, err)
	if err == nil && r.Err != nil {
		v.Log.Debug("robots.txt is unreachable", "origin", o, "error", r.Err)
	}
}

// admit waits until there is memory for work that takes n bytes, no longer than Limits.Question: what reads a body
// takes many times its size. It must be released before the client is waited for, or one that stalls would hold it.
// release may be called twice, and is never nil.
func (v *Service) admit(ctx context.Context, n int64) (release func(), err error) {
	waits, cancel := context.WithTimeout(ctx, v.Limits.Question)
	defer cancel()
	n = min(n, v.Limits.Work)
	if v.work.Take(waits, n) != nil { // the client has gone, or it took too long
		return func() {}, cmp.Or(ctx.Err(), error(web.Busy()))
	}
	return sync.OnceFunc(func() { v.work.Release(n) }), nil
}

// answer has write write an answer of any size, gives up what release stands for, and only then sends it: a slow client
// holds the answer, and nothing of the work for it. If write fails, nothing was sent: its error is returned. A rule is
// as long as its site likes, so every answer that quotes one is sent by this.
func (v *Service) answer(
	w http.ResponseWriter, status int, contentType string, release func(), write func(io.Writer) error,
) error {
	defer release()
	b := &web.Buffer{Room: v.held}
	defer b.Release()
	if err := write(b); err != nil {
		return err
	}
	release()
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	to := &web.Paced{ResponseWriter: w, Patience: v.Limits.Answer}
	for piece := range slices.Chunk(b.Bytes, 32<<10) { // each of which has its time
		if _, err := to.Write(piece); err != nil {
			break // the client has gone
		}
	}
	return nil
}

// text reads a body of one of these media types, and gets room for the work that follows, which takes cost bytes for
// each. release gives back both, may be called twice, and is never nil.
func (v *Service) text(
	w http.ResponseWriter, r *http.Request, most, cost int64, types ...string,
) (data []byte, release func(), err error) {
	release = func() {}
	if err := accepts(r, types...); err != nil {
		return nil, release, err
	}
	b := &web.Buffer{Room: v.held}
	if r.ContentLength > most {
		err = &http.MaxBytesError{Limit: most}
	} else {
		_, err = io.Copy(b, http.MaxBytesReader(w, r.Body, most))
	}
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		err = web.NewProblem(http.StatusRequestEntityTooLarge, "size", "the body is larger than %d bytes", most)
	case errors.Is(err, web.ErrFull):
		err = web.Busy()
	case err != nil:
		err = web.BadParameter("body", "the body could not be read: %v", err)
	default:
		release, err = v.admit(r.Context(), cost*int64(len(b.Bytes)))
	}
	if err != nil {
		b.Release()
		return nil, release, err
	}
	done := release
	return b.Bytes, func() { done(); b.Release() }, nil
}

// What strangers send is their choice in number, size and pace, so each of these has a bound. What asks too much at a
// time gets a 429 with a Retry-After, what is too large gets a 413, and what stalls loses the connection.

// The bounds of the service. maxText is twice what crawlers read, since that a file is too long is a finding, too.
// maxBody is for a question of /v1/match: a maxText of control characters, which JSON writes with six bytes each,
// and its URLs. A form of the page has the same bound. maxRest is for clients that send all before they read: they
// would see a broken connection, and not the 413.
const (
	maxText  = 1 << 20 // of a robots.txt
	maxBody  = 6*maxText + 2<<20
	maxRest  = 32 << 20 // of a body that is not read to its end
	maxAgent = 1 << 10  // of a product token, which each answer repeats

	maxMatched = 10_000   // URLs of one question of /v1/match
	maxWholes  = 32       // files that are read, or waited for, at a time
	maxLookups = 1024     // of all streams at a time; each takes 20 KiB while it waits
	maxFiles   = 32 << 20 // of memory for files that were asked for, with what was read from them
)

// The memory that questions may take for each byte of what a stranger sends, as measured with the bodies that take
// most: json.Decoder keeps a string three times, lint 40 bytes for one of a line. They are what admit is asked for. If
// what reads a body takes more memory one day, its factor has to grow, or Limits.Work is no bound.
const (
	costOfJSON  = 5
	costOfParse = 8  // of a robots.txt, for each dialect
	costOfLint  = 32 // of a robots.txt
)

// The bounds of the page. What it shows is for people, who ask about a few URLs; a program has other paths. maxLink
// fits into web.MaxHeader, so that a link which is kept can be asked again.
const (
	maxPageURLs = 50       // a longer list is for POST /v1/decide
	maxPageText = 64 << 10 // bytes of all of them
	maxLink     = 16 << 10 // bytes that a link may have
	maxSitemaps = 20       // that are read
	maxRefusals = 50       // lines that refuse URLs of sitemaps
	lintAtOnce  = 64 << 10 // bytes of a file; to judge a longer one takes longer than to decide
	costOfPage  = 48       // memory for each byte of a file or form: five dialects and lint read it
)

// Limits are the bounds that tests cannot wait for: they set smaller ones. No field has a usual value for
// zero.
//
// What is held while a client is waited for is refused at once with a 429 if there is no more: that may last minutes.
// Memory for work is waited for, since work takes moments.
type Limits struct {
	Questions int   // under way; more get a 429
	Streams   int   // of POST /v1/decide; each holds some MiB
	Work      int64 // bytes of memory to read bodies and files in; more waits
	Held      int64 // bytes of memory for bodies on their way here, and answers on theirs; more get a 429
	Turns     int   // waited for, or not ended yet

	Header   time.Duration // for a request without its body
	Body     time.Duration // for a body that is no stream
	Answer   time.Duration // for a piece of an answer to be taken
	Question time.Duration // for an answer to be found
	Stream   time.Duration // for the next lines of a stream, and for its next answers to be taken
	Idle     time.Duration // for the next request
}

// UsualLimits suit a machine with some hundred MiB to spare. Question is longer than the usual --timeout, so that a
// slow site is reported as what it is, and not as a question that took too long. The other times are for clients: what
// sends or takes nothing for so long has stalled.
func UsualLimits() Limits {
	return Limits{
		Questions: 1024, Streams: 32, Turns: 4096, Work: 64 << 20, Held: 64 << 20,
		Header: 10 * time.Second, Body: 30 * time.Second, Answer: 30 * time.Second,
		Question: 2*time.Minute + 10*time.Second, Stream: 2 * time.Minute, Idle: 2 * time.Minute,
	}
}
