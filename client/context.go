package client

import "context"

// gatingKey holds what a request says about its own gating.
type gatingKey struct{}

type gating struct {
	bypass   bool
	token    string
	hasToken bool
	misuse   error // what is wrong with the token, or nil
}

// gatingOf costs one look-up per request.
func gatingOf(ctx context.Context) gating {
	g, _ := ctx.Value(gatingKey{}).(*gating)
	if g == nil {
		return gating{}
	}
	return *g
}

// WithoutRobots returns a context whose requests are sent without asking
// robots.txt: for a fetch that a person asked for, such as a followed click or a
// feed somebody subscribed to. RFC 9309 binds crawlers, not a person's own choice.
// The long name is on purpose: a reviewer should see it.
func WithoutRobots(ctx context.Context) context.Context {
	g := gatingOf(ctx)
	g.bypass = true
	return context.WithValue(ctx, gatingKey{}, &g)
}

// WithToken returns a context whose requests are decided for another product token
// than Transport.Token, for instance that of one of several crawlers in a program.
// It does not change the User-Agent that is sent. The token is compared as it stands;
// an empty one is one that no group names. One with a
// blank, "/", "*" or anything else that is not part of a product token is an error of
// the request.
func WithToken(ctx context.Context, token string) context.Context {
	g := gatingOf(ctx)
	g.token, g.hasToken, g.misuse = token, true, tokenMisuse("the token of WithToken", token)
	return context.WithValue(ctx, gatingKey{}, &g)
}
