package cachetest_test

import (
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/cachetest"
	"github.com/robotsgate/robotsgate/cache/dirstore"
)

// In the test file of a store:
func ExampleTestStore() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		cachetest.TestStore(t, func(t *testing.T) cache.Store {
			s, err := dirstore.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	}
}
