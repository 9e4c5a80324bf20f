package site

// Whole files, for those who show them or read them in several dialects: GET /v1/robots, as=all and the page
// of serve. What decides is the gate's Cache, which has rules and no file.

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/fetch"
)

// Files keeps whole answers, which a cache.Cache does not, as long as it keeps any: for a minute, the
// shortest time that a Cache keeps a result. However many ask about a site meanwhile, it is asked once.
// Failures are kept as long. Beyond maxFiles the site that has been unused the longest is asked again.
type Files struct {
	find    finder
	latest  *lru.Cache[fetch.Origin, *fetch.Result]
	flights singleflight.Group
}

// maxFiles bounds the memory: 32 MiB of files at their limit.
const maxFiles = 64

// NewFiles returns Files that find fetches, which has to have a deadline of its own.
func NewFiles(find finder) *Files {
	latest, _ := lru.New[fetch.Origin, *fetch.Result](maxFiles) // fails for a size below 1 only
	return &Files{find: find, latest: latest}
}

// Get returns the answer of o as find has read it: by RFC9309, from which Result.In reads it in other dialects.
// A fetch that callers wait for goes on without them: the next one finds it. The result is shared and must not
// be changed.
func (f *Files) Get(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	if res, ok := f.latest.Get(o); ok && time.Since(res.Time) < time.Minute {
		return res, nil
	}
	flight := f.flights.DoChan(o.String(), func() (any, error) {
		res, err := f.find(context.Background(), o) // has a deadline of its own
		if err == nil {
			f.latest.Add(o.Clone(), res)
		}
		return res, err
	})
	select {
	case landed := <-flight:
		if landed.Err != nil {
			return nil, landed.Err
		}
		return landed.Val.(*fetch.Result), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
