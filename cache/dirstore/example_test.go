package dirstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
)

func Example() {
	dir, err := os.MkdirTemp("", "robots")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := dirstore.Open(filepath.Join(dir, "cache"))
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &cache.Cache{Store: store} // for the Cache field of a client.Transport
	defer c.Shutdown(context.Background())
	fmt.Println(c.Stats().Origins, "origins in memory")
	// Output:
	// 0 origins in memory
}
