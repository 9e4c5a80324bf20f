package integration_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
)

// What a redirect says of its own reuse holds for what it led to, after a restart, too.
func TestARedirectsCacheControlIsRead(t *testing.T) {
	for field, want := range map[string]int{"no-store": 2, "max-age=0": 2, "max-age=86400": 1, "": 1} {
		t.Run(field, func(t *testing.T) {
			var changed atomic.Bool
			target, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=86400")
				io.WriteString(w, rules)
			})
			site, record := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if changed.Load() {
					io.WriteString(w, "User-agent: *\nDisallow: /\n")
					return
				}
				if field != "" {
					w.Header().Set("Cache-Control", field)
				}
				http.Redirect(w, r, target+"/robots.txt", http.StatusFound)
			})
			path := t.TempDir()
			for run := range 2 { // the second of another process
				store, err := dirstore.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				rt := gate(nil)
				rt.Cache = &cache.Cache{Store: store, MinTTL: -1}
				forbidden := changed.Load() && want == 2
				if ok, err := do(t.Context(), rt, site+"/public"); ok == forbidden {
					t.Errorf("run %d: /public sent %v (%v), want %v", run, ok, err, !forbidden)
				}
				if err := rt.Cache.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				changed.Store(true)
			}
			if n := len(record.of("/robots.txt")); n != want {
				t.Errorf("robots.txt was asked for %d times, want %d", n, want)
			}
		})
	}
}
