package redisturns_test

import (
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
)

// All processes that use the server fetch each robots.txt once, and keep one pace at each
// origin. One client of Redis serves both.
func Example() {
	server := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true, MaxRetries: -1})
	turns := &redisturns.Store{Client: server}
	defer turns.Close()
	transport := &client.Transport{
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Pacer:     &client.Pacer{Turns: turns},
		Cache:     &cache.Cache{Store: &redisstore.Store{Client: server}},
	}
	_ = &http.Client{Transport: transport}
}
