package turnstest_test

import (
	"testing"

	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/client/turns/turnstest"
)

// In the test file of a store:
func ExampleTest() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		turnstest.Test(t, func(t *testing.T) (a, b turns.Store) {
			open := func() turns.Store {
				redis, err := redisstore.Open("redis://localhost:6379/0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { redis.Close() })
				return &redisturns.Store{Client: redis.Client, Prefix: t.Name() + ":"}
			}
			return open(), open()
		})
	}
}
