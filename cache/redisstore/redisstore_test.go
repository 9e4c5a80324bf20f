package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache/redisstore"
)

// What needs a server is tested in folder integration_test.

func TestAClientThatIgnoresDeadlinesIsRefused(t *testing.T) {
	slow := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379"})
	defer slow.Close()
	for name, s := range map[string]*redisstore.Store{
		"Open": {}, "ContextTimeoutEnabled": {Client: slow},
	} {
		_, err := s.Get(t.Context(), "https://a.example")
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Get: %v, want an error that names %s", err, name)
		}
		if err := s.Put(t.Context(), "https://a.example", nil, time.Hour); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Put: %v, want an error that names %s", err, name)
		}
		if _, _, err := s.Lock(t.Context(), "https://a.example", time.Hour); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Lock: %v, want an error that names %s", err, name)
		}
	}
}

func TestOpenSaysWhatAURLLooksLikeAndKeepsThePassword(t *testing.T) {
	for _, url := range []string{"", "localhost:6379", "http://user:secret@localhost", "redis://user:secret@localhost:6379/x", "redis://user:sec%zzret@localhost"} {
		s, err := redisstore.Open(url)
		if err == nil {
			t.Errorf("%q was opened", url)
			s.Close()
			continue
		}
		if !strings.Contains(err.Error(), "redis://localhost:6379/0") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
	s, err := redisstore.Open("redis://localhost:6379/3")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
