package client

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Answer is a Decision and what it rests on.
type Answer struct {
	policy.Decision

	// Token is the product token that the decision was made for. Decision.GroupToken is the name of the group that
	// matched it.
	Token string

	// Overridden reports whether Transport.Override gave the rules, in place of robots.txt.
	Overridden bool

	// With policy.ReasonUse, Use is the first of Transport.Uses that is disallowed, and By is the statement that does it,
	// with its line: robots.txt line 3, Content-Usage: "train-ai=n". Else both are empty.
	Use string
	By  string

	// Unreachable says why robots.txt is unreachable, or is nil.
	Unreachable error

	// Received is when the robots.txt that decides was received. It is zero if none was asked for.
	Received time.Time

	// Until is when the answer ceases to hold without another fetch: ask again then. An unreachable site is not asked
	// before. It is zero if unknown.
	Until time.Time
}

// String returns the answer in one line: for which token, and why. It is safe in a log: what comes from the network is
// cut and made printable.
func (a Answer) String() string {
	if a.Use != "" {
		return fmt.Sprintf("%s, disallows the use %q for %q", printable(a.By), cut(a.Use), cut(a.Token))
	}
	text := a.Decision.String()
	if a.Rule.Line > 0 {
		of := " of robots.txt: "
		if a.Overridden {
			of = " of Override: "
		}
		text = strings.Replace(text, ": ", of, 1)
	}
	text = fmt.Sprintf("%q: %s", cut(a.Token), text)
	if a.Unreachable != nil {
		text += ": " + printable(a.Unreachable.Error())
	}
	return text
}

// LogValue returns what String does: slog would otherwise log the fields, which are neither cut nor printable.
func (a Answer) LogValue() slog.Value { return slog.StringValue(a.String()) }

// DisallowedError says that a request was not sent because of robots.txt. http.Client wraps it in a *url.Error, so ask
// with errors.As or errors.AsType:
//
//	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok { … }
//
// Reason tells a "no" (policy.ReasonRule: drop the URL) from a "could not find out" (policy.ReasonUnreachable: ask
// again after Until), and from a "not for this use" (policy.ReasonUse: the rules allow the target, so it may be fetched
// for another use).
//
// It is ErrNotSent. It has no Unwrap, because a time-out of robots.txt would look like the caller's own deadline.
type DisallowedError struct {
	URL *url.URL // what was asked for; shared with the request, must not be modified
	Answer
}

// Error says for which product token and by which line the request is disallowed, or why robots.txt is unreachable. It
// leaves out the URL, which http.Client puts in front.
func (e *DisallowedError) Error() string {
	if e.Use != "" { // then its text begins with the statement
		return "client: not sent: " + e.Answer.String()
	}
	return "client: not sent for " + e.Answer.String()
}

// Is makes it ErrNotSent, and fetch.ErrNotPublic too if that is why robots.txt is unreachable.
func (e *DisallowedError) Is(target error) bool {
	return target == ErrNotSent || target == fetch.ErrNotPublic && errors.Is(e.Unreachable, fetch.ErrNotPublic)
}

// LogValue returns the text of Error: slog would otherwise log the embedded Answer.
func (e *DisallowedError) LogValue() slog.Value { return slog.StringValue(e.Error()) }
