package serve

// The way in: which path has which handler, and what a request goes through before it gets there. Only this file
// knows all handlers, and no handler knows this file.

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/page"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// Until serves on l until ctx ends, and lets what is under way end, within the time of drain. Turns that clients still
// hold are ended then: over Redis, other services wait for them.
func (v *Service) Until(ctx context.Context, l net.Listener, drain time.Duration) error {
	// The base context is not ctx: what is under way goes on when that ends.
	draining, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	// Its time-outs are for what sets no deadline itself: problems, web.Paced and web.Duplex do.
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

// handler is one whose error is answered with a problem document (RFC 9457). Handlers say what is wrong, and problems
// how that is written: so no path answers an error in a way of its own.
type handler func(http.ResponseWriter, *http.Request) error

// Handler is the whole service. When draining ends, it takes no more questions. What gateways ask about may
// be in the path, which a mux would clean up, so /authz is taken out before.
func (v *Service) Handler(draining context.Context) http.Handler {
	v.draining = draining
	mux := http.NewServeMux()
	// Each path with what bounds it, from the outside in. The query is read last: a question that finds no place
	// need not be understood.
	web.Health(draining, mux, "service", v.gate.Ping)
	mux.Handle("GET /v1/decide", v.question(ownOrigin(query(v.decide, "url", "agent", "as"))))
	mux.Handle("POST /v1/decide", v.question(query(v.stream, "agent", "as")))
	mux.Handle("GET /v1/robots", v.question(ownOrigin(query(v.robots, "origin", "as"))))
	mux.Handle("POST /v1/match", v.upload(query(v.match)))
	mux.Handle("POST /v1/lint", v.upload(query(v.lint, "format")))
	mux.Handle("POST /v1/turns", v.problems(query(v.turn))) // bounded apart: a wait for a turn blocks no question
	mux.Handle("POST /v1/turns/{id}", v.problems(query(v.endTurn)))
	mux.Handle("DELETE /v1/turns/{id}", v.problems(query(v.endTurn)))
	mux.HandleFunc("GET /v1/openapi.json", describe)
	mux.Handle("GET /metrics", v.metrics)
	// The page reads its own query: it shows an error as a page, with the form as it was filled in.
	mux.Handle("GET /{$}", v.question(v.page))
	mux.Handle("POST /{$}", v.upload(v.page))
	page.Files(mux)
	// A form of any page may POST here without being asked (CSRF). The gateways do not pass this: they hand on the
	// fields of a browser that asks some other site.
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { otherOrigin().Write(w) }))
	own, authz := v.Guard.Protect(cross.Handler(mux)), v.question(v.authorize)
	return v.metrics.count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// A verdict is one of the moment, and what quotes a site's file must not be taken for markup.
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Body != http.NoBody { // what is left of it is read at the end, and must not stall either
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(v.Limits.Body))
			web.CloseIfUnread(w, r)
		}
		if isAuthz(r) {
			authz.ServeHTTP(w, r)
		} else {
			own.ServeHTTP(w, r)
		}
		if r.Body != http.NoBody { // but not behind a stream that broke off
			control := http.NewResponseController(w)
			control.SetReadDeadline(time.Now().Add(v.Limits.Body))
			if h.Get("Connection") == "close" { // a client that sends all before it reads would be cut off, and see no answer
				control.Flush()
				io.CopyN(io.Discard, r.Body, maxRest)
			}
		}
	}))
}

// question makes a handler of one that asks. Those under way are bounded by Limits.Questions: one more is
// told to come back, and does not wait: a queue would be one more thing that strangers can fill.
func (v *Service) question(h handler) http.Handler {
	return v.upload(func(w http.ResponseWriter, r *http.Request) error {
		if !v.underway.Take() {
			return web.Busy()
		}
		defer v.underway.Free()
		return h(w, r)
	})
}

// ownOrigin is h for a GET, which no page of another origin may ask either: an image of it would have the service work.
func ownOrigin(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if crossSite(r) {
			return otherOrigin()
		}
		return h(w, r)
	}
}

// otherOrigin is the problem of both: what CrossOriginProtection refuses, and what ownOrigin does.
func otherOrigin() *web.Problem {
	return web.NewProblem(http.StatusForbidden, "origin", "a page of another origin may not ask this")
}

// query makes a handler of one that is given the query, in which each of names may be once, and nothing else. The
// table of routes has the names, so that it can be held beside the one in README.md.
func query(h func(http.ResponseWriter, *http.Request, url.Values) error, names ...string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := parameters(r.URL.RawQuery, names...)
		if err != nil {
			return err
		}
		return h(w, r, q)
	}
}

// upload makes a handler of one that reads a body, and refuses when the service ends. Slow clients must not
// take the places of questions that need none: what bounds them is the memory for bodies.
func (v *Service) upload(h handler) http.Handler {
	return v.problems(func(w http.ResponseWriter, r *http.Request) error {
		if v.draining.Err() != nil {
			return web.Unavailable("the service is ending")
		}
		return h(w, r)
	})
}

// problems makes an http.Handler of h. An h that has begun to answer panics with http.ErrAbortHandler: the broken connection
// is the only sign that a client still understands once it has a status.
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

// describe answers GET /v1/openapi.json. The description changes with the program only, so unlike an answer it may be
// kept for an hour.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "max-age=3600")
	w.Header().Set("Content-Type", mediaJSON)
	w.Write(openAPI())
}

// openAPIText describes what "robots serve" answers. What the subcommands write as well, it
// takes from schema.json.
//
//go:embed openapi.json
var openAPIText []byte

// openAPI is openapi.json with the definitions of schema.json that it uses among its schemas: one
// document, which tools need not put together.
var openAPI = sync.OnceValue(func() []byte {
	var doc, schema map[string]any
	defs := strings.ReplaceAll(string(answer.Schema), "#/$defs/", "#/components/schemas/")
	if err := errors.Join(json.Unmarshal([]byte(defs), &schema), json.Unmarshal(openAPIText, &doc)); err != nil {
		panic(err)
	}
	own := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range []string{"decision", "dialect", "engines", "fetched", "report", "robots", "ruleID", "severity", "statement"} {
		own[name] = schema["$defs"].(map[string]any)[name]
	}
	text, _ := json.Marshal(doc) // what was read can be written
	return text
})
