package bench

import (
	"bytes"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

var found int

// BenchmarkOnce is what a crawler does with most files: it parses one and decides once. It is compared, over the real
// files, with the pass that finds the lines. Its floor is the same by hand: fields, groups and rules as places in the
// file, which are kept, and the rules of one group matched as they are written. It knows no escapes, dialects, typos,
// records or limits, and another question would have to read all rules again.
//
//	go test -run XXX -bench Once -benchtime 101x -count 3
func BenchmarkOnce(b *testing.B) {
	var real []*site
	size := 0
	for _, s := range sites(b) {
		if !s.html {
			real, size = append(real, s), size+len(s.body)
		}
	}
	each := func(f func(body []byte)) func() {
		return func() {
			for _, s := range real {
				f(s.body)
			}
		}
	}
	pass := each(func(body []byte) { found += lines(body) })
	const target = "/articles/2026/a-page.html?id=42"
	b.Run("policy", func(b *testing.B) {
		once(b, size, each(func(body []byte) { decision = policy.Parse(body).Decide("ExampleBot", target) }), pass)
	})
	b.Run("floor", func(b *testing.B) {
		once(b, size, each(func(body []byte) { byHand, allowed = onceByHand(body, "examplebot", target) }), pass)
	})
}

func once(b *testing.B, size int, ours, pass func()) {
	var x, y, r []float64
	for b.Loop() {
		u, v := stopwatch(ours), stopwatch(pass)
		x, y, r = append(x, u), append(y, v), append(r, u/v)
	}
	report(b, x, y, r)
	b.ReportMetric(float64(size)*1000/median(x), "MB/s")
}

// lines finds the lines, as every reader of the file must.
func lines(body []byte) (n int) {
	for len(body) > 0 {
		i := bytes.IndexByte(body, '\n')
		if i < 0 {
			i = len(body) - 1
		}
		body = body[i+1:]
		n++
	}
	return n
}

type place struct {
	from, to int32
	group    int16
	allow    bool
}

var byHand []place

func onceByHand(body []byte, token, target string) (rules []place, allowed bool) {
	var own, star, group int16 = -1, -1, 0
	last := false // the last line named a crawler
	for at := 0; at < len(body); {
		line, next := body[at:], len(body)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
		}
		if i := bytes.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		field, value, ok := bytes.Cut(line, []byte(":"))
		field, value = bytes.TrimSpace(field), bytes.TrimSpace(value)
		switch {
		case !ok:
		case len(field) == 10 && bytes.EqualFold(field, []byte("user-agent")):
			if !last {
				group++
			}
			last = true
			if len(value) == len(token) && bytes.EqualFold(value, []byte(token)) {
				own = group
			} else if len(value) == 1 && value[0] == '*' {
				star = group
			}
		case len(field) == 5 && bytes.EqualFold(field, []byte("allow")), len(field) == 8 && bytes.EqualFold(field, []byte("disallow")):
			if last = false; len(value) > 0 {
				from := int32(at + bytes.Index(line, value))
				rules = append(rules, place{from, from + int32(len(value)), group, len(field) == 5})
			}
		}
		at = next
	}
	if own < 0 {
		own = star
	}
	allowed, longest := true, int32(-1)
	for _, r := range rules {
		if n := r.to - r.from; r.group == own && (n > longest || n == longest && r.allow) && matches(body[r.from:r.to], target) {
			allowed, longest = r.allow, n
		}
	}
	return rules, allowed
}

func matches(pattern []byte, target string) bool {
	for i, c := range pattern {
		switch {
		case c == '$' && i == len(pattern)-1:
			return target == ""
		case c == '*':
			for ; ; target = target[1:] {
				if matches(pattern[i+1:], target) {
					return true
				}
				if target == "" {
					return false
				}
			}
		case target == "" || target[0] != c:
			return false
		}
		target = target[1:]
	}
	return true
}
