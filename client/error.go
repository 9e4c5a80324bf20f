package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// ErrNotSent is wrapped by, or matches with errors.Is, every error of a request that the gate held
// back: *DisallowedError, *UseError, *DelayError, *LateError, ErrNotPublic, ErrClosed and
// cache.ErrClosed. The site saw nothing of it, and trying again at once changes nothing.
var ErrNotSent = errors.New("client: not sent")

// ErrClosed is returned by RoundTrip, Decide and Lookup after Close. If a Cache that was
// given to the Transport is closed first, they return an error that wraps cache.ErrClosed.
var ErrClosed error = notSent("client: the Transport is closed")

// notSent is an error that is ErrNotSent in other words.
type notSent string

func (e notSent) Error() string        { return string(e) }
func (e notSent) Is(target error) bool { return target == ErrNotSent }

// Answer is a Decision and what it rests on.
type Answer struct {
	policy.Decision

	// Token is the product token that the decision was made for. Decision.Group is the
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
		by.Text = cut(by.Text)
		return fmt.Sprintf("%v, disallows the use %q for %q", by, cut(a.Use), cut(a.Token))
	}
	d := a.Decision
	d.Rule.Pattern, d.Group = cut(d.Rule.Pattern), cut(d.Group) // the file decides how long they are
	said := d.String()
	if d.Rule.Line > 0 && a.Agreement == nil {
		said = strings.Replace(said, ": ", " of robots.txt: ", 1)
	}
	text := fmt.Sprintf("%q: %s", cut(a.Token), said)
	if a.Agreement != nil {
		text += fmt.Sprintf(", until %s: %s", a.Agreement.Until.Format(time.RFC3339), cut(a.Agreement.Reason))
	} else if a.Unreachable != nil {
		text += ": " + cut(a.Unreachable.Error())
	}
	return text
}

func (e *DisallowedError) LogValue() slog.Value { return slog.StringValue(e.Error()) }
func (e *UseError) LogValue() slog.Value        { return slog.StringValue(e.Error()) }

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

// UseError says that a request was not sent because robots.txt disallows a use that
// Transport.Uses declares: Reason is policy.ReasonUse. Its rules allow the target, so it may be
// fetched for another use.
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

// The refusals are ErrNotSent, and wrap nothing.

func (e *DisallowedError) Is(target error) bool {
	return target == ErrNotSent || target == ErrNotPublic && fetch.CauseOf(e.Unreachable) == "destination_ip_prohibited"
}
func (e *UseError) Is(target error) bool   { return target == ErrNotSent }
func (e *DelayError) Is(target error) bool { return target == ErrNotSent }
func (e *LateError) Is(target error) bool  { return target == ErrNotSent }

// DelayError says that a request was not sent because robots.txt asks for more delay
// than Pacer.MaxDelay, and Pacer.RefuseLongDelays is set.
type DelayError struct {
	Origin fetch.Origin
	Delay  time.Duration // what robots.txt asks for
	Max    time.Duration // what the Pacer would keep
}

// Error names the origin, the delay and the cap.
func (e *DelayError) Error() string {
	return fmt.Sprintf("client: not sent: %s asks for %v between requests, more than the Pacer's MaxDelay of %v",
		e.Origin, e.Delay, e.Max)
}

// LateError says that a turn at an origin cannot come before the caller's deadline, or, from
// [Pacer.Try], that it has not come yet. It wraps context.DeadlineExceeded, and is a net.Error
// whose Timeout is true: had the caller waited, its deadline would have passed.
type LateError struct {
	Origin fetch.Origin

	// At is when to ask again: the turn can come then, or sooner if a request ends or others give
	// up.
	At time.Time

	// Paused reports whether the turn is late because the site asked for a pause or suffers. If
	// false, it is late because of a delay or of other requests.
	Paused bool

	wait time.Duration // until At, when it was said
}

// Error names the origin and how long it takes until At.
func (e *LateError) Error() string {
	return fmt.Sprintf("client: not sent: no turn at %s for %v, and the request's deadline is sooner",
		e.Origin, e.wait.Round(time.Millisecond))
}

// Unwrap returns context.DeadlineExceeded.
func (e *LateError) Unwrap() error { return context.DeadlineExceeded }

// Timeout returns true.
func (e *LateError) Timeout() bool { return true }

// Temporary is the other method of a net.Error.
func (e *LateError) Temporary() bool { return true }

func lateAt(o fetch.Origin, at, now time.Time, paused bool) *LateError {
	return &LateError{Origin: o, At: at, Paused: paused, wait: at.Sub(now)}
}

// mistake is an error that the caller or Base is to blame for, not the site.
type mistake struct{ error }

func (e mistake) Unwrap() error { return e.error }

// cut bounds what one part may add to a text: some 256 bytes, whole characters.
func cut(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// refuse returns err for a request that is not sent, and closes its body as
// http.RoundTripper demands.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// say logs. A panic of the handler must not become one of a request, and cannot be logged.
func say(level slog.Level, text string, args ...any) {
	defer func() { _ = recover() }()
	slog.Log(context.Background(), level, text, args...)
}

// textOf returns the text of a panic's value, which may panic in turn.
func textOf(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T", p)
		}
	}()
	return fmt.Sprint(p)
}
