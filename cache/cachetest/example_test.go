package cachetest_test

import (
	"path/filepath"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/cache/cachetest"
)

// In the test file of a store:
func ExampleTestStore() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		cachetest.TestStore(t, func(t *testing.T) cache.Store {
			s, err := boltstore.Open(filepath.Join(t.TempDir(), "robots.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		})
	}
}
