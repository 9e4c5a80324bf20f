package cache_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// counted compares what a cache counts with what it weighs: the ratio, and the bytes of the
// heap. What other tests leave behind may come and go between two looks at the heap, but
// hardly in each of three tries, so the one nearest to a ratio of one is right.
func counted(make func() *cache.Cache) (ratio float64, bytes, grown int64) {
	for range 3 {
		b := int64(0)
		g := weight(func() any {
			c := make()
			b = c.Stats().Bytes
			return c
		})
		if r := float64(b) / float64(g); ratio == 0 || math.Abs(r-1) < math.Abs(ratio-1) {
			ratio, bytes, grown = r, b, g
		}
		if math.Abs(ratio-1) < 0.1 {
			break
		}
	}
	return ratio, bytes, grown
}

// weight is what goes when what was made goes.
func weight(make func() any) int64 {
	made := make()
	with := proc.Heap()
	runtime.KeepAlive(made)
	return with - proc.Heap()
}

// netHTTPHeader is a header as net/http makes it: all values are parts of one buffer.
func netHTTPHeader(fields ...string) http.Header {
	buffer := strings.Join(fields, "\n")
	h := http.Header{}
	for field := range strings.SplitSeq(buffer, "\n") {
		name, value, _ := strings.Cut(field, ": ")
		h.Add(name, value)
	}
	return h
}

// populations are what a crawl may fill a cache with.
var populations = []struct {
	name   string
	n      int
	answer func(i int) *fetch.Result
}{
	{"404", 5000, func(int) *fetch.Result {
		return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Header: netHTTPHeader("Date: Sat, 21 Nov 2026 12:00:00 GMT", "Content-Type: text/html", "Server: x")}
	}},
	{"unreachable", 5000, func(i int) *fetch.Result {
		return &fetch.Result{Policy: policy.Unreachable(), Err: fmt.Errorf("dial tcp: lookup host%d.example on 192.0.2.53:53: no such host", i)}
	}},
	{"a short file", 5000, func(i int) *fetch.Result {
		return fileResult("User-agent: *\nDisallow: /private"+fmt.Sprint(i)+"\n", "Date: Sat, 21 Nov 2026 12:00:00 GMT", "Etag: \"5f3e-61c0\"", "Last-Modified: Sat, 21 Nov 2026 12:00:00 GMT")
	}},
	{"a typical file", 2000, func(i int) *fetch.Result {
		var b strings.Builder
		for agent := range 3 {
			fmt.Fprintf(&b, "User-agent: bot%d\n", agent)
			for rule := range 15 {
				fmt.Fprintf(&b, "Disallow: /dir%d/%d/*.php\n", i, rule)
			}
		}
		b.WriteString("Sitemap: https://www.example.com/sitemap.xml\n")
		return fileResult(b.String(), "Date: Sat, 21 Nov 2026 12:00:00 GMT", "Etag: \"5f3e-61c0\"", "Cache-Control: max-age=3600, public", "Set-Cookie: "+strings.Repeat("x", 500), "Vary: Accept-Encoding")
	}},
	{"fields of 32 lines", 1000, manyLines(32)},
	{"fields of 8,000 lines", 200, manyLines(8000)},
	{"500 KiB of hostile rules", 5, func(i int) *fetch.Result { return fileResult(hostileFile(i)) }},
	{"500 KiB of groups", 5, func(i int) *fetch.Result {
		var b strings.Builder
		for n := 0; b.Len() < 499<<10; n++ {
			fmt.Fprintf(&b, "User-agent: b%d\nDisallow: /%d\n", n, i)
		}
		return fileResult(b.String())
	}},
}

// manyLines are answers as a custom transport or a Store may have them.
func manyLines(lines int) func(int) *fetch.Result {
	return func(i int) *fetch.Result {
		r := fileResult(fmt.Sprintf("User-agent: *\nDisallow: /%d\n", i))
		for _, name := range []string{"Etag", "Last-Modified", "Expires", "Date", "Age", "Vary", "Retry-After", "Cache-Control",
			"Content-Type", "Cf-Mitigated", "X-Amzn-Waf-Action", "X-Vercel-Mitigated"} {
			r.Header[name] = make([]string, lines)
		}
		return r
	}
}

func fileResult(body string, fields ...string) *fetch.Result {
	return &fetch.Result{StatusCode: 200, Policy: policy.Parse([]byte(body)), Body: []byte(body), Header: netHTTPHeader(fields...), Time: time.Now()}
}

// hostileFile has as many rules as fit, none of which is like another.
func hostileFile(i int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for n := 0; b.Len() < 499<<10; n++ {
		fmt.Fprintf(&b, "Disallow:/%x%x\n", n, i)
	}
	return b.String()
}

// longPath is of URLs that no entry may keep alive.
var longPath = strings.Repeat("path/", 500)

// fill asks for n origins of a population, and hands each result's maker its number.
func fill(t testing.TB, c *cache.Cache, from, n int, answer func(i int) *fetch.Result) {
	t.Helper()
	for i := from; i < from+n; i++ {
		load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return answer(i), nil }
		if _, _, err := c.Get(context.Background(), origin(t, fmt.Sprintf("https://www%d.example.com/%s", i, longPath)), &cache.Source{Load: load}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBytesAreCountedWithin20PercentOfTheHeap(t *testing.T) {
	tier.Gate(t)
	for i, p := range slices.Concat(populations, populations) {
		keep := i >= len(populations)
		ratio, bytes, grown := counted(func() *cache.Cache {
			c := &cache.Cache{MaxBytes: math.MaxInt64, KeepBody: keep}
			fill(t, c, 0, p.n, func(i int) *fetch.Result {
				r := p.answer(i)
				r.Body = append(make([]byte, 0, 2*len(r.Body)), r.Body...) // a part of what was read into
				return r
			})
			return c
		})
		if ratio < 0.8 || ratio > 1.2 {
			t.Errorf("%s, KeepBody %t: counted %d bytes for each of %d origins, the heap grew by %d: ratio %.2f, want 0.8 to 1.2", p.name, keep, bytes/int64(p.n), p.n, grown/int64(p.n), ratio)
		}
	}
}

// What is withheld while the Store is silent is counted like what is used.
func TestWhatIsWithheldIsCounted(t *testing.T) {
	var bytes [2]int64
	silent := new(memStore)
	silent.misbehave(on("Get", fails))
	for i, store := range []cache.Store{new(memStore), silent} {
		c := &cache.Cache{Store: store, Logger: quiet}
		fill(t, c, 0, 1, func(int) *fetch.Result {
			return unavailable(429, "Cache-Control", strings.Repeat("x", 2000), "Etag", strings.Repeat("x", 2000))
		})
		bytes[i] = c.Stats().Bytes
		closeCache(t, c)
	}
	if bytes[1] < bytes[0] {
		t.Errorf("%d bytes are counted with a Store that fails, want %d at least, as with one that does not", bytes[1], bytes[0])
	}
}

// A million origins stay within the bytes.
func TestAMillionOriginsStayWithinTheBytes(t *testing.T) {
	tier.Nightly(t)
	ratio, bytes, grown := counted(func() *cache.Cache {
		c := &cache.Cache{MaxBytes: 256 << 20}
		fill(t, c, 0, 1_000_000, populations[0].answer)
		return c
	})
	if bytes > 256<<20 || bytes < 250<<20 || ratio < 0.8 || ratio > 1.2 {
		t.Errorf("counted %d bytes, the heap grew by %d: ratio %.2f; want 250 to 256 MiB, 0.8 to 1.2", bytes, grown, ratio)
	}
	t.Logf("counted %d bytes, the heap grew by %d: ratio %.2f", bytes, grown, ratio)
}

// Names count too, of the Host field and of where that is reached.
func TestLongNamesAreCounted(t *testing.T) {
	tier.Gate(t)
	const n = 5000
	label := strings.Repeat("a", 60)
	for _, host := range []string{"", "a.test", label + "." + label + ".test"} {
		ratio, bytes, grown := counted(func() *cache.Cache {
			c := &cache.Cache{MaxBytes: math.MaxInt64}
			for i := range n {
				o, err := fetch.OriginOfRequest(request(t, fmt.Sprintf("https://%s.%[1]s.%[1]s.w%d.example/", label, i), host))
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := c.Get(t.Context(), o, &cache.Source{Load: (&site{serve: always(populations[0].answer(i))}).load}); err != nil {
					t.Fatal(err)
				}
			}
			return c
		})
		if ratio < 0.9 || ratio > 1.2 {
			t.Errorf("host %q: counted %d bytes for each origin, the heap grew by %d: ratio %.2f, want 0.9 to 1.2", host, bytes/n, grown/n, ratio)
		}
	}
}

func request(t *testing.T, link, host string) *http.Request {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{URL: u, Host: host}
}

// What is kept follows from what is read, so that 2 MiB, or 2.5 MiB with the file, need not be
// enforced: a policy is at most two and a half times its file, and a header is cut down.
func TestNoOriginTakesMoreThanItsShare(t *testing.T) {
	repeat := func(head, lines string) string {
		var b strings.Builder
		b.WriteString(head)
		for n := 0; b.Len() < 600<<10; n++ {
			fmt.Fprintf(&b, lines, n%100_000)
		}
		return b.String()
	}
	fields := make([]string, 0, 100)
	for _, name := range []string{"Etag", "Last-Modified", "Cache-Control", "Expires", "Date", "Age", "Vary", "Retry-After", "Set-Cookie",
		"Content-Type", "Cf-Mitigated", "X-Amzn-Waf-Action", "X-Vercel-Mitigated"} {
		fields = append(fields, name+": "+strings.Repeat("x", 8000))
	}
	for name, body := range map[string]string{
		"rules":               repeat("User-agent: *\n", "Allow:/%x\n"),
		"the shortest rules":  repeat("User-agent: *\n", "allow:%.0s*\n"),
		"rules to be escaped": repeat("User-agent: *\n", "allow:\xff%x\n"),
		"wildcards":           repeat("User-agent: *\n", "allow:*%x*$\n"),
		"short wildcards":     repeat("User-agent: *\n", "allow:%x*\n"),
		"escapes":             repeat("User-agent: *\n", "allow:/%x%%3A\n"),
		"either":              repeat("User-agent: *\n", "allow:/%x*%%2F\n"),
		"groups":              repeat("", "user-agent:b%x\nallow:/\n"),
		"names":               repeat("", "user-agent:%x\n"),
		"other records":       repeat("User-agent: *\n", "a%x:\n"),
		"sitemaps":            repeat("", "sitemap:%x\n"),
	} {
		dialects := []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}
		for _, d := range dialects[:len(dialects)/proc.Slowdown()] {
			r := fileResult("", fields...)
			r.Policy, r.Redirects = d.Parse([]byte(body)), []string{"https://a.example/" + strings.Repeat("x", 8000)}
			r.Body = []byte(body[:500<<10+1])
			for keep, most := range map[bool]int64{false: 2 << 20, true: 5 << 19} {
				c := &cache.Cache{KeepBody: keep}
				fill(t, c, 0, 1, func(int) *fetch.Result { return r })
				if got := c.Stats(); got.Origins != 1 || got.Bytes > most {
					t.Errorf("%s in dialect %v, KeepBody %t: %+v, want one origin of %d bytes at most", name, d, keep, got, most)
				}
			}
		}
	}
}

func TestTheOriginUnusedTheLongestGivesWay(t *testing.T) {
	one := new(cache.Cache)
	fill(t, one, 0, 1, populations[0].answer)
	limit := 100 * one.Stats().Bytes
	c := &cache.Cache{MaxBytes: limit}
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		ask := func(i int) {
			fill(t, c, i, 1, func(i int) *fetch.Result {
				fetches++
				return populations[0].answer(i)
			})
		}
		for i := range 1000 {
			ask(i)
			time.Sleep(2 * time.Second)
			ask(0) // in use all the time
		}
		if fetches != 1000 {
			t.Errorf("%d fetches, want one of each of 1000 origins: the one in use is not evicted", fetches)
		}
		if got := c.Stats(); got.Origins > 100 || got.Origins < 80 || got.Bytes > limit {
			t.Errorf("%+v, want 80 to 100 origins and %d bytes at most", got, limit)
		}
		ask(1)
		if fetches != 1001 {
			t.Errorf("%d fetches, want 1001: the one unused the longest is not kept", fetches)
		}
	})
}

func TestWhatDoesNotFitLeavesTheOthers(t *testing.T) {
	c := &cache.Cache{MaxBytes: 200 << 10}
	fill(t, c, 0, 50, populations[0].answer)
	before := c.Stats()
	fill(t, c, 50, 1, func(int) *fetch.Result { return fileResult(hostileFile(0)) })
	if after := c.Stats(); after != before {
		t.Errorf("%+v after one answer that is not kept, want %+v as before", after, before)
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
			t.Errorf("with KeepBody %t: %+v of 100 files of 100 KiB, want 35 origins or more, below 50 only if they are kept, and %d bytes at most", keep, got, limit)
		}
	}
}
