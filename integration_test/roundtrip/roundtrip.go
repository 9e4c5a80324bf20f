// Package roundtrip is for tests: a function that is an http.RoundTripper.
package roundtrip

import "net/http"

// Func answers a request as an http.RoundTripper that is not an *http.Transport: the library uses it as it is.
type Func func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f Func) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
