package proxy

// How a Server obeys robots.txt: Obey fills its hooks from a site.Gate, and what is below the gate sends, to
// public networks only and never back to this proxy.

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

// Obeying is how a proxy obeys robots.txt, as its flags say.
type Obeying struct {
	answer.Asker
	Each   bool // the product token in each client's User-Agent field is decided for
	Paced  bool // the delay that each site asks for is kept
	Advise bool // what is refused passes
}

// Obey has s send its requests through g, which answers questions. own is where s listens. g must have its
// settings of RunsOn already: from here on its Base is no *http.Transport any longer. Requests for robots.txt
// do not go this way: the Fetcher of g has the transport of before, with checks of its own.
func (s *Server) Obey(g *site.Gate, o Obeying, own netip.AddrPort) {
	g.Uses = o.Uses
	if o.Paced {
		g.Pacer = new(client.Pacer)
		g.Share()
	}
	base := g.Base.(*http.Transport).Clone()
	base.DisableCompression = true // bodies pass as they are
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 1024, 64
	base.MaxResponseHeaderBytes = 1 << 20
	base.ExpectContinueTimeout = 5 * time.Second // after that, we send 100 in the site's place
	s.Permit = func(to netip.AddrPort) error { return permit(to, own) }
	base.DialContext = guarded(base.DialContext, s.Permit)
	// net/http has no switch for one request: a transport without HTTP/2 is one more, with connections of its
	// own.
	old := base.Clone()
	old.Protocols = new(http.Protocols)
	old.Protocols.SetHTTP1(true)
	if old.TLSClientConfig != nil {
		old.TLSClientConfig.NextProtos = nil // those of base
	}
	g.Base = sender{base, old}
	j := &judge{Obeying: o, gate: g}
	if s.Gate = j; o.Advise {
		s.Gate = newAdviser(j, s)
	}
	s.Explain = func(err error) Refusal { return explain(err, g.Agreed) }
}

// judge sends requests through the gate that reads robots.txt as the crawler does which they are judged for.
type judge struct {
	Obeying
	gate  *site.Gate
	once  sync.Once
	gates map[policy.Dialect]*client.Transport
}

// init makes a gate for each dialect with the first request: until then, others fill that of the flags.
func (j *judge) init() {
	g := j.gate
	j.gates = map[policy.Dialect]*client.Transport{g.Fetcher.Dialect: g.Transport}
	for _, d := range answer.Dialects {
		if j.Each && j.gates[d] == nil {
			j.gates[d] = &client.Transport{Base: g.Base, Token: g.Token, Uses: g.Uses, Override: g.Override,
				Fetcher: g.FetcherFor(d), Cache: g.Cache, Pacer: g.Pacer, Sign: g.Sign, Trace: g.Trace}
		}
	}
}

func (j *judge) RoundTrip(req *http.Request) (*http.Response, error) {
	j.once.Do(j.init)
	k := j.Asker // a copy
	if j.Each {
		k.SetAgent(cmp.Or(policy.ProductToken(req.UserAgent()), answer.AnyOther))
	}
	gate, token := j.gates[k.Dialect], k.Agent
	if k.FallsBack() {
		p, err := gate.Lookup(req.Context(), req.URL)
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		token = k.Obeys(p)
	}
	return gate.RoundTrip(req.WithContext(client.WithToken(req.Context(), token)))
}

// permit refuses to connect to where this proxy listens, where a request would come back without an end.
func permit(to, own netip.AddrPort) error {
	addr, here := to.Addr().Unmap().WithZone(""), own.Addr().Unmap()
	if to.Port() == own.Port() && (addr == here || here.IsUnspecified() && isOwn(addr)) {
		return sendError{errItself}
	}
	return nil
}

// dial is the signature of (*net.Dialer).DialContext.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// guarded makes a dialer that asks check about the address that via has connected to.
func guarded(via dial, check func(netip.AddrPort) error) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := via(ctx, network, address)
		if err != nil {
			return nil, sendError{err}
		}
		if err := check(c.RemoteAddr().(*net.TCPAddr).AddrPort()); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
}

// isOwn reports whether an address is one of this machine. Its interfaces may change, so they are asked for
// each time.
func isOwn(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	all, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(addr.AsSlice())
	})
}

// sender sends what the gate lets pass. It is the Base of the gate; its errors are sendErrors, by which
// explain tells them from the gate's.
type sender struct {
	*http.Transport
	old *http.Transport // for requests to upgrade, which HTTP/2 has not (RFC 9113 §8.6)
}

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodOptions && req.URL.Path == "" && req.URL.RawQuery == "" && !req.URL.ForceQuery {
		whole := *req // RFC 9112 §3.2.4: about the server, decided on as its first page
		u := *req.URL
		u.Path, whole.URL = "*", &u
		req = &whole
	}
	way := s.Transport
	if req.Header.Get("Upgrade") != "" {
		way = s.old
	}
	res, err := way.RoundTrip(req)
	if err == nil && res.StatusCode < 100 { // no status (RFC 9110 §15): net/http reads it, and panics if it is to write it
		res.Body.Close()
		err = fmt.Errorf("the status is %03d", res.StatusCode)
	}
	if err != nil {
		return nil, sendError{err}
	}
	return res, nil
}
