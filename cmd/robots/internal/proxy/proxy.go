// Package proxy is "robots proxy": a forward proxy whose requests go through a gate.
//
// gate.go decides and sends, refusal.go words refusals, connect.go opens tunnels.
//
// The parts of RFC 9110 and RFC 9112 that a proxy has to get right are httputil.ReverseProxy's:
// fields of one hop, trailers, 1xx answers, upgrades, bodies that stream both ways. What comes
// out of a tunnel is handed to the same http.Server, as if it had been accepted.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// Limits bound what clients and sites can make a Server hold. No field has a usual value for zero.
type Limits struct {
	Underway int // requests and tunnels; more get a 503
	Header   int // bytes of the header of a request

	Ask      time.Duration // for the header of a request, and for the handshake in a tunnel
	Idle     time.Duration // for the next request on a connection
	Patience time.Duration // for a piece of a body to come or to be taken
}

func UsualLimits() Limits {
	return Limits{
		Underway: 4096, Header: 256 << 10,
		Ask: 10 * time.Second, Idle: 2 * time.Minute, Patience: 2 * time.Minute,
	}
}

// Server is the proxy. Obey makes it ready, and Watched may follow: both come before Serve, after which its exported
// fields must not change. Limits and Log have to be there.
type Server struct {
	Gate   http.RoundTripper // sends a request, or tells why not
	Guard  web.Guard         // who may use it
	Limits Limits
	Log    *slog.Logger

	// Authority makes certificates that end the TLS of tunnels. If nil, there are no tunnels to TLS.
	Authority *Authority

	// Public has CONNECT to an address of a private network refused. The transport below Gate refuses the rest.
	Public bool

	// Denial is the status of the answer to what was refused, and not failed. If zero, 403. If negative, there is
	// none: the connection ends, or with HTTP/2 the stream.
	Denial int

	// Count is called for each answer, with Passed or the word that ends the type of a problem document. It must not
	// block. If nil, none is counted.
	Count func(kind string)

	agreed   *agreement.Agreements
	reverse  httputil.ReverseProxy
	server   *http.Server
	underway web.Places // of requests and tunnels
	ctx      context.Context
	cut      context.CancelFunc // what is under way
}

// init is called by Obey. One http.Server answers the listener of Serve and what comes out of tunnels, so that both end
// with its Shutdown.
func (s *Server) init() {
	s.ctx, s.cut = context.WithCancel(context.Background())
	if s.Count == nil {
		s.Count = func(string) {}
	}
	s.underway = make(web.Places, s.Limits.Underway)
	errs := slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)
	s.server = &http.Server{
		Handler:           http.HandlerFunc(s.asked),
		ReadHeaderTimeout: s.Limits.Ask,
		IdleTimeout:       s.Limits.Idle,
		MaxHeaderBytes:    s.Limits.Header,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ConnContext:       withTarget,
		ErrorLog:          errs,
	}
	s.reverse = httputil.ReverseProxy{
		Transport: s.Gate,
		Rewrite:   rewrite,
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode < 100 { // none (RFC 9110 §15), with which net/http would panic
				return fmt.Errorf("the status is %03d", res.StatusCode)
			}
			res.Header.Add("Via", via(res.ProtoMajor, res.ProtoMinor))
			s.Count(Passed)
			return nil
		},
		ErrorHandler:  s.refuse,
		ErrorLog:      errs,
		FlushInterval: -1, // half a page is worth as much as the site thought
	}
}

func (s *Server) Serve(l net.Listener) error { return s.server.Serve(l) }

func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.server.Shutdown(ctx); err != nil {
		return err
	}
	// Upgraded connections and tunnels have left the server. With all places taken, nothing new begins.
	for range cap(s.underway) {
		select {
		case s.underway <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Server) Close() error {
	s.cut()
	return s.server.Close()
}

// asked answers a request to the proxy. Every request comes here, from clients and out of tunnels. Inside a
// tunnel no token is asked for: CONNECT had to bring it.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) {
	if to, ok := r.Context().Value(targetKey{}).(string); ok {
		s.inside(w, r, to)
		return
	}
	if p := s.Guard.CheckProxyToken(r); p != nil {
		w.Header().Set("Proxy-Authenticate", `Basic realm="robotsgate", charset="UTF-8"`)
		s.answer(w, r, Refusal{Problem: p})
		return
	}
	if r.Method == http.MethodConnect {
		s.connect(w, r)
		return
	}
	if err := checkTarget(r); err != nil {
		s.answer(w, r, bad("%s %.256q: %v", r.Method, r.RequestURI, err))
		return
	}
	s.pass(w, r)
}

// checkTarget returns what is wrong with a request that should be one to a proxy, with a target in absolute
// form (RFC 9112 §3.2.2). What is in a tunnel has another: see inside.
func checkTarget(r *http.Request) error {
	u := r.URL
	switch {
	case u.Host == "":
		return errors.New("this is a proxy and no site: set http_proxy to its address")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("only http and https pass")
	case u.User != nil:
		return errors.New("a URL with a user and password does not pass (RFC 9110 section 4.2.4)")
	}
	return checkPort(u.Port())
}

// mostHops is how many proxies of this name a request may have passed: one more, and it goes round.
const mostHops = 4

// pass sends a request on, if there is a place for it. It is the only way to the gate. A tunnel takes no place, but
// each request in it does. Neither body may stall: each piece of one has Limits.Patience.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	if strings.Count(strings.Join(r.Header["Via"], ","), " "+name) > mostHops {
		p := web.NewProblem(http.StatusLoopDetected, "failure", "the request leads back to this proxy")
		s.answer(w, r, Refusal{p, "proxy_loop_detected"})
		return
	}
	if r.Method == http.MethodTrace { // its answer would show fields that are added here (RFC 9110 §9.3.8)
		s.answer(w, r, bad("TRACE does not pass"))
		return
	}
	// Of such a path net/http would send a %2F as a slash.
	if raw := r.URL.RawPath; strings.Contains(raw, "%") && r.URL.EscapedPath() != raw {
		s.answer(w, r, bad("the path %.256q has both escapes and what should be escaped", raw))
		return
	}
	if !s.underway.Take() {
		s.answer(w, r, busy())
		return
	}
	defer s.underway.Free()
	offer(r)
	paced := web.Paced{ResponseWriter: w, Patience: s.Limits.Patience}
	out := &writer{Paced: paced, request: r, control: http.NewResponseController(w)}
	out.control.SetWriteDeadline(time.Time{}) // that of the request before
	if r.Body != http.NoBody {
		out.body = &web.Duplex{Request: r, Writer: w, Patience: s.Limits.Patience, Ends: s.ctx}
		defer out.body.Start()()
		// a copy: net/http goes on with its own request, and with the body in that
		r = r.WithContext(r.Context())
		r.Body = out.body
	}
	s.reverse.ServeHTTP(out, r)
	maps.DeleteFunc(w.Header(), func(name string, _ []string) bool {
		trailer, is := strings.CutPrefix(name, http.TrailerPrefix)
		return is && !httpguts.ValidTrailerHeader(trailer) // RFC 9110 §6.5.1: some programs take it for a field
	})
}

const name = "robotsgate" // in Via

// via is our part of a Via field, for what came in a version of HTTP (RFC 9110 §7.6.3).
func via(major, minor int) string {
	if major == 1 {
		return fmt.Sprintf("1.%d %s", minor, name)
	}
	return fmt.Sprintf("%d %s", major, name)
}

// offer removes every Upgrade but the one to WebSocket. After an upgrade to HTTP/2 or TLS, requests would pass without
// a decision. HTTP/1.0 has neither Upgrade nor Expect (RFC 9110 §7.8, §10.1.1).
func offer(r *http.Request) {
	old := !r.ProtoAtLeast(1, 1)
	if to := strings.Join(r.Header["Upgrade"], ","); old || !strings.EqualFold(to, "websocket") {
		r.Header.Del("Upgrade")
	}
	if old {
		r.Header.Del("Expect")
	}
}

// rewrite puts back what httputil.ReverseProxy changes for a gateway, but a proxy must not: fields
// about the way here, a query that is no form, and trailers, which come with the end of the body.
func rewrite(p *httputil.ProxyRequest) {
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := p.In.Header[name]; ok && !httpguts.HeaderValuesContainsToken(p.In.Header["Connection"], name) {
			p.Out.Header[name] = values
		}
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery
	p.Out.Trailer = p.In.Trailer
	if httpguts.HeaderValuesContainsToken(p.In.Header["Expect"], "100-continue") {
		p.Out.Close = true // or net/http would read the body that a site has refused, to keep the connection
	}
	p.Out.Header.Add("Via", via(p.In.ProtoMajor, p.In.ProtoMinor))
}

// refuse answers a request that was not sent, or not answered. It is the ErrorHandler of
// httputil.ReverseProxy as well.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	why := s.explain(w, err)
	s.Log.Debug("refused", "method", r.Method, "url", fmt.Sprintf("%.256s", r.URL.Redacted()), "because", why.Problem.Detail)
	s.answer(w, r, why)
}

// explain makes the answer to what went wrong. A body that cannot be read (RFC 9112 §8) is reported to the client, and
// the site is not blamed.
func (s *Server) explain(w http.ResponseWriter, err error) Refusal {
	if out, ok := w.(*writer); ok && out.body != nil {
		if cause := out.body.Cause(); cause != nil && cause != io.EOF && errors.Is(err, cause) {
			return bad("the body of the request: %v", cause)
		}
	}
	return explain(err, s.agreed)
}

// answer writes a refusal, and then reads what is left of the body: many clients send all of it before they
// read, and would find the connection reset. One that expects 100 sends nothing. Limits.Patience bounds both.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, why Refusal) {
	s.Count(why.kind())
	if why.denies() {
		if s.Denial < 0 {
			panic(http.ErrAbortHandler)
		}
		p := *why.Problem
		p.Status = cmp.Or(s.Denial, p.Status)
		p.Title, why.Problem = http.StatusText(p.Status), &p
	}
	control, end := http.NewResponseController(w), time.Now().Add(s.Limits.Patience)
	control.SetWriteDeadline(end)
	if r.Body != http.NoBody {
		control.SetReadDeadline(end)
	}
	// See writer.closes, which says so of answers of the site.
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	rest := r.Body
	if out, ok := w.(*writer); ok && out.body != nil {
		rest = out.body.Request.Body
	}
	if rest == nil || rest == http.NoBody || r.Header.Get("Expect") != "" {
		why.write(w)
		return
	}
	control.EnableFullDuplex()
	why.write(w)
	control.Flush()
	io.Copy(io.Discard, rest)
}

// writer answers a client with what the site sent. Its client may not stall, and what the site sent stays as
// it is.
type writer struct {
	web.Paced
	request *http.Request
	control *http.ResponseController
	body    *web.Duplex // that of the request, or nil
}

func (w *writer) WriteHeader(status int) {
	if status == http.StatusContinue {
		return // net/http sends it when the body is read for the site, which is now
	}
	if status < 200 && !w.request.ProtoAtLeast(1, 1) {
		return // RFC 9110 §15.2
	}
	h := w.Header()
	if status >= 200 && len(h["Content-Type"]) == 0 {
		h["Content-Type"] = nil // or net/http would guess one
	}
	if status >= 200 && w.closes() {
		h.Set("Connection", "close") // what is left of the body must not pass for the next request
	}
	w.control.SetWriteDeadline(time.Now().Add(w.Patience))
	w.ResponseWriter.WriteHeader(status)
}

// closes reports whether the connection ends with the answer: the body has not, or came in chunks.
// net/http does not tell whether there was a length as well, and then it must (RFC 9112 §6.1).
func (w *writer) closes() bool {
	return w.request.ProtoMajor == 1 && (len(w.request.TransferEncoding) > 0 || w.body != nil && w.body.Cause() != io.EOF)
}
