package fetch

import (
	"errors"
	"net/http"
)

// ErrNotPublic is wrapped by the errors of a transport of PublicOnly that refuses an address.
var ErrNotPublic = errors.New("the address is not public")

// PublicOnly returns a copy of t that connects to public addresses only and uses no proxy.
func PublicOnly(t *http.Transport) *http.Transport { return t.Clone() }

// NoTurn is the error of what Fetcher.Through returned when it sends no request, because no turn comes in time. It
// ends the Fetch, which returns Err; after an answer, a retry that gets none leaves that answer standing.
type NoTurn struct{ Err error }

func (n NoTurn) Error() string { return n.Err.Error() }
func (n NoTurn) Unwrap() error { return n.Err }
