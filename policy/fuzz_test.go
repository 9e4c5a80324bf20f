package policy_test

import (
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// FuzzParse holds every dialect to what is true of any file: nothing panics, and
// the canonical text decides as the file does.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"user-agent: *\ndisallow: /\n",
		"User-agent: a\nUser-agent: b/1.0 (x)\n\nDisallow: /x*y$\nAllow: /%7e\nCrawl-delay: 5\nUser-agent: A\nDisallow: /%zz$$\nSitemap: http://x/\n",
		"\xef\xbb\xbfuser-agent: foo\rdisallow: /ツ\r\nallow: /index.html\r",
		"\xff\xfeu\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00t\x00:\x00*\x00\n\x00d\x00i\x00s\x00a\x00l\x00l\x00o\x00w\x00:\x00/\x00",
	} {
		f.Add([]byte(s), "a", "/x/y")
	}
	f.Fuzz(func(t *testing.T, file []byte, token, target string) {
		for _, d := range dialects {
			p := d.Parse(file)
			text := p.String()
			q := d.Parse([]byte(text))
			for _, token := range []string{token, "*", "a"} {
				got, want := q.Decide(token, target), p.Decide(token, target)
				got.Rule.Line, want.Rule.Line = 0, 0
				if len(text) < 10_000 && got != want {
					t.Errorf("%v: %q asks for %q: got %v from the canonical text, want %v\nfile %q\ntext %q", d, token, target, got, want, file, text)
				}
			}
			if len(text) < 10_000 && q.String() != text {
				t.Errorf("%v: canonical text %q of %q became %q", d, text, file, q.String())
			}
		}
	})
}
