package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
)

// roundTrip sends req, or refuses it: decide, wait for the turn, sign, send.
func (g *gate) roundTrip(req *http.Request) (*http.Response, error) {
	if isUngated(req.URL) {
		return g.send(req)
	}
	own := gatingOf(req.Context())
	agent, named := req.Header["User-Agent"]
	r := ruling{own: own, token: g.tokenFor(own, agent, named)}
	err := g.admit(req, &r)
	if err != nil {
		return refuse(req, err)
	}
	out := g.toSend(req, r.origin, named)
	if g.keeper != nil && !own.bypass {
		return g.sendPaced(req, out, r)
	}
	if out, err = g.signed(out); err != nil {
		return refuse(req, err)
	}
	return g.send(out)
}

// admit decides on req. With WithoutRobots it only checks that there is an origin to send it to.
func (g *gate) admit(req *http.Request, r *ruling) (err error) {
	if r.own.bypass && g.configErr == nil {
		r.origin, err = originOf(req)
		return err
	}
	if err = g.ask(req.Context(), req, r); err != nil {
		return err
	}
	return r.refusal(req.URL)
}

// toSend returns req, or a copy with what has to be sent: our User-Agent if it has none, and the canonical spelling of
// the origin that was decided on. For some spellings net/http would dial one host and name another.
func (g *gate) toSend(req *http.Request, o fetch.Origin, named bool) *http.Request {
	out := req
	if !named && g.agent != nil {
		out = shallowCopy(out, req)
		out.Header = make(http.Header, len(req.Header)+1)
		maps.Copy(out.Header, req.Header)
		out.Header["User-Agent"] = g.agent
	}
	scheme, host := strings.ToLower(req.URL.Scheme), o.URLHost()
	if scheme != req.URL.Scheme || host != req.URL.Host {
		out = shallowCopy(out, req)
		u := *req.URL
		u.Scheme, u.Host = scheme, host
		out.URL = &u
		if req.Host == req.URL.Host {
			out.Host = "" // net/http takes it from the URL
		}
	}
	// HostField takes time, and is host unless that has an IPv6 zone.
	mayDiffer := out.Host != host || host[0] == '['
	if out.Host != "" && mayDiffer && out.Host != o.HostField() {
		out = shallowCopy(out, req)
		out.Host = o.HostField()
	}
	return out
}

// shallowCopy returns a copy of req, or out if that is one already.
func shallowCopy(out, req *http.Request) *http.Request {
	if out == req {
		out = new(http.Request)
		*out = *req
	}
	return out
}

// signed returns a copy of req that Sign has been called on, or req if nothing is to be signed.
func (g *gate) signed(req *http.Request) (*http.Request, error) {
	if g.sign == nil || isFTP(req.URL) {
		return req, nil
	}
	out := req.Clone(req.Context())
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if err := g.sign(out); err != nil {
		return nil, notSentf("client: not sent, as Sign failed: %w", err)
	}
	return out, nil
}

// send hands req to Base.
func (g *gate) send(req *http.Request) (*http.Response, error) {
	res, err := g.base.RoundTrip(req)
	if err != nil && errors.Is(err, fetch.ErrNotPublic) {
		err = notSentError{fmt.Errorf("client: not sent: %w", err)}
	}
	return res, err
}

type roundTripFunc = func(*http.Request) (*http.Response, error)

// sendPaced sends out when its turn has come, if r still holds then. It signs after the wait, as signatures expire.
func (g *gate) sendPaced(req, out *http.Request, r ruling) (*http.Response, error) {
	ctx := req.Context()
	place, err := g.turn(ctx, req, &r, pace.Ask{Held: claimTurn(ctx, g.keeper, r.origin)})
	if err != nil {
		return refuse(req, err)
	}
	if out, err = g.signed(out); err != nil {
		place.End()
		return refuse(req, err)
	}
	return sendOn(place, out, g.send)
}

// sendOn sends req on its place, which an open body keeps.
func sendOn(place *pace.Place, req *http.Request, send roundTripFunc) (*http.Response, error) {
	place.Start()
	res, err := send(req)
	ctx := req.Context()
	if err != nil {
		if !gaveUp(ctx) && !isUnsent(err) {
			place.Answered(0, 0)
		}
		place.End()
		return res, err
	}
	place.Answered(res.StatusCode, fetch.RetryAfter(res.StatusCode, res.Header, time.Now()))
	// After a 101 the connection speaks another protocol, perhaps for hours: the request is over.
	if res.Body == nil || res.Body == http.NoBody || res.StatusCode == http.StatusSwitchingProtocols {
		place.End()
		return res, nil
	}
	res.Body = &pacedBody{res.Body, place, context.AfterFunc(ctx, place.End)}
	return res, nil
}

// gaveUp reports whether the caller has given up. http.Client may end a request at its Timeout before the context does.
func gaveUp(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// isUnsent reports whether err is of a request that the site saw nothing of.
func isUnsent(err error) bool {
	return errors.Is(err, ErrNotSent) || errors.Is(err, fetch.ErrNotPublic)
}

// pacedBody is a response body that gives the place of its request back when it is closed, read to its end, or fails.
// So does the end of the request's context: net/http has then closed the connection, even if the body is never closed.
type pacedBody struct {
	io.ReadCloser
	place *pace.Place
	stop  func() bool // ends the watch on the context
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *pacedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func (b *pacedBody) end() {
	b.stop()
	b.place.End()
}
