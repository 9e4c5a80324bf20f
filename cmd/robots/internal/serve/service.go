// Package serve is "robots serve": it answers over HTTP what the subcommands answer at a prompt, for programs, for
// gateways, and with a page for people. It knows no subcommand; what they share is in packages answer and site.
//
// service.go has the routes and what each handler goes through; below it, a file for each thing that is asked: decide,
// stream, match, authz, turns, and form with readings and view for the page.
package serve

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
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
// tests.
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
	files    *cache.Cache // of whole answers
	draining context.Context
	underway chan struct{} // one element for each question
	streams  chan struct{}
	work     *web.Memory
	small    *web.Memory // what is small does not wait for what is large
	policies *web.Memory
	spool    *web.Memory
	turns    web.Leases[*client.Turn]
	metrics  *metrics
}

// Open makes g the gate of the service, and gives it a Pacer, for turns, and a Trace. g has to be ended after
// Until.
func (v *Service) Open(g *site.Gate) {
	l := &v.Limits
	v.underway, v.streams = make(chan struct{}, l.Questions), make(chan struct{}, l.Streams)
	// A quarter of the room is for small work, so that one large file never holds up all questions.
	v.work, v.small = web.NewMemory(l.Work-l.Work/4), web.NewMemory(l.Work/4)
	v.policies, v.spool = web.NewMemory(l.Policies), web.NewMemory(l.Spool)
	v.turns.Time, v.turns.Lapsed, v.turns.Bounded = v.TurnTime, (*client.Turn).End, make(chan struct{}, l.Turns)
	v.gate = g
	g.Pacer = new(client.Pacer)
	g.Share()
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

// Until serves on l until ctx ends, and lets what is under way end, within the time of drain.
func (v *Service) Until(ctx context.Context, l net.Listener, drain time.Duration) error {
	// The base context is not ctx: what is under way goes on when that ends.
	draining, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	// Its time-outs are for what sets no deadline itself: problems, send, web.Paced and web.Duplex do.
	server := &http.Server{
		Handler:           v.Handler(draining),
		ReadHeaderTimeout: v.Limits.Header,
		WriteTimeout:      v.Limits.Question + 2*v.Limits.Answer,
		IdleTimeout:       v.Limits.Idle,
		MaxHeaderBytes:    web.MaxHeader,
		ErrorLog:          slog.NewLogLogger(v.Log.Handler(), slog.LevelDebug),
	}
	defer v.turns.Close()
	return web.Until(ctx, v.Log, server, l, drain, stop)
}

// handler is one whose error is answered with a problem document.
type handler func(http.ResponseWriter, *http.Request) error

// Handler is the whole service. When draining ends, it takes no more questions. What gateways ask about may
// be in the path, which a mux would clean up, so /authz is taken out before. All else goes through own.
func (v *Service) Handler(draining context.Context) http.Handler {
	v.draining = draining
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(w, r, allowed(mux, r)) })
	web.Health(draining, mux, "service", v.gate.Ping)
	mux.Handle("GET /v1/decide", v.question(ownOrigin(v.decide)))
	mux.Handle("POST /v1/decide", v.question(v.stream))
	mux.Handle("GET /v1/robots", v.question(ownOrigin(v.robots)))
	mux.Handle("POST /v1/match", v.upload(v.match))
	mux.Handle("POST /v1/lint", v.upload(v.lint))
	mux.Handle("POST /v1/turns", v.problems(v.turn)) // bounded apart: who waits for a turn blocks no question
	mux.Handle("POST /v1/turns/{id}", v.problems(v.endTurn))
	mux.Handle("DELETE /v1/turns/{id}", v.problems(v.endTurn))
	mux.Handle("GET /v1/openapi.json", v.problems(v.describe))
	mux.Handle("GET /metrics", v.metrics)
	v.pages(mux)
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { otherOrigin().Write(w) }))
	own, authz := cross.Handler(mux), v.question(v.authorize)
	return v.metrics.count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Body != http.NoBody { // what is left of it is read at the end, and must not stall either
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(v.Limits.Body))
		}
		if isAuthz(r) {
			authz.ServeHTTP(w, r)
		} else {
			v.own(own, w, r)
		}
		if r.Body != http.NoBody { // but not behind a stream that broke off
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(v.Limits.Body))
		}
	}))
}

// own answers what is not for gateways: the Host field and the token are looked at first, in this order,
// since a page that has been rebound to this address could ask for anything. Probes have no token to bring.
func (v *Service) own(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if p := v.Guard.CheckHost(r); p != nil {
		p.Write(w)
		return
	}
	if probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"; !probe {
		if p := v.Guard.CheckToken(w, r); p != nil {
			p.Write(w)
			return
		}
	}
	next.ServeHTTP(w, r)
}

// question makes a handler of one that asks. Those under way are bounded by Limits.Questions: one more is
// told to come back, and does not wait.
func (v *Service) question(h handler) http.Handler {
	return v.upload(func(w http.ResponseWriter, r *http.Request) error {
		select {
		case v.underway <- struct{}{}:
			defer func() { <-v.underway }()
			return h(w, r)
		default:
			return web.Busy()
		}
	})
}

// ownOrigin is h for a GET, which no page of another origin may ask either: an image of it would have
// the service work.
func ownOrigin(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if crossSite(r) {
			return otherOrigin()
		}
		return h(w, r)
	}
}

func otherOrigin() *web.Problem {
	return web.NewProblem(http.StatusForbidden, "origin", "a page of another origin may not ask this")
}

// upload makes a handler of one that reads a body, and refuses when the service ends. Slow clients must not
// take the places of questions that need none: what bounds them is the room for spools.
func (v *Service) upload(h handler) http.Handler {
	return v.problems(func(w http.ResponseWriter, r *http.Request) error {
		if v.draining.Err() != nil {
			return web.Unavailable("the service is ending")
		}
		return h(w, r)
	})
}

// problems makes an http.Handler of h. An h that has begun to answer must not return an error: it panics with
// http.ErrAbortHandler, or says nothing.
func (v *Service) problems(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Each thing that h waits for has a bound, but all of them may take longer than the server's WriteTimeout,
		// which over HTTP/2 ends a stream that has no answer yet.
		control := http.NewResponseController(w)
		control.SetWriteDeadline(time.Now().Add(longest))
		err := h(w, r)
		control.SetWriteDeadline(time.Now().Add(v.Limits.Answer)) // what is not sent yet is small
		if err != nil {
			problemOf(err).Write(w)
		}
	})
}

// longest is more than all that a question may wait for.
const longest = time.Hour

// admit waits until there is memory for work that takes n bytes, no longer than Limits.Question. It must be
// released before the client is waited for, or one that stalls would hold it. release may be called twice.
func (v *Service) admit(ctx context.Context, n int64) (release func(), err error) {
	waits, cancel := context.WithTimeout(ctx, v.Limits.Question)
	defer cancel()
	from := v.work
	if n <= smallWork {
		from = v.small
	}
	if release, err = from.Take(waits, n); err != nil {
		return nil, cmp.Or(ctx.Err(), error(web.Busy()))
	}
	return release, nil
}

// send answers with what a subcommand would have written. It is for small answers, which lie in memory while
// the client takes them; answer is for the others.
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
	release()
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if from, err := spool.Reader(0); err == nil {
		io.Copy(&web.Paced{Writer: w, Patience: v.Limits.Answer}, from) // an error says that the client has gone
	}
	return nil
}

// body reads a body of one of these media types into a spool, which has to be closed. Of a body that is too
// large, the rest is read up to maxRest and dropped.
func (v *Service) body(w http.ResponseWriter, r *http.Request, most int64, types ...string) (*web.Spool, error) {
	if err := accepts(r, types...); err != nil {
		return nil, err
	}
	spool, err := web.NewSpool(v.spool)
	if err == nil {
		_, err = io.Copy(spool, http.MaxBytesReader(w, r.Body, most))
	}
	if err == nil {
		return spool, nil
	}
	spool.Close()
	_, large := errors.AsType[*http.MaxBytesError](err)
	if large || errors.Is(err, web.ErrFull) {
		io.CopyN(io.Discard, r.Body, maxRest) // a client that is cut off while it sends sees no answer
	}
	switch {
	case large:
		return nil, web.NewProblem(http.StatusRequestEntityTooLarge, "size", "the body is larger than %d bytes", most)
	case errors.Is(err, web.ErrFull):
		return nil, web.Busy()
	}
	return nil, web.BadParameter("body", "the body could not be read: %v", err)
}

// notFound tells apart a path that is not there and one that takes other methods, which a mux with a handler
// for "/" does not.
func notFound(w http.ResponseWriter, r *http.Request, allowed []string) {
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		web.NewProblem(http.StatusMethodNotAllowed, "method", "%s takes no %s", answer.Brief(r.URL.Path), answer.Brief(r.Method)).Write(w)
		return
	}
	web.NewProblem(http.StatusNotFound, "path", "there is no %s %s: robots serve --help lists what there is",
		answer.Brief(r.Method), answer.Brief(r.URL.Path)).Write(w)
}

// allowed are the methods that the path of r has a handler for.
func allowed(mux *http.ServeMux, r *http.Request) (methods []string) {
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		// The mux is asked as if r had this method.
		other := *r
		other.Method = m
		if _, pattern := mux.Handler(&other); pattern != "/" {
			methods = append(methods, m)
		}
	}
	return methods
}
