package gatebench

import (
	"net/http"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// silent is robots with other records, as real files have them, and no preference.
const silent = "Sitemap: https://www.example.com/sitemap.xml\nHost: www.example.com\n" + robots + "Crawl-delay: 1\n"

// usesOver is the gate with declared uses, or without.
func usesOver(uses ...string) http.RoundTripper {
	base := newCanned()
	base.bodies = func() []byte { return []byte(silent) }
	rt := gateOver(base)
	rt.Uses = uses
	return rt
}

// BenchmarkUses is a gate with declared uses over a file that says nothing about use, beside one without.
func BenchmarkUses(b *testing.B) {
	req := request(b, "http://www.example.com/articles/2026/a-page.html")
	side := func(rt http.RoundTripper) func() time.Duration {
		return sides.Took(func() {
			for range 2_000 {
				rt.RoundTrip(req)
			}
		})
	}
	with, without := side(usesOver("train-ai", "search")), side(usesOver())
	with()
	without()
	sides.Compare(b, 2_000, with, without)
}

// Declared uses allocate nothing where the file says nothing about use, as nearly all files do.
func TestUsesAllocateNothing(t *testing.T) {
	if proc.UnderRace() {
		t.Skip("the race detector allocates")
	}
	req, with := request(t, "http://www.example.com/articles/2026/a-page.html"), usesOver("train-ai", "search")
	if n := testing.AllocsPerRun(100, func() { with.RoundTrip(req) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
