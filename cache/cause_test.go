package cache_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// The kind of a failure and its Retry-After are kept in memory and in a Store.
func TestTheCauseOfAFailureIsKept(t *testing.T) {
	for _, cause := range []string{"tls_certificate_error", "http_request_denied", ""} {
		store := &memStore{}
		for _, from := range []string{"the origin", "the Store"} {
			c, fetches := &cache.Cache{Store: store, StoreTimeout: 10 * time.Second}, 0 // on a busy machine, too
			src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				fetches++
				failure := &fetch.Failure{Text: "down", Cause: cause}
				status := 0
				if cause == "http_request_denied" { // by ObeyWalls: without it, this status would open the site
					status = 403
				}
				return &fetch.Result{Policy: policy.Unreachable(), StatusCode: status, Time: time.Now(), RetryAfter: time.Hour, Err: failure}, nil
			}}
			for range 2 { // the second time from memory
				r, _, err := c.Get(t.Context(), fetch.Origin{}, src)
				if err != nil {
					t.Fatal(err)
				}
				if got := causeOf(r.Err); got != cause || fmt.Sprint(r.Err) != "down" || r.RetryAfter != time.Hour {
					t.Errorf("from %s: %v, %.50q, want %q", from, r.Err, got, cause)
				}
			}
			if err := c.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if from == "the Store" && fetches > 0 {
				t.Error("fetched again")
			}
		}
	}
}
