package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// gate is a Transport with its zero values resolved.
type gate struct {
	base      http.RoundTripper
	cache     *cache.Cache
	ownCache  bool // nobody else has it
	pacer     *Pacer
	source    cache.Source
	userToken string // product token of Transport.UserAgent
	misuse    error  // what is wrong with the Transport, or nil
	hooks     hooks
}

// answer is a Decision, the origin it is about, and why its robots.txt is unreachable,
// where it is.
type answer struct {
	policy.Decision
	origin fetch.Origin
	cause  error
	misuse error // what is wrong with what the request says about itself, or nil
	brief  bool  // of a permission nothing but Allowed is wanted: to copy the rest takes longer than to find it
	held   bool  // it is to be given by what the cache holds, see ended
}

// ask is decide, told to Trace.
func (t *Transport) ask(ctx context.Context, g *gate, req *http.Request, token string, a *answer) error {
	if t.Trace == nil || t.Trace.Decided == nil {
		return g.decide(ctx, req, token, a, nil)
	}
	a.brief = false
	d := Decided{URL: req.URL, Token: token}
	start := time.Now()
	err := g.decide(ctx, req, token, a, &d.Target)
	d.Decision, d.Err, d.Took = a.Decision, errors.Join(a.cause, err), time.Since(start)
	returned := false
	defer func() {
		if !returned { // the hook has ended the goroutine, as a test's Fatal does
			refuse(req, nil)
		}
	}()
	panicked := g.hooks.run("Decided", func() { t.Trace.Decided(ctx, d) })
	if returned = true; err == nil && a.Allowed && panicked != nil {
		a.Decision, err = policy.Decision{}, panicked // a refusal is the better error
	}
	return err
}

// decide answers for the target that is sent for req, and writes it to sent if that is
// not nil. An error is why there is no answer. (The answer is large: returned by value
// it would be copied at every step of the warm path.)
func (g *gate) decide(ctx context.Context, req *http.Request, token string, a *answer, sent *string) error {
	if g.misuse != nil {
		return g.misuse
	}
	if a.misuse != nil {
		return a.misuse
	}
	var err error
	if a.origin, err = originOf(req); err != nil {
		return err
	}
	var buf [targetBuffer]byte
	target, err := requestTarget(buf[:0], req.URL)
	if err != nil {
		return err
	}
	if sent != nil {
		*sent = strings.Clone(target)
	}
	if target == robotsTarget {
		a.Decision = policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}
		return nil
	}
	patience := ctx
	if a.held {
		patience = ended
	}
	res, err := g.lookup(patience, a.origin)
	if err != nil {
		return err
	}
	group := res.Policy.Group(token)
	if g.pacer != nil {
		g.pacer.learn(a.origin, group, source{res.Time, token}, res.Err)
	}
	dots := hasDotSegment(target)
	d := group.Decide(target)
	if a.brief && d.Allowed && !dots {
		a.Allowed = true
		return nil
	}
	a.cause = res.Err
	a.Decision = d
	if a.Allowed && dots {
		a.Decision, err = decideDotFree(ctx, group, strings.Clone(target)) // the rare case pays, buf stays on the stack
	}
	return err
}

// ended is the context of a look-up that fetches nothing: context.Canceled is then the
// error where there is nothing to use.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// lookup is what holds for o. The error is the context's, or says whose end came first.
func (g *gate) lookup(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	res, err := g.cache.Get(ctx, o, &g.source)
	if err == nil {
		return res, nil
	}
	switch {
	case g.ownCache && errors.Is(err, cache.ErrClosed):
		err = ErrClosed // who waits knows of no Cache
	case errors.Is(err, ctx.Err()):
		err = context.Cause(ctx) // as net/http has it
	}
	return nil, err
}

// isOther says whether u is of a scheme that robots.txt does not bind here. net/url
// folds its case, and a URL built by hand may not have it folded, or lack it, which is
// no way around the gate.
func isOther(u *url.URL) bool {
	switch {
	case u == nil, u.Scheme == "http", u.Scheme == "https", u.Scheme == "":
		return false
	}
	return !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https")
}

// originOf is the origin that req names on the wire (its Host, where that differs from the URL's).
func originOf(req *http.Request) (fetch.Origin, error) {
	switch {
	case req.URL == nil:
		return fetch.Origin{}, errors.New("client: request has no URL")
	case req.URL.Opaque != "":
		return fetch.Origin{}, opaqueError(req.URL)
	}
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return fetch.Origin{}, fmt.Errorf("client: %w", err)
	}
	return o, nil
}

// token is the product token that a request with a User-Agent field, or none, is
// decided for.
func (t *Transport) token(g *gate, own gating, agent []string, ok bool) string {
	switch {
	case own.hasToken:
		return own.token
	case t.Token != "":
		return t.Token
	case !ok && t.UserAgent == "":
		return netHTTPToken
	case !ok:
		return g.userToken
	case len(agent) == 0: // net/http sends none
		return ""
	case agent[0] == t.UserAgent:
		return g.userToken
	}
	return policy.ProductToken(agent[0])
}

// netHTTPToken is the product token of what net/http sends by itself.
const netHTTPToken = "Go-http-client"

// misuse is what is wrong with the fields of t, or nil.
func (t *Transport) misuse(base http.RoundTripper, f *fetch.Fetcher) error {
	if self := http.RoundTripper(t); base == self || f.Transport == self {
		return errors.New("client: the Transport is its own Base: set Base (or Fetcher.Transport) to what sends, not to the gate or to nil where http.DefaultTransport is the gate")
	}
	return tokenMisuse("Token", t.Token)
}

// tokenMisuse is what is wrong with a product token, or nil. No name in robots.txt would
// match one with other characters, and the group for "*" would decide without a word.
func tokenMisuse(name, token string) error {
	if token == "*" {
		return nil // asks for just that group
	}
	if strings.ContainsAny(token, "/(;") {
		return fmt.Errorf("client: %s %q is no product token but a User-Agent, which groups of robots.txt would not match: set %s to %q, or UserAgent", name, cut(token), name, cut(policy.ProductToken(token)))
	}
	const others = "!$%&'+-.^_`|~" // those of RFC 9110 §5.6.2 but "*" and "#"
	for i, c := range token {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.ContainsRune(others, c):
			continue
		}
		_, n := utf8.DecodeRuneInString(token[i:])
		return fmt.Errorf("client: %s %q is no product token, and groups of robots.txt would not match it: leave out the %q", name, cut(token), token[i:i+n])
	}
	return nil
}
