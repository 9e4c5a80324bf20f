package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/fetch"
)

// roundTrip sends req, or refuses it. A request that waited for its turn, or has to be sent again, is
// decided on again. It closes the body whatever a hook, Sign or Base does, as http.RoundTripper demands.
func (g *gate) roundTrip(req *http.Request) (back *http.Response, failed error) {
	defer func() {
		if back == nil && failed == nil { // one of them panicked, or ended the goroutine as a test's Fatal does
			refuse(req, nil)
		}
	}()
	sent := 0
	for {
		out, o, by, err := g.admit(req)
		if err != nil {
			return refuse(req, err)
		}
		paced := g.keeper != nil && o != (fetch.Origin{})
		if !paced && !g.watches(out, o) {
			return g.sendAtOnce(req, out, o, by)
		}
		s := &sending{gate: g, req: req, by: by, origin: o, sent: sent}
		if !paced {
			s.turn.place.Decided = s.turn.keeper.Now()
		} else {
			if err := s.wait(); err == pace.ErrAgain {
				continue
			} else if err != nil {
				return refuse(req, err)
			}
		}
		res, err := s.carry(out)
		if err != pace.ErrAgain {
			return g.takeBack(req, out, res), err
		}
		sent = s.sent
		if req, err = s.anew(); err != nil {
			return nil, err
		}
	}
}

// sendAtOnce signs and sends what waits for nothing after it was decided on, but perhaps for Sign.
func (g *gate) sendAtOnce(req, out *http.Request, o fetch.Origin, by *Agreement) (*http.Response, error) {
	if g.sign != nil {
		var err error
		took := timed(func() { out, err = g.signed(out) })
		if err != nil {
			return nil, err
		}
		if o != (fetch.Origin{}) && took >= freshTime { // what forbids it by the end of a slow Sign counts
			until, stop := untilCancel(req)
			err = g.stillAllowed(until, req, by)
			if stop(); err != nil {
				return refuse(out, err)
			}
		}
	}
	res, err := g.hand(out)
	if out != req {
		res = g.takeBack(req, out, res)
	}
	return res, err
}

// watches reports whether what becomes of a request within Base has to be watched: what was decided on,
// signed, or must reach public addresses only.
func (g *gate) watches(out *http.Request, o fetch.Origin) bool {
	return (g.wire || g.publicOnly) && g.watchesWithin(out, o)
}

// watchesWithin is apart so that watches is inlined.
func (g *gate) watchesWithin(out *http.Request, o fetch.Origin) bool {
	return !isOther(out.URL) && (g.publicOnly || g.sign != nil || o != (fetch.Origin{}))
}

// hand hands req to Base, and returns a response or an error even if Base returns neither or both. http.Client would
// blame the Transport around it.
func (g *gate) hand(req *http.Request) (*http.Response, error) {
	res, err := g.base.RoundTrip(req)
	switch {
	case err != nil:
		if res != nil && res.Body != nil {
			res.Body.Close()
		}
		return nil, err
	case res == nil:
		return refuse(req, mistake{fmt.Errorf("client: Base (%T) returned neither a response nor an error", g.base)})
	case g.sign != nil && !isOther(req.URL):
		g.compareClocks(req, res)
	}
	return res, nil
}

// signed returns a signed copy of req, or req if nothing is to be signed. It closes the body if Sign fails.
func (g *gate) signed(req *http.Request) (*http.Request, error) {
	if g.sign == nil || isOther(req.URL) {
		return req, nil
	}
	out, err := fetch.Signed(req, g.sign)
	if err != nil {
		_, err = refuse(req, mistake{fmt.Errorf("client: %w", err)})
	}
	return out, err
}

// sending is one request on its way. An *http.Transport may let it wait for a connection, and may hand it
// to several of them: to the next if a kept one has died, and up to seven times if an HTTP/2 server
// refuses the stream. A permission is as old as its sending, so each time is looked at.
//
// An *http.Transport calls gotConn on the goroutine of RoundTrip. A Base of another type may do so on any, at any time.
type sending struct {
	gate    *gate
	req     *http.Request   // the caller's, which is decided on
	by      *Agreement      // that let it through, or nil
	bare    *http.Request   // before it was signed
	signed  *http.Request   // nil: it is not
	turn    Turn            // without a keeper: it keeps no pace; Place.Decided is of every sending, before Sign
	origin  fetch.Origin    // zero: no robots.txt was asked
	watched context.Context // as Base has it; nil: as the caller gave it
	cancel  context.CancelCauseFunc
	proxied atomic.Bool // its connection is to a proxy

	// Who looks at the request holds the one value of looks, and with it what follows while Base has the request. A look
	// may wait for a turn, or for robots.txt: until it has ended, Base must not go on with that connection. It may use
	// others meanwhile: once it has returned, over is set, and a look that still waits is canceled.
	looks   chan struct{}                      // nil: the one goroutine of RoundTrip looks
	enough  atomic.Pointer[context.CancelFunc] // nil: no look waits that Base would not wait for
	over    atomic.Bool                        // Base has returned: it sends nothing more
	sent    int                                // times that it may have been sent, by earlier sendings of the RoundTrip too
	times   int                                // times that Base has had a connection for it
	stopped error                              // why it went no further, or nil
}

// mostSendings is how often one request is sent, as in net/http.
const mostSendings = 7

// wait waits for its turn.
func (s *sending) wait() error {
	ctx, stop := untilCancel(s.req)
	defer stop()
	return s.turn.wait(ctx, s.gate, s.origin, s.req, s.by)
}

// paced reports whether the request has a turn.
func (s *sending) paced() bool { return s.turn.keeper != nil }

// carry sends the request, and sees to its turn.
func (s *sending) carry(out *http.Request) (*http.Response, error) {
	held := false
	defer func() { // a panic in Base must not keep it either
		if !held {
			s.end()
		}
	}()
	var watch *bodyWatch
	if s.paced() {
		out, watch = watchBody(out)
	}
	res, err := s.send(out)
	switch {
	case s.stopped != nil:
		if err == nil && res.Body != nil {
			res.Body.Close()
		}
		if s.times > 1 {
			s.turn.Answered(0, nil) // refused, or hung up on
		}
		return nil, s.stopped
	case err != nil:
		if s.paced() && blames(s.req, watch, err) {
			s.turn.Answered(0, nil)
		}
		return nil, err
	}
	s.turn.Answered(res.StatusCode, res.Header)
	// After a 101 the connection speaks another protocol, for hours perhaps: the request is over.
	if res.Body != nil && res.Body != http.NoBody && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body, held = s.hold(res.Body), true
	}
	return res, nil
}

func (s *sending) end() {
	s.turn.End()
	if s.cancel != nil {
		s.cancel(nil)
	}
}

// send signs the request and hands it to Base, with a watch on its connections.
func (s *sending) send(out *http.Request) (*http.Response, error) {
	g := s.gate
	signed, err := g.signed(out)
	if err != nil {
		return nil, err
	}
	if signed != out {
		s.bare, s.signed = out, signed
	}
	late := signed != out || g.trace.Waited != nil || s.turn.place.Waited() // what Sign, the hook and the line take counts
	if late && (!g.wire || isOther(out.URL)) {                              // Base may tell httptrace nothing
		until, stop := untilCancel(s.req)
		s.stopped = s.mayStart(until)
		if stop(); s.stopped != nil {
			return refuse(out, s.stopped)
		}
	}
	if !s.turn.place.Shared() && !g.watches(out, s.origin) {
		return g.hand(signed)
	}
	ctx, cancel := context.WithCancelCause(signed.Context())
	s.watched, s.cancel = ctx, cancel
	switch {
	case !g.wire:
		s.looks = make(chan struct{}, 1)
	case g.publicOnly: // Base is publicTransport's
		ctx = context.WithValue(ctx, proxiedKey{}, &s.proxied)
	}
	watched := signed.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: s.gotConn}))
	res, err := g.hand(watched)
	s.over.Store(true)
	if enough := s.enough.Load(); enough != nil {
		(*enough)()
	}
	defer s.look()() // once a look has ended that began before
	if err == nil && res.Request == watched {
		res.Request = signed
	}
	return res, err
}

// gotConn looks at the request once more when Base has a connection for it, right before it writes. It
// stops what must not be sent: HTTP/2 looks at the context before it writes, HTTP/1 writes first.
func (s *sending) gotConn(got httptrace.GotConnInfo) {
	defer s.look()()
	if !s.over.Load() && s.stopped == nil {
		s.times++
		if err := s.mayGo(got.Conn); !s.over.Load() {
			s.stopped = err
		}
	}
	if !s.over.Load() && s.stopped == nil {
		s.sent++
		return
	}
	alone := got.Conn != nil && !s.shared(got.Conn)
	if alone {
		got.Conn.Close()
	}
	if !alone || !s.over.Load() { // else the caller may be reading the answer
		s.cancel(s.stopped)
	}
}

// look waits until it can look at the request, and returns what ends the look.
func (s *sending) look() (end func()) {
	if s.looks == nil {
		return func() {}
	}
	s.looks <- struct{}{}
	return func() { <-s.looks }
}

// shared reports whether other requests may be on a connection: it speaks HTTP/2.
func (s *sending) shared(conn net.Conn) bool {
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
	}
	base, ok := s.gate.base.(*http.Transport)
	return ok && base.Protocols != nil && base.Protocols.UnencryptedHTTP2() && !base.Protocols.HTTP1()
}

// mayGo returns why the request must not be sent now on conn, or nil. What was sent before is sent again by Base
// only if it keeps no pace and has no signature: those need a new turn, and a new request.
func (s *sending) mayGo(conn net.Conn) error {
	g := s.gate
	switch {
	case g.publicOnly && !s.proxied.Load() && !reachesPublic(conn):
		return notPublic(s.req.URL.Host)
	case s.times > 1 && s.sent >= mostSendings && (s.paced() || s.signed != nil):
		return fmt.Errorf("client: not sent again: the server refused it, or hung up, %d times", s.sent)
	case s.times > 1 && (s.paced() || s.signed != nil):
		return pace.ErrAgain
	case s.times > 1:
		s.turn.place.Decided = time.Time{}
	}
	until, stop := s.untilOver()
	defer stop()
	return s.mayStart(until)
}

// untilOver returns the context of a look. It ends with the request and, if Base may connect on other goroutines than
// that of RoundTrip, when Base has returned.
func (s *sending) untilOver() (context.Context, func()) {
	until, stop := untilCancel(s.req)
	if s.gate.wire {
		return until, stop
	}
	looks, enough := context.WithCancel(until)
	s.enough.Store(&enough)
	if s.over.Load() {
		enough()
	}
	return looks, func() { enough(); stop() }
}

// mayStart makes now the start of the request, and brings up to date what is older than freshTime. It returns
// why the request must not be sent, or nil.
func (s *sending) mayStart(ctx context.Context) error {
	for range 3 { // a robots.txt that has to be read takes time as well
		now, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if now.Sub(s.turn.place.Decided) < freshTime {
			break
		}
		if err := s.refresh(ctx); err != nil {
			return err
		}
	}
	if s.paced() && s.gate.keeper.Lapsed(s.turn.place) { // this process was stopped meanwhile
		return pace.ErrAgain
	}
	return nil
}

// begin returns the time of the start.
func (s *sending) begin(ctx context.Context) (time.Time, error) {
	if !s.paced() {
		return s.turn.keeper.Now(), nil
	}
	return s.gate.keeper.Begin(ctx, &s.turn.place)
}

func (s *sending) refresh(ctx context.Context) error {
	if err := s.signAnew(); err != nil {
		return err
	}
	s.turn.place.Decided = s.turn.keeper.Now()
	if s.origin == (fetch.Origin{}) {
		return nil
	}
	return s.gate.stillAllowed(ctx, s.req, s.by)
}

// signAnew signs in place: Base has the header. An *http.Transport does not read it before gotConn has returned. A
// Base of another type may: what that has keeps its signature, which is as old as it took to connect. Sign may read the
// body, so a body that can be had once only keeps the signature that it has.
func (s *sending) signAnew() error {
	if s.signed == nil || s.watched != nil && !s.gate.wire || hasBody(s.req) && s.req.GetBody == nil {
		return nil
	}
	bare := new(http.Request)
	*bare = *s.bare
	if hasBody(s.req) {
		body, err := s.req.GetBody()
		if err != nil {
			return mistake{fmt.Errorf("client: Request.GetBody, to sign it anew: %w", err)}
		}
		defer body.Close()
		bare.Body = body
	}
	fresh, err := s.gate.signed(bare)
	if err != nil {
		return err
	}
	clear(s.signed.Header)
	maps.Copy(s.signed.Header, fresh.Header)
	return nil
}

// anew returns the request as it can be decided on from the start. Its body may have been read.
func (s *sending) anew() (*http.Request, error) {
	req := s.req
	if hasBody(req) {
		if req.GetBody == nil {
			return nil, mistake{errors.New("client: not sent again: its body may have been read, and Request.GetBody is nil")}
		}
		body, err := req.GetBody()
		if err != nil {
			return nil, mistake{fmt.Errorf("client: not sent again: %w", err)}
		}
		req = shallowCopy(req, req)
		req.Body = body
	}
	if !s.paced() && s.sent > 1 { // the pause of a Pacer is in the turn; this one is net/http's
		ctx, stop := untilCancel(req)
		defer stop()
		select {
		case <-time.After(rules.Jittered(time.Second << (s.sent - 2))):
		case <-ctx.Done():
			_, err := refuse(req, context.Cause(ctx))
			return nil, err
		}
	}
	return req, nil
}

// compareClocks tells, once, why a site may refuse what is signed: signatures are valid from
// and until a time.
func (g *gate) compareClocks(req *http.Request, res *http.Response) {
	if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		return
	}
	date, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return
	}
	if ahead := time.Since(date); ahead.Abs() > maxClockError && g.clockTold.CompareAndSwap(false, true) {
		say.Log(slog.LevelWarn, "client: a signed request was refused, and this machine's clock differs from the site's",
			"site", req.URL.Host, "status", res.StatusCode, "ahead", ahead.Round(time.Second))
	}
}

// maxClockError is how long signatures are valid as a rule.
const maxClockError = time.Minute

// hold wraps body: the sending ends when the body is done with.
func (s *sending) hold(body io.ReadCloser) io.ReadCloser {
	b := &pacedBody{ReadCloser: body, sending: s}
	if s.paced() {
		b.stop = context.AfterFunc(cmp.Or(s.watched, s.req.Context()), s.turn.End) // Base hears of it first
	}
	return b
}

// wait makes t, which must be new, the turn of req at o, and tells Trace of the wait for it. The error is
// pace.ErrAgain if the request needs a new decision, and another Turn.
func (t *Turn) wait(ctx context.Context, g *gate, o fetch.Origin, req *http.Request, by *Agreement) error {
	pl, waited, err := g.keeper.Turn(ctx, o, pace.Request{HTTP: req, Ends: by.ends(), Allowed: g.yet})
	if err == nil {
		t.keeper, t.place = g.keeper, pl
	}
	given := false
	defer func() { // a hook that ends the goroutine must not keep it either
		if !given {
			t.End()
		}
	}()
	if waited > 0 && g.trace.Waited != nil {
		w := WaitedInfo{URL: req.URL, Err: err, Took: waited}
		if err == pace.ErrAgain {
			w.Err = nil // the turn did come
		}
		g.call("Waited", func() { g.trace.Waited(ctx, w) })
	}
	switch {
	case err != nil:
		return err
	case g.keeper.Lapsed(pl): // this process slept meanwhile
		return pace.ErrAgain
	}
	given = true
	return nil
}

// pacedBody is a response body that gives the place of its request back. It does so when
// it is closed, read to its end, or fails, or when the request's context ends. In that
// case net/http has closed the connection, even if the caller forgets to close the body.
type pacedBody struct {
	io.ReadCloser
	sending *sending
	stop    func() bool // ends the watch on the context; nil: there is none
}

func (b *pacedBody) Close() error {
	defer b.done() // should Close panic, too
	return b.ReadCloser.Close()
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

// WriteTo lets io.Copy choose between the wrapped body and w, as it would without us. If it is w that fails, the
// caller may read on.
func (b *pacedBody) WriteTo(w io.Writer) (int64, error) {
	direct, ok := b.ReadCloser.(io.WriterTo)
	if !ok {
		return io.Copy(w, struct{ io.Reader }{b})
	}
	n, err := direct.WriteTo(w)
	if err == nil {
		b.done()
	}
	return n, err
}

func (b *pacedBody) done() {
	if b.stop != nil {
		b.stop()
	}
	b.sending.end()
}
