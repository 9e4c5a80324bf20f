package policy_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// Results are kept so that the compiler keeps the work.
var (
	parsed  *policy.Policy
	decided policy.Decision
)

// realFiles returns the files of the corpus that are no web pages, by size.
func realFiles(tb testing.TB) [][]byte {
	var files [][]byte
	for body := range maps.Values(vectors.Corpus(tb)) {
		if bytes.Contains(bytes.ToLower(body), []byte("user-agent")) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
			files = append(files, body)
		}
	}
	slices.SortFunc(files, func(a, b []byte) int { return len(a) - len(b) })
	return files
}

func BenchmarkParse(b *testing.B) {
	files := realFiles(b)
	for _, c := range []struct {
		name  string
		files [][]byte
	}{{"corpus", files}, {"median", files[len(files)/2:][:1]}} {
		b.Run(c.name, func(b *testing.B) {
			size := 0
			for _, f := range c.files {
				size += len(f)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range c.files {
					parsed = policy.Parse(f)
				}
			}
			b.ReportMetric(float64(len(c.files)), "files")
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	files := vectors.Corpus(b)
	type question struct {
		group  policy.Group
		target string
	}
	var questions []question
	policies := map[string]*policy.Policy{}
	for _, f := range vectors.Queries(b) {
		if policies[f.File] == nil {
			policies[f.File] = policy.Parse(files[f.File])
		}
		url, _, _ := strings.Cut(f.URL, "#")
		_, target, _ := strings.Cut(strings.TrimPrefix(url[strings.Index(url, "://")+1:], "//"), "/")
		questions = append(questions, question{policies[f.File].Group(f.Agents[0]), "/" + target})
	}
	b.Run("corpus", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			q := &questions[i%len(questions)]
			decided = q.group.Decide(q.target)
			i++
		}
	})
	b.Run("ten", func(b *testing.B) {
		g := policy.Parse([]byte("user-agent: *\n" + tenRules)).Group("ExampleBot")
		b.ReportAllocs()
		for b.Loop() {
			decided = g.Decide("/products/shoes/item-12345.html?color=red")
		}
	})
}

func BenchmarkGroup(b *testing.B) {
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "user-agent: bot-%d\ndisallow: /%d\n", i, i)
	}
	for name, file := range map[string]string{"one": "user-agent: *\n", "five hundred": many.String() + "user-agent: *\n"} {
		p := policy.Parse([]byte(file + tenRules))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decided = p.Group("ExampleBot").Decide("/products/shoes/item-12345.html?color=red")
			}
		})
	}
}

const tenRules = `Disallow: /admin/
Disallow: /cart
Disallow: /checkout
Disallow: /search
Disallow: /*?sort=
Disallow: /account/
Disallow: /tmp/
Disallow: /private/
Allow: /search/about
Disallow: /login
`

// BenchmarkHostile asks files of 500 KiB that are made to cost what they can.
func BenchmarkHostile(b *testing.B) {
	for name, body := range hostile() {
		b.Run("parse/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				parsed = policy.Parse(body)
			}
		})
		g := policy.Parse(body).Group("b3")
		for _, target := range []string{hostileTarget(2_000), hostileTarget(8_000), "/" + strings.Repeat("a", 8_000)} {
			b.Run(fmt.Sprintf("decide/%s/%d%s", name, len(target), target[1:4]), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					decided = g.Decide(target)
				}
			})
		}
	}
}
