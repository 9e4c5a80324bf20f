package cache_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// wantFile fails the test unless r has the file of rules(path), and what it says reads the same in
// another dialect.
func wantFile(t *testing.T, when string, r *fetch.Result, path string) {
	t.Helper()
	want := string(rules(path).Body)
	if in := r.In(policy.Google); string(r.Body) != want || r.Err != nil || in.Err != nil || in.Policy.Decide("x", path).Allowed {
		t.Errorf("%s: %s with body %q, and in Google's dialect %s; want %q", when, brief(r), r.Body, brief(in), want)
	}
}

// A file is kept in memory and through every 304, and comes back from a Store, whichever Cache put it there.
func TestKeepBodyKeepsTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, path := new(memStore), "/private"
		s := &site{serve: func(_ int, prev *fetch.Result) *fetch.Result {
			if prev == nil {
				return rules(path, "ETag", `"v1"`, "Cache-Control", "max-age=600", "Content-Type", "text/plain")
			}
			wantFile(t, "to be validated", prev, path)
			return prev // as a 304 has it
		}}
		for i, keep := range []bool{true, true, false, true} {
			c := &cache.Cache{KeepBody: keep, Store: store, Logger: quiet}
			for range 3 {
				r := get(t, c, s, "https://a.example")
				if when := fmt.Sprintf("in process %d after %d fetches", i, s.count()); keep {
					wantFile(t, when, r, path)
				} else if r.Body != nil {
					t.Errorf("%s: body %q", when, r.Body)
				}
				if synctest.Wait(); keep && i < 2 && r.Header.Get("Content-Type") != "text/plain" {
					t.Errorf("the header is %v", r.Header)
				}
				time.Sleep(11 * time.Minute)
			}
			closeCache(t, c)
		}
		if n := s.count(); n < 10 {
			t.Errorf("%d fetches: none was validated in each process", n)
		}
	})
}

// A field of no consequence for freshness is dropped if it is too long, and the answer holds as long as it says.
func TestALongFieldThatComesWithABodyTakesNoLifetime(t *testing.T) {
	r := rules("/x", "Cache-Control", "max-age=60", "Content-Type", strings.Repeat("x", 9000))
	got := get(t, &cache.Cache{KeepBody: true}, &site{serve: always(r)}, "https://a.example")
	if len(got.Header) != 1 || got.Header.Get("Cache-Control") != "max-age=60" {
		t.Errorf("the header that is kept is %.100q", got.Header)
	}
}

func TestMaxBytesBoundsFilesThatAreKept(t *testing.T) {
	const limit = 4 << 20 // of 10 MiB
	long := func(int) *fetch.Result {
		return fileResult("User-agent: *\nDisallow: /x\n#" + strings.Repeat("x", 100<<10))
	}
	for _, keep := range []bool{true, false} {
		c := &cache.Cache{KeepBody: keep, MaxBytes: limit}
		fill(t, c, 0, 100, long)
		if got := c.Stats(); got.Bytes > limit || (got.Origins < 50) != keep || got.Origins < 35 {
			t.Errorf("with KeepBody %t: %+v of 100 files of 100 KiB", keep, got)
		}
	}
}
