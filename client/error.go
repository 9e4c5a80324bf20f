package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// ErrNotSent is what errors.Is finds in each error of RoundTrip, Decide, Lookup, Turn and Try that is neither a
// context's nor Base's own, and in those of Base that are fetch.ErrNotPublic. The site saw nothing of the request, and
// trying again at once fails again. After Close, they are cache.ErrClosed too. A request whose context ended while it
// waited was not sent either: its error is the context's.
var ErrNotSent = errors.New("client: not sent")

// closedError is returned after Close. It is ErrNotSent and cache.ErrClosed, as is the error over a closed Cache.
type closedError struct{}

func (closedError) Error() string        { return "client: the Transport is closed" }
func (closedError) Is(target error) bool { return target == ErrNotSent || target == cache.ErrClosed }

// notSentError makes any error an ErrNotSent.
type notSentError struct{ error }

func (e notSentError) Is(target error) bool { return target == ErrNotSent }
func (e notSentError) Unwrap() error        { return e.error }

func notSentf(format string, args ...any) error { return notSentError{fmt.Errorf(format, args...)} }

// LateError says that a turn at an origin cannot come before the caller's deadline, or, from [Transport.Try], that it
// has not come yet. Ask again at At. It is ErrNotSent, and not a time-out: it precedes the deadline. Its text says if
// robots.txt has to be read first, Pacer.Turns fails, or another request has to end first.
type LateError struct {
	Origin fetch.Origin // where the turn is late: not at the URL's origin, if its robots.txt is redirected

	// At is when to ask again: the turn can come then, as far as is known.
	At time.Time

	// Delay is the delay kept between requests to the origin, for information: At includes it.
	Delay time.Duration

	// Paused reports whether the turn is late because the site asked for a pause or suffers. If false, it is late because
	// of the delay or of other requests.
	Paused bool

	full     bool  // it waits for another request to end, or just did
	reading  bool  // it waits for robots.txt
	turnsErr error // why Pacer.Turns could not be asked, or nil
}

// Error names the origin and the time, what is wrong with Pacer.Turns, or what the turn waits for.
func (e *LateError) Error() string {
	text := fmt.Sprintf("client: not sent: no turn at %s before %s", cut(e.Origin.String()),
		e.At.Format("2006-01-02T15:04:05.000Z07:00"))
	switch {
	case e.turnsErr != nil:
		text += ": " + printable(e.turnsErr.Error())
	case e.Paused:
		text += ", as the site pauses"
	case e.reading:
		text += ", as robots.txt has to be read first"
	case e.full:
		text += ", waiting for another request to the site to end"
	case e.Delay > 0:
		text += fmt.Sprintf(", as requests there are %v apart", e.Delay)
	}
	return text
}

// Is makes it ErrNotSent.
func (e *LateError) Is(target error) bool { return target == ErrNotSent }

// waitError is why a wait ended, and what it was for. It is a net.Error, as context.DeadlineExceeded is: url.Error and
// os.IsTimeout ask the error itself, and not what it wraps.
type waitError struct{ error }

func (e waitError) Unwrap() error   { return e.error }
func (e waitError) Timeout() bool   { return errors.Is(e.error, context.DeadlineExceeded) }
func (e waitError) Temporary() bool { return e.Timeout() }

// refuse returns err for a request that is not sent, and closes its body as http.RoundTripper demands.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// cut bounds what one part may add to a text, to some 256 bytes of whole characters.
func cut(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// printable returns a text of others as a part of one line: cut, and without what does not print.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, cut(s))
}
