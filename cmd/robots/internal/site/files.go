package site

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/fetch"
)

// Files keeps whole answers, which a cache.Cache does not, as long as it keeps any: questions
// about one site ask it once a minute.
type Files struct {
	find    finder
	latest  *lru.Cache[fetch.Origin, *fetch.Result]
	flights singleflight.Group
}

// maxFiles bounds the memory: 32 MiB of files at their limit.
const maxFiles = 64

func NewFiles(find finder) *Files {
	latest, _ := lru.New[fetch.Origin, *fetch.Result](maxFiles) // fails for a size below 1 only
	return &Files{find: find, latest: latest}
}

// Get returns the answer of o in RFC9309. A fetch that callers wait for goes on without them.
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
