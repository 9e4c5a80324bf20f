package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

type endingTransport func()

func (end endingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	end()
	body := io.NopCloser(strings.NewReader("User-agent: *\nAllow: /\n"))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, ContentLength: -1}, nil
}

// Some streams of a transport that we are given end with io.EOF when they are closed, also
// if it is us who close them because the time is up. What was read until then may be half
// of a file.
func TestATimeoutIsNotTheEndOfTheFile(t *testing.T) {
	late := errors.New("the time is up")
	ctx, end := context.WithCancelCause(t.Context())
	r := resolution{Fetcher: &Fetcher{Transport: endingTransport(func() { end(late) })}, turns: turnsOf(ctx)}
	r.once.Do(r.setUp)
	ctx, leash := r.guard.Leash(ctx, 0, "a.test:80", true, r.turns.check)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/robots.txt", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.exchange(r.base, req, leash, nil); a.err != late {
		t.Errorf("%d bytes, %v, want %v", len(a.body), a.err, late)
	}
}
