package redisturns_test

import (
	"context"
	"errors"
	"log"
	"net/http"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
)

// All processes that use the server fetch each robots.txt once, and keep one pace at each
// origin. One client of Redis serves both.
func Example() {
	store, err := redisstore.Open("redis://localhost:6379/0")
	if err != nil {
		log.Fatal(err)
	}
	robots := &cache.Cache{Store: store}
	transport := &client.Transport{
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Pacer:     &client.Pacer{Turns: &redisturns.Store{Client: store.Client}},
		Cache:     robots,
	}
	_ = &http.Client{Transport: transport}
	// … and at the end, in this order:
	ctx := context.Background()
	if err := errors.Join(transport.Shutdown(ctx), robots.Shutdown(ctx)); err != nil {
		log.Println(err)
	}
}
