package client

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Answer is a Decision and what it rests on.
type Answer struct {
	policy.Decision

	// Token is the product token that the decision was made for. Decision.GroupToken is the
	// name of the group that was found for it.
	Token string

	// With policy.ReasonUse: the first of Transport.Uses that is disallowed, and the statement
	// that does it, with its mechanism, line and text. Else empty and nil.
	Use string
	By  *usage.Statement

	// With policy.ReasonAgreement: the agreement that decided, in place of robots.txt. Rule and
	// Group are its own, and Rule.Line counts the lines that ParseAgreements was given. Else nil.
	Agreement *Agreement

	// Unreachable says why robots.txt is unreachable, or is nil.
	Unreachable error

	// Received is when the robots.txt that decides was received. It is zero if none was
	// asked for.
	Received time.Time

	// Until is when the answer stops holding without another fetch. For an unreachable
	// robots.txt, it is when the site will be asked again. It is zero if unknown.
	Until time.Time
}

// LogValue returns the answer in one line: for which token, why, and Unreachable as text, all cut.
// The errors that embed an Answer are logged as errors.
func (a Answer) LogValue() slog.Value { return slog.StringValue(a.text()) }

func (a *Answer) text() string {
	if a.By != nil {
		by := *a.By
		by.Text = say.Cut(by.Text)
		return fmt.Sprintf("%v, disallows the use %q for %q", by, say.Cut(a.Use), say.Cut(a.Token))
	}
	d := a.Decision
	d.Rule.Pattern, d.GroupToken = say.Cut(d.Rule.Pattern), say.Cut(d.GroupToken) // the file decides how long they are
	said := d.String()
	if d.Rule.Line > 0 && a.Agreement == nil {
		said = strings.Replace(said, ": ", " of robots.txt: ", 1)
	}
	text := fmt.Sprintf("%q: %s", say.Cut(a.Token), said)
	if a.Agreement != nil {
		text += fmt.Sprintf(", until %s: %s", a.Agreement.Until.Format(time.RFC3339), say.Cut(a.Agreement.Reason))
	} else if a.Unreachable != nil {
		text += ": " + say.Cut(a.Unreachable.Error())
	}
	return text
}

// DisallowedError says that a request was not sent because of robots.txt.
// http.Client wraps it in a *url.Error, so ask with errors.As or errors.AsType:
//
//	if refusal, ok := errors.AsType[*client.DisallowedError](err); ok { … }
//
// Reason tells a "no" (policy.ReasonRule: drop the URL) from a "could not find out"
// (policy.ReasonUnreachable: ask again after Until).
//
// There is no Unwrap: if robots.txt timed out, Unreachable would look like the caller's own
// deadline.
type DisallowedError struct {
	URL *url.URL // what was asked for; shared with the request, must not be modified
	Answer
}

// Error says for which product token and by which line the request is disallowed, or why robots.txt
// is unreachable. It leaves out the URL, which http.Client puts in front. Text from the network is
// cut and made printable, so it is safe in a log line.
func (e *DisallowedError) Error() string { return "client: not sent for " + e.text() }

// Is makes it ErrNotSent, and ErrNotPublic too if that is why robots.txt is unreachable.
func (e *DisallowedError) Is(target error) bool {
	return target == ErrNotSent || target == ErrNotPublic && fetch.CauseOf(e.Unreachable) == "destination_ip_prohibited"
}

// LogValue returns the text of Error: else slog would ask the Answer, which does not say what it is.
func (e *DisallowedError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// UseError says that a request was not sent because robots.txt disallows a use that
// Transport.Uses declares: Reason is policy.ReasonUse. The rules of robots.txt, or an agreement,
// allow the target, so it may be fetched for another use.
//
// There is no Unwrap, as in DisallowedError.
type UseError struct {
	URL *url.URL // what was asked for; shared with the request, must not be modified
	Answer
}

// Error says which statement disallows which use, and for which product token. It leaves
// out the URL, which http.Client puts in front. Text from the network is quoted and cut, so
// it is safe in a log line.
func (e *UseError) Error() string { return "client: not sent: " + e.text() }

// Is makes it ErrNotSent.
func (e *UseError) Is(target error) bool { return target == ErrNotSent }

// LogValue returns the text of Error, as in DisallowedError.
func (e *UseError) LogValue() slog.Value { return slog.StringValue(e.Error()) }
