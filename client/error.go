package client

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// DisallowedError says that a request was not sent because of robots.txt.
// http.Client wraps it in a *url.Error, so ask with errors.As or errors.AsType:
//
//	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok { … }
//
// Decision.Reason tells a "no" (policy.ReasonRule: drop the URL) from a "could
// not find out" (policy.ReasonUnreachable: ask again later).
type DisallowedError struct {
	URL      *url.URL        // what was asked for; shared with the request, do not modify
	Token    string          // product token that the decision was made for
	Decision policy.Decision // why, down to the rule and its line

	// Err is why robots.txt could not be had, where Reason is ReasonUnreachable;
	// else nil. There is no Unwrap on purpose: a time-out of the robots.txt fetch
	// would then look like the end of the caller's own deadline.
	Err error
}

// Error names the URL, the product token, and the rule with its line or the cause.
// What came from the network is quoted and cut, so the text is safe in a log line.
func (e *DisallowedError) Error() string {
	return fmt.Sprintf("client: %s not sent: %s for %q", e.place(), e.cause(), cut(e.Token))
}

func (e *DisallowedError) place() string {
	if e.URL == nil {
		return "request"
	}
	return strconv.Quote(cut(e.URL.Redacted())) // a query may hold any octet from 0x80
}

func (e *DisallowedError) cause() string {
	switch rule := e.Decision.Rule; {
	case e.Decision.Reason == policy.ReasonUnreachable && e.Err != nil:
		return "robots.txt is unreachable (" + cut(e.Err.Error()) + "), everything is disallowed"
	case e.Decision.Reason == policy.ReasonUnreachable:
		return "robots.txt is unreachable, everything is disallowed"
	case rule.Allow: // no robots.txt policy gives this
		return fmt.Sprintf("robots.txt line %d (Allow: %q)", rule.Line, cut(rule.Pattern))
	default:
		return fmt.Sprintf("robots.txt line %d, Disallow: %q, holds", rule.Line, cut(rule.Pattern))
	}
}

// cut bounds what one part may add to the text: some 256 octets, whole characters.
func cut(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
