package site

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
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
		t.Errorf("got %v, %q, %v, want 404 and no body", res, body, err)
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

// A Fetcher for another dialect differs in nothing else.
func TestFetcherForADialectIsLikeTheOther(t *testing.T) {
	g := &Gate{Transport: &client.Transport{Fetcher: new(fetch.Fetcher)}}
	f := reflect.ValueOf(g.Fetcher).Elem()
	for _, field := range reflect.VisibleFields(f.Type()) {
		switch v := f.FieldByIndex(field.Index); {
		case !field.IsExported() || field.Name == "Dialect":
		case field.Name == "Transport":
			v.Set(reflect.ValueOf(http.DefaultTransport))
		case field.Name == "Through":
			v.Set(reflect.ValueOf(func(wire http.RoundTripper) http.RoundTripper { return wire }))
		case field.Name == "Sign":
			v.Set(reflect.ValueOf(func(*http.Request) error { return nil }))
		case v.CanInt():
			v.SetInt(7)
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.String:
			v.SetString("x")
		default:
			t.Fatalf("set %s here", field.Name)
		}
	}
	other := g.FetcherFor(policy.Yandex)
	if other.Dialect != policy.Yandex || g.FetcherFor(policy.RFC9309) != g.Fetcher {
		t.Errorf("the dialects are %v and %v, want Yandex and the Fetcher of the gate", other.Dialect, g.FetcherFor(policy.RFC9309).Dialect)
	}
	for _, field := range reflect.VisibleFields(f.Type()) {
		if field.IsExported() && field.Name != "Dialect" {
			got, want := reflect.ValueOf(other).Elem().FieldByIndex(field.Index), f.FieldByIndex(field.Index)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s is %v, want %v", field.Name, got, want)
			}
		}
	}
}
