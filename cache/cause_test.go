package cache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// The kind of a failure is kept in memory and in a Store, a bad certificate no less than a status.
func TestTheCauseOfAFailureIsKept(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for cause, kept := range map[string]string{"tls_certificate_error": "tls_certificate_error", "http_request_denied": "http_request_denied", "": "", long: long[:32]} {
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
				return &fetch.Result{Policy: policy.Unreachable(), StatusCode: status, Time: time.Now(), Err: failure}, nil
			}}
			for range 2 { // the second time from memory
				r, _, err := c.Get(t.Context(), fetch.Origin{}, src)
				if err != nil {
					t.Fatal(err)
				}
				if got := causeOf(r.Err); got != kept || fmt.Sprint(r.Err) != "down" {
					t.Errorf("from %s: %v, %.50q, want %q", from, r.Err, got, kept)
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
