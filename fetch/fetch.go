// Package fetch reads the robots.txt of one origin over the network (RFC 9309 §2.3, §2.5).
package fetch

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

const (
	MaxBytes     = 500 << 10
	MaxRedirects = 5
)

type Fetcher struct {
	Transport http.RoundTripper
	UserAgent string
	Dialect   policy.Dialect
	Timeout   time.Duration
	Retries   int
}

type Result struct {
	Policy     *policy.Policy
	Dialect    policy.Dialect // the one that Policy was read in, so that a stored Body can be parsed again
	StatusCode int
	Header     http.Header
	Body       []byte
	Time       time.Time
	Truncated  bool
	Redirects  []string
	RetryAfter time.Duration
	Err        error
}

// Fetch is a place-holder.
func (f *Fetcher) Fetch(ctx context.Context, o Origin, prev *Result) (*Result, error) {
	t := f.Transport
	if t == nil {
		t = http.DefaultTransport
	}
	req, _ := http.NewRequestWithContext(ctx, "GET", o.RobotsURL().String(), nil)
	res, err := t.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return &Result{Policy: policy.Unreachable(), Err: err, Time: time.Now()}, nil
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	r := &Result{Dialect: f.Dialect, StatusCode: res.StatusCode, Header: res.Header, Body: b, Time: time.Now()}
	switch res.StatusCode / 100 {
	case 2:
		r.Policy = policy.Parse(b)
	case 4:
		r.Policy = policy.Unavailable()
	default:
		r.Policy = policy.Unreachable()
	}
	return r, nil
}
