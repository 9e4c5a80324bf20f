package redisstore_test

import (
	"context"
	"fmt"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
)

// Processes of one owner share a server; the prefix keeps others' keys apart.
func Example() {
	store, err := redisstore.Open("redis://localhost:6379/0")
	if err != nil {
		fmt.Println(err)
		return
	}
	store.Prefix = "examplebot:robots:"
	c := &cache.Cache{Store: store} // for the Cache field of a client.Transport
	defer c.Shutdown(context.Background())
	fmt.Println(c.Stats().StoreErrors, "errors: nothing was asked yet")
	// Output:
	// 0 errors: nothing was asked yet
}
