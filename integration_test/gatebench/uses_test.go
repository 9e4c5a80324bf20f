package gatebench

import (
	"net/http"
	"testing"
	"time"

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

// BenchmarkUses is a gate with declared uses, over a file that says nothing about use.
func BenchmarkUses(b *testing.B) {
	const page = "http://www.example.com/articles/2026/a-page.html"
	b.Run("none", func(b *testing.B) { run(b, usesOver(), request(b, page)) })
	b.Run("two", func(b *testing.B) { run(b, usesOver("train-ai", "search"), request(b, page)) })
}

// Declared uses cost a tenth of the warm gate at most where the file says nothing about
// use, as nearly all files do, and no allocation. The two take turns, and the least of each
// counts.
func TestUsesCostATenthAtMost(t *testing.T) {
	if testing.Short() || proc.UnderRace() {
		t.Skip("compares times")
	}
	req := request(t, "http://www.example.com/articles/2026/a-page.html")
	without, with := usesOver(), usesOver("train-ai", "search")
	if n := testing.AllocsPerRun(100, func() { with.RoundTrip(req) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
	took := func(rt http.RoundTripper) time.Duration { return took(2_000, func() { rt.RoundTrip(req) }) }
	a, b := took(without), took(with)
	times := 0.0
	for try := range 500 {
		a, b = min(a, took(without)), min(b, took(with))
		if times = float64(b) / float64(a); try > 200 && times <= 1.1 {
			break
		}
	}
	t.Logf("%.3f times: %v and %v", times, a/2_000, b/2_000)
	if times > 1.1 {
		t.Errorf("got %.2f times the gate without uses, want 1.1", times)
	}
}
