package client

import "context"

// The keys of the two things a request can say about its own gating.
type (
	bypassKey struct{}
	tokenKey  struct{}
)

// WithoutRobots returns a context whose requests are sent without asking
// robots.txt: for a fetch that a person asked for, such as a followed click or a
// feed somebody subscribed to. RFC 9309 binds crawlers, not a person's own choice.
// The long name is on purpose: a reviewer should see it.
func WithoutRobots(ctx context.Context) context.Context {
	return context.WithValue(ctx, bypassKey{}, true)
}

// WithToken returns a context whose requests are decided for another product token
// than Transport.Token, for instance that of one of several crawlers in a program.
// It does not change the User-Agent that is sent.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

func bypassed(ctx context.Context) bool {
	return ctx.Value(bypassKey{}) != nil
}

func tokenFrom(ctx context.Context) (string, bool) {
	token, ok := ctx.Value(tokenKey{}).(string)
	return token, ok
}
