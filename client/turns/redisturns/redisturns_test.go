package redisturns_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
)

// What needs a server is tested in folder integration_test.

func TestAClientThatIgnoresDeadlinesIsRefused(t *testing.T) {
	slow := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer slow.Close()
	nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.1:6379"}})
	defer nodes.Close()
	for want, s := range map[string]*redisturns.Store{
		"no Client": {}, "ContextTimeoutEnabled": {Client: slow}, "without ContextTimeoutEnabled": {Client: nodes},
	} {
		if _, err := s.Take(t.Context(), "https://a.example", turns.Ask{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Take: %v, want an error that says %s", err, want)
		}
		if err := s.Tell(t.Context(), "https://a.example", turns.News{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Tell: %v, want an error that says %s", err, want)
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}
