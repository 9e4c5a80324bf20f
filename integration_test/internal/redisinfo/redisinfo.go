// Package redisinfo is for tests: it reads the numbers that a Redis tells of itself.
package redisinfo

import (
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Number is one of a section of INFO.
func Number(t testing.TB, client redis.Cmdable, section, name string) float64 {
	t.Helper()
	info, err := client.InfoMap(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range info {
		if text, ok := fields[name]; ok {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in %v", name, info)
	return 0
}
