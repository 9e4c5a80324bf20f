package policy_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// heap returns the bytes and objects that are alive.
func heap() (alive, objects int) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the scratch space of the parser survives one
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc), int(m.HeapObjects)
}

func TestSizeIsTheMemoryThatIsKept(t *testing.T) {
	files := vectors.Corpus(t)
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
		policies := make([]*policy.Policy, 0, len(files))
		held, objects := heap()
		for _, body := range files {
			policies = append(policies, d.Parse(body))
		}
		after, alive := heap()
		held, objects = after-held, alive-objects
		size := 0
		for _, p := range policies {
			size += p.Size()
		}
		t.Logf("%v: %d bytes by Size, %d in the heap, %d for a file on average; %.2f objects for a file", d, size, held, held/len(files), float64(objects)/float64(len(files)))
		if size < held*8/10 || size > held*12/10 {
			t.Errorf("%v: Size says %d bytes, the heap %d: not within 20 %%", d, size, held)
		}
		if objects > 7*len(files) {
			t.Errorf("%v: %d objects for %d files, want at most 7 for each", d, objects, len(files))
		}
		runtime.KeepAlive(policies)
	}
}

// A file of any size is counted: those that fill what the allocator hands out, and those
// that begin another page.
func TestSizeOfFilesOfAllSizes(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules int
		names int
	}{
		{"one rule", 1, 1}, {"ten rules", 10, 1}, {"forty rules", 40, 1}, {"a hundred rules", 100, 1},
		{"a thousand rules", 1000, 1}, {"just above four pages", 1830, 1}, {"many pages", 20_000, 1}, {"many names", 1, 30},
	} {
		var file bytes.Buffer
		for i := range c.names {
			fmt.Fprintf(&file, "user-agent: b%d\n", i)
		}
		for i := range c.rules {
			fmt.Fprintf(&file, "disallow: /%07d\n", i)
		}
		// So many that what the rest of the process does meanwhile is one in a hundred.
		size := policy.Parse(file.Bytes()).Size()
		n := max(20, 1<<20/size)
		policies := make([]*policy.Policy, n)
		for i := range policies {
			policies[i] = policy.Parse(file.Bytes())
		}
		with, _ := heap()
		runtime.KeepAlive(policies)
		policies = nil
		without, _ := heap()
		kept := (with - without) / n
		ratio := float64(size) / float64(kept)
		t.Logf("%s: %d bytes, ratio %.2f", c.name, kept, ratio)
		if ratio < 0.83 || ratio > 1.1 {
			t.Errorf("%s: Size is %d bytes, the heap has %d: ratio %.2f", c.name, size, kept, ratio)
		}
	}
}

func TestSharedPoliciesCostNothing(t *testing.T) {
	for name, p := range map[string]*policy.Policy{
		"Unavailable": policy.Unavailable(), "Unreachable": policy.Unreachable(),
		"empty file": policy.Parse(nil), "nil": nil,
	} {
		if got := p.Size(); got != 0 {
			t.Errorf("%s: Size is %d, want 0", name, got)
		}
	}
}

func TestParseAllocatesLittle(t *testing.T) {
	if testing.Short() || proc.UnderRace() {
		t.Skip("the race detector empties pools at random")
	}
	allocs, files := 0.0, vectors.Corpus(t)
	for _, body := range files {
		allocs += testing.AllocsPerRun(3, func() { parsed = policy.Parse(body) })
	}
	if mean := allocs / float64(len(files)); mean > 8 {
		t.Errorf("Parse allocates %.2f times for a file on average, want at most 8", mean)
	}
}

// hostile holds files of 500 KiB that are made to cost as much as they can.
func hostile() map[string][]byte {
	const limit = 500 << 10
	fill := func(head, format string) []byte {
		var b bytes.Buffer
		b.WriteString(head)
		for i := 0; b.Len() < limit-64; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.Bytes()
	}
	all := "user-agent: *\n"
	return map[string][]byte{
		"tiny rules":         fill(all, "allow:/%x\n"),
		"growing rules":      growing(limit),
		"leading wildcards":  fill(all, "disallow:/*a%d\n"),
		"byte filter beaten": filterBeaten(limit),
		"stems":              fill(all, "disallow:/%x*x\n"),
		"one pattern":        []byte(all + "disallow: /" + strings.Repeat("a", limit-64)),
		"star pattern":       []byte(all + "disallow: /" + strings.Repeat("*a", limit/2-64)),
		"stars":              []byte(all + "disallow: /" + strings.Repeat("*", limit-64)),
		"long stars":         fill(all, "disallow: /*"+strings.Repeat("a", 100)+"b%d\n"),
		"escapes":            fill(all, "disallow:/"+strings.Repeat("%%zz", 20)+"%d\n"),
		"raw bytes":          fill(all, "disallow:/"+strings.Repeat("\xff", 20)+"%d\n"),
		"many names":         fill("", "user-agent:%x\n"),
		"names with tails":   fill("", "user-agent:%x b\n"),
		"names and rules":    append(fill("", "user-agent:%x\n")[:limit/2], fill("", "disallow:/%x\n")[:limit/2]...),
		"many groups":        fill("", "user-agent:%[1]x\nallow:/%[1]x\n"),
		"repeated groups":    fill("", "user-agent:*\nallow:/%x\n"),
		"shared groups":      fill("", "user-agent:*\nuser-agent:%[1]x\nallow:/%[1]x\n"),
		"overlapping groups": overlapping(limit),
		"sitemaps":           fill("", "sitemap:http://a/%d\n"),
		"empty records":      bytes.Repeat([]byte("a:\n"), limit/3),
		"bare CR":            bytes.Repeat([]byte("\r"), limit),
		"bare CR lines":      bytes.Repeat([]byte("allow:/a\r"), limit/9),
		"colons":             bytes.Repeat([]byte(":"), limit),
		"spaces":             bytes.Repeat([]byte(" "), limit),
		"no line end":        bytes.Repeat([]byte("a"), limit),
		"reserved":           fill(all, "allow:/page%x%%3A\n"),
		"short wildcards":    fill(all, "allow:%x*\n"),
		"either":             fill(all, "allow:/page%x*%%2F\n"),
		"either, leading":    fill(all, "disallow:/*a%d%%2F*b\n"),
		"either, one":        []byte(all + "disallow: /" + strings.Repeat("*%2Fa", limit/5-64)),
		"an index each":      fill(all, "Allow:üü/index.htm\n"),
		"UTF-16":             append([]byte("\xff\xfe"), bytes.Repeat([]byte("a\x00\n\x00"), limit/4)...),
	}
}

// growing returns rules each of which begins with the one before.
func growing(limit int) []byte {
	var b bytes.Buffer
	b.WriteString("user-agent: *\n")
	for n := 1; b.Len()+n+20 < limit; n++ {
		b.WriteString("disallow: /" + strings.Repeat("a", n) + "\n")
	}
	return b.Bytes()
}

// filterBeaten returns wildcard rules whose pairs of bytes all occur in hostileTarget.
func filterBeaten(limit int) []byte {
	var b bytes.Buffer
	b.WriteString("user-agent: *\n")
	for i := 0; b.Len() < limit-64; i++ {
		b.WriteString("disallow: /*")
		for n := i + 1<<16; n > 0; n >>= 1 {
			b.WriteByte("ab"[n&1])
		}
		b.WriteString("*c\n")
	}
	return b.Bytes()
}

// hostileTarget holds every short sequence of a and b and nothing that filterBeaten ends in.
func hostileTarget(n int) string {
	var b strings.Builder
	b.WriteByte('/')
	for x := uint32(1); b.Len() < n; {
		b.WriteByte("ab"[x&1])
		x = x>>1 ^ -(x&1)&0x80200003
		if x == 0 {
			x = 1
		}
	}
	return b.String()
}

// overlapping returns groups that share their names in ever other ways.
func overlapping(limit int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < limit-512; i++ {
		for j := range 16 {
			if (uint64(i)*2654435761>>j)&1 == 0 {
				fmt.Fprintf(&b, "user-agent:b%d\n", j)
			}
		}
		for j := range 4 {
			fmt.Fprintf(&b, "allow:/%x\n", i*4+j)
		}
	}
	return b.Bytes()
}

func TestHostileFilesKeepLittleMemory(t *testing.T) {
	const limit = 3 << 20
	for name, body := range hostile() {
		t.Run(name, func(t *testing.T) {
			before, _ := heap()
			for _, d := range dialects {
				if proc.UnderRace() && d != policy.RFC9309 {
					continue // collecting garbage takes its time there
				}
				p := d.Parse(body)
				after, _ := heap()
				if kept := after - before; kept > limit {
					t.Errorf("%v: %d bytes of a file of %d, want at most %d (Size %d)", d, kept, len(body), limit, p.Size())
				}
				runtime.KeepAlive(p)
			}
		})
	}
}

// The rules of a file may grow to three times its size. One that no server sends
// in good faith is refused whole: what it says can neither be kept nor left out.
func TestFileThatGrowsTooLargeForbidsEverything(t *testing.T) {
	for _, head := range []string{"user-agent: *\n", "user-agent:\n", "sitemap: https://a/b\nuser-agent:\n"} { // in two of them the rules apply to no crawler
		if d := policy.Parse([]byte(head+"allow: /"+strings.Repeat("\xff", 400<<10))).Decide("a", "/"); d.Reason != policy.ReasonUnreachable {
			t.Errorf("%q: got %v, want it unreachable", head, d)
		}
	}
	if d := policy.Parse([]byte("user-agent: *\n"+strings.Repeat("disallow: /été\n", 20_000))).Decide("a", "/y"); !d.Allowed {
		t.Errorf("a file of 340 kB of honest rules: got %v, want /y allowed", d)
	}
}
