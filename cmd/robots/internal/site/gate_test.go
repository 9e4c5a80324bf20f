package site

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// unread is a body that must not be waited for.
type unread struct {
	io.ReadCloser
	t *testing.T
}

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body is read")
	return 0, io.EOF
}

func TestReadTakesTheBodyOfA200Alone(t *testing.T) {
	via := roundtrip.Func(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNotFound, Body: unread{http.NoBody, t}}, nil
	})
	res, body, err := new(Network).Read(t.Context(), via, "http://a.example/", 1)
	if err != nil || res.StatusCode != http.StatusNotFound || body != nil {
		t.Errorf("got %v, %q, %v", res, body, err)
	}
}

// However late the answer, the seconds until the next try count from when the site was asked.
func TestRetryCountsFromTheFetch(t *testing.T) {
	for _, ago := range []time.Duration{0, 700 * time.Millisecond, 30 * time.Second, time.Hour} {
		res := &fetch.Result{
			Policy: policy.Unreachable(), StatusCode: http.StatusServiceUnavailable, Err: errors.New("status 503"),
			Time: time.Now().Add(-ago), RetryAfter: 2 * time.Minute,
		}
		if a := answer.New(fetch.Origin{}, res, time.Time{}); a.Retry == nil || *a.Retry != 120 {
			t.Errorf("%s ago: %v, want 120", ago, a)
		}
	}
}
