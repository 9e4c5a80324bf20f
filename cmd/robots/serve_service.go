package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// The bounds of the service.
const (
	maxFetches = 512      // each may hold a file of 500 KiB
	maxAnswers = 2048     // kept in a form to be written; each is some hundred bytes
	maxHeader  = 64 << 10 // a URL of 16 KiB with every byte escaped, and other fields
	maxText    = 1 << 20  // of a robots.txt, twice what crawlers read
	maxBody    = 6*maxText + 2<<20
	maxRest    = 32 << 20 // of a body that is not read to its end
	maxAgent   = 1 << 10  // of a product token, which each answer repeats
)

// The memory that questions may take for each byte of what a stranger sends, as measured with the
// bodies that take most: json.Decoder keeps a string three times, lint 40 bytes for one of a line.
const (
	costOfJSON  = 5
	costOfParse = 8        // of a robots.txt, for each dialect
	costOfLint  = 32       // of a robots.txt
	smallPolicy = 16 << 10 // is not admitted
	smallWork   = 1 << 20
)

// limits are the bounds that tests cannot wait for.
type limits struct {
	questions int   // under way; more get a 429
	streams   int   // of POST /v1/decide; each holds some MiB
	work      int64 // bytes of memory to read bodies and files in; more waits
	policies  int64 // bytes of memory for large files that answers are given by; more get a 429
	spool     int64 // bytes on disk for bodies on their way here, and answers on theirs; more get a 429
	turns     int   // waited for, or not ended yet

	header   time.Duration // for a request without its body
	body     time.Duration // for a body that is no stream
	answer   time.Duration // for a piece of an answer to be taken
	question time.Duration // for an answer to be found
	stream   time.Duration // for the next lines of a stream, and for its next answers to be taken
	idle     time.Duration // for the next request
}

var usualLimits = limits{
	questions: 1024, streams: 32, turns: 4096, work: 64 << 20, policies: 32 << 20, spool: 512 << 20,
	header: 10 * time.Second, body: 30 * time.Second, answer: 30 * time.Second,
	question: 2*time.Minute + 10*time.Second, stream: 2 * time.Minute, idle: 2 * time.Minute,
}

// service answers requests.
type service struct {
	*server
	gate     *site.Gate
	whole    *site.Gate // of files
	files    *site.Files
	outputs  sync.Pool // of *output, for single answers
	guard    web.Guard
	trusted  web.Gateways
	gateways bool // /authz may be asked under any Host
	log      *slog.Logger
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

// handler is one whose error is answered with a problem document.
type handler func(http.ResponseWriter, *http.Request) error

// handler is the whole service. What gateways ask about may be in the path, which a mux would
// clean up.
func (v *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { notFound(w, r, allowed(mux, r)) })
	mux.HandleFunc("GET /healthz", v.healthy)
	mux.HandleFunc("GET /readyz", v.ready)
	mux.Handle("GET /v1/decide", v.question(ownOrigin(v.decide)))
	mux.Handle("POST /v1/decide", v.question(v.stream))
	mux.Handle("GET /v1/robots", v.question(ownOrigin(v.robots)))
	mux.Handle("POST /v1/match", v.upload(v.match))
	mux.Handle("POST /v1/lint", v.upload(v.lint))
	mux.Handle("POST /v1/turns", problems(v.turn)) // has a bound of its own: those who wait stand in no way
	mux.Handle("POST /v1/turns/{id}", problems(v.endTurn))
	mux.Handle("DELETE /v1/turns/{id}", problems(v.endTurn))
	mux.Handle("GET /v1/openapi.json", problems(v.describe))
	mux.Handle("GET /metrics", v.metrics)
	v.pages(mux)
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { otherOrigin().Write(w) }))
	own, authz := cross.Handler(mux), v.question(v.authorize)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Body != http.NoBody { // what is left of it is read at the end, and must not stall either
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(v.limits.body))
		}
		if isAuthz(r) {
			authz.ServeHTTP(w, r)
		} else {
			v.own(own, w, r)
		}
		if r.Body != http.NoBody { // but not behind a stream that broke off
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(v.limits.body))
		}
	})
}

// own is what is not for gateways.
func (v *service) own(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if p := v.guard.CheckHost(r); p != nil {
		p.Write(w)
		return
	}
	probe := r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
	if !probe {
		if p := v.checkToken(w, r); p != nil {
			p.Write(w)
			return
		}
	}
	next.ServeHTTP(w, r)
}

// checkToken is that of the guard, with the field that a 401 must have (RFC 9110 §15.5.2).
func (v *service) checkToken(w http.ResponseWriter, r *http.Request) *web.Problem {
	p := v.guard.CheckToken(r)
	if p != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	return p
}

// question makes a handler of one that asks. Those under way are bounded.
func (v *service) question(h handler) http.Handler {
	return v.upload(func(w http.ResponseWriter, r *http.Request) error {
		select {
		case v.underway <- struct{}{}:
			defer func() { <-v.underway }()
			return h(w, r)
		default:
			return busy()
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

// upload makes a handler of one that reads a body. Slow clients must not take the places of
// questions that need none: what bounds them is the room for spools.
func (v *service) upload(h handler) http.Handler {
	return problems(func(w http.ResponseWriter, r *http.Request) error {
		if v.draining.Err() != nil {
			return unavailable("the service is ending")
		}
		return h(w, r)
	})
}

// problems makes an http.Handler of h.
func problems(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			problemOf(err).Write(w)
		}
	})
}

// admit waits until there is memory for work that takes n bytes. It must be released before the
// client is waited for.
func (v *service) admit(ctx context.Context, n int64) (release func(), err error) {
	waits, cancel := context.WithTimeout(ctx, v.limits.question)
	defer cancel()
	from := v.work
	if n <= smallWork {
		from = v.small
	}
	if release, err = from.Take(waits, n); err != nil {
		return nil, cmp.Or(ctx.Err(), error(busy()))
	}
	return release, nil
}

func busy() *web.Problem {
	p := web.NewProblem(http.StatusTooManyRequests, "busy", "too many questions are under way")
	p.RetryAfter = time.Second
	return p
}

func unavailable(why string) *web.Problem {
	p := web.NewProblem(http.StatusServiceUnavailable, "unavailable", "%s", why)
	p.RetryAfter = time.Second
	return p
}

// problemOf is the problem that an error is. What is none is of the moment: the lookup was
// given up, or the cache is closed.
func problemOf(err error) *web.Problem {
	if p, ok := errors.AsType[*web.Problem](err); ok {
		return p
	}
	if errors.Is(err, web.ErrFull) {
		return busy()
	}
	return unavailable(err.Error())
}

// send answers with what a subcommand would have written.
func (v *service) send(w http.ResponseWriter, contentType string, body []byte) error {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(v.limits.answer))
	w.Header().Set("Content-Type", contentType)
	w.Write(body) // an error says that the client has gone
	return nil
}

// answer has write write an answer of any size, gives up what release stands for, and sends it.
func (v *service) answer(
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
	spool.Send(w, v.limits.answer) // an error says that the client has gone
	return nil
}

// body reads a body of one of these media types into a spool, which has to be closed.
func (v *service) body(w http.ResponseWriter, r *http.Request, most int64, types ...string) (*web.Spool, error) {
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
		return nil, busy()
	}
	return nil, web.BadParameter("body", "the body could not be read: %v", err)
}

// readAll is what has been spooled.
func readAll(spool *web.Spool) ([]byte, error) {
	from, err := spool.Reader(0)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(from)
}

// accepts returns the problem of a body that is of none of these media types, or coded.
func accepts(r *http.Request, types ...string) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return web.NewProblem(http.StatusUnsupportedMediaType, "media-type",
			"the Content-Encoding is %s: send the body as it is", answer.Quoted(coding))
	}
	is, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	for _, t := range types {
		if strings.EqualFold(strings.TrimSpace(is), t) {
			return nil
		}
	}
	return web.NewProblem(http.StatusUnsupportedMediaType, "media-type", "the Content-Type is %s, not %s",
		answer.Quoted(is), strings.Join(slices.DeleteFunc(types, func(t string) bool { return t == "" }), " or "))
}

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
		other := *r
		other.Method = m
		if _, pattern := mux.Handler(&other); pattern != "/" {
			methods = append(methods, m)
		}
	}
	return methods
}

func (v *service) healthy(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

func (v *service) ready(w http.ResponseWriter, r *http.Request) {
	if v.draining.Err() != nil {
		unavailable("the service is ending").Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := v.gate.Ping(ctx); err != nil {
		unavailable("the store of turns is away").Write(w)
		return
	}
	io.WriteString(w, "ok\n")
}
