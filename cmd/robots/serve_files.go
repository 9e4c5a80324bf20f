package main

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/robotsgate/robotsgate/fetch"
)

// files keeps whole answers, which a cache.Cache does not, as long as it keeps any: questions
// about one site ask it once a minute.
type files struct {
	find    finder
	latest  *lru.Cache[fetch.Origin, *fetch.Result]
	flights singleflight.Group
}

// maxFiles bounds the memory: 32 MiB of files at their limit.
const maxFiles = 64

func newFiles(find finder) *files {
	latest, _ := lru.New[fetch.Origin, *fetch.Result](maxFiles) // fails for a size below 1 only
	return &files{find: find, latest: latest}
}

// get returns the answer of o in RFC9309. A fetch that callers wait for goes on without them.
func (f *files) get(ctx context.Context, o fetch.Origin) (*fetch.Result, error) {
	if res, ok := f.latest.Get(o); ok && time.Since(res.Time) < minTTL {
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
