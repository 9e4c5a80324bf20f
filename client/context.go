package client

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy"
)

type gatingKey struct{}

// gating is what the context of a request asks of the gate.
type gating struct {
	bypass   bool
	token    string
	hasToken bool
	uses     []string
	hasUses  bool

	tokenErr, usesErr error // what is wrong with token and uses, or nil
}

// noGating is that of a context without any.
var noGating gating

func gatingOf(ctx context.Context) *gating {
	if g, ok := ctx.Value(gatingKey{}).(*gating); ok {
		return g
	}
	return &noGating
}

// WithoutRobots returns a context whose requests are sent without asking robots.txt, and without a turn. It is for a
// fetch that a person asked for, such as a followed click or a subscribed feed: RFC 9309 binds crawlers, not a person's
// own choice. The long name is on purpose: a reviewer should see it.
func WithoutRobots(ctx context.Context) context.Context {
	g := *gatingOf(ctx)
	g.bypass = true
	return context.WithValue(ctx, gatingKey{}, &g)
}

// WithToken returns a context whose requests are decided for token instead of Transport.Token, for a program that runs
// several crawlers. It does not change the User-Agent that is sent, nor that with which robots.txt is read.
//
// An empty token matches only the default group. A character that no product token has, such as a blank or a slash, is
// an error of the request.
func WithToken(ctx context.Context, token string) context.Context {
	g := *gatingOf(ctx)
	g.token, g.hasToken = token, true
	g.tokenErr = checkToken("the token of WithToken", token)
	return context.WithValue(ctx, gatingKey{}, &g)
}

// WithUses returns a context whose requests are for these uses instead of Transport.Uses, for a program that fetches
// for several purposes. Without any, no use is declared. A label that nothing can disallow is an error of the request.
func WithUses(ctx context.Context, uses ...string) context.Context {
	g := *gatingOf(ctx)
	g.uses, g.hasUses = slices.Clone(uses), true
	g.usesErr = checkUses(uses)
	return context.WithValue(ctx, gatingKey{}, &g)
}

// endedContext is the context of a look-up that waits for nothing. If the cache holds nothing, the error is
// context.Canceled.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// checkToken returns what is wrong with a product token, or nil. No name in robots.txt would match one with other
// characters, so the group for "*" would silently decide.
func checkToken(name, token string) error {
	if token == "*" {
		return nil // asks for just that group
	}
	if strings.ContainsAny(token, "/(;") {
		return notSentf("client: %s %q is no product token but a User-Agent, which groups of robots.txt "+
			"would not match: set %s to %q, or UserAgent", name, cut(token), name, cut(policy.ProductToken(token)))
	}
	const others = "!$%&'+-.^_`|~" // those of RFC 9110 §5.6.2 but "*" and "#"
	i := strings.IndexFunc(token, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune(others, c)
	})
	if i < 0 {
		return nil
	}
	_, n := utf8.DecodeRuneInString(token[i:])
	return notSentf("client: %s %q is no product token, and groups of robots.txt would not match it: "+
		"leave out the %q", name, cut(token), token[i:i+n])
}
