package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/fetch"
)

// ErrNotSent is what errors.Is finds in the error of every request that the gate held back: a
// *DisallowedError, *UseError, *DelayError or *LateError, ErrNotPublic, ErrClosed, or one that
// wraps cache.ErrClosed. The site saw nothing of the request, but perhaps an earlier sending that it
// refused or hung up on (see Transport.Base), and trying again at once fails alike.
var ErrNotSent = errors.New("client: not sent")

// ErrClosed is returned by RoundTrip, Decide and Lookup after Close. If a Cache that was
// given to the Transport is closed first, they return an error that wraps cache.ErrClosed.
var ErrClosed error = notSent("client: the Transport is closed")

// notSent is an error that is ErrNotSent in other words.
type notSent string

func (e notSent) Error() string        { return string(e) }
func (e notSent) Is(target error) bool { return target == ErrNotSent }

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

// Is makes it ErrNotSent.
func (e *DelayError) Is(target error) bool { return target == ErrNotSent }

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

	wait  time.Duration // until At, when it was said
	tried bool          // by Pacer.Try: no deadline is too soon
}

// Error names the origin and how long it takes until At.
func (e *LateError) Error() string {
	text := fmt.Sprintf("client: not sent: no turn at %s for %v", e.Origin, e.wait.Round(time.Millisecond))
	if !e.tried {
		text += ", and the request's deadline is sooner"
	}
	return text
}

// Is makes it ErrNotSent.
func (e *LateError) Is(target error) bool { return target == ErrNotSent }

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

// refuse returns err for a request that is not sent, and closes its body as
// http.RoundTripper demands.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// ErrNotPublic is what errors.Is finds in the error of a request that was not sent because of
// Fetcher.PublicOnly: it, or robots.txt before it, leads to an address that is not known to be public.
var ErrNotPublic error = notSent("the address is not public")

func notPublic(host string) error {
	return mistake{fmt.Errorf("client: not sent: PublicOnly refuses %s: %w", say.Cut(host), ErrNotPublic)}
}
