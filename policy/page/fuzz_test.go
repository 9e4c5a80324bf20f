package page_test

import (
	"io"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// inPieces hands out a text in pieces of the given sizes, again and again.
type inPieces struct {
	text  string
	sizes []byte
	n     int
}

func (r *inPieces) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	size := len(r.text)
	if len(r.sizes) > 0 {
		size = min(int(r.sizes[r.n%len(r.sizes)]), size)
		r.n++
	}
	n := copy(p, r.text[:size])
	r.text = r.text[n:]
	return n, nil
}

func (r *inPieces) Close() error { return nil }

var pages = []string{
	`<?x <meta name=robots content=none> ?><meta name=robots content=nofollow>`,
	`<!doctype html><html><head><meta charset=utf-8><title>a <meta name=robots content=none></title><META NAME=Robots CONTENT="noindex, nofollow"></head><body>`,
	`<meta name=robots content=noindex><!-- <meta name=robots content=nofollow> --><meta name=a content=b>`,
	`<!--><meta name=robots content=a><!---><meta name=robots content=b><!----!><meta name=robots content=c><!-- --!- --><meta name=robots content=d><!--!>-->`,
	`<!-- --!--><meta name=robots content=a><!-- --!-><meta name=robots content=b>--><meta name=robots content=c>`,
	`<script>"<meta name=robots content=a>"</script ><meta name=robots content=b><script><!-- <script> </script> <meta name=robots content=c> --></script><meta name=robots content=d>`,
	`<script><!--<script></scrip</script><script--></script><meta name=robots content=e><script><!-- <a <meta></script><meta name=robots content=f>`,
	`<noscript><meta name=robots content=a></noscript><textarea><meta name=robots content=b></textareas></textarea/><meta name=robots content=c>`,
	`<a title="<meta name=robots content=a>" b='>' c=">"d=/><meta/name=robots/content=b/><meta name=robots content=c / ><meta =name=robots content=d>`,
	`<meta name="robots" name="x" content="no&#105;ndex" content=y><meta name=robots content='a>b'><meta content name=robots><meta name=robots content=">`,
	`</head ><meta name=a content=b></><meta name=c content=d></3 <meta>><meta name=e content=f><?php <meta> ?><meta name=g content=h><!x <meta>><!-x><meta name=i content=j>`,
	`<body/><style/><meta name=a content=b></style><plaintext><meta name=c content=d>`,
	"<meta\x00 name=a content=b><meta\fname\x00=a\tcontent=\r\nb><meta\vname=x content=y><meta name=a c\u0130ontent=b cOnTent=\x00>",
	`<iframe><meta name=a content=b></iframe><xmp><meta name=a content=b></xmp><noembed></noembed><noframes><meta name=a content=b></noframes><svg><title><meta name=c content=d></svg>`,
	strings.Repeat("<meta name=robots content=noindex>", 300),
}

// FuzzHeader holds what is read of field lines to what is true of any: every statement is a part of its line, an effect
// in its own words comes to the same, the statements with an effect come to it without the others, and the lines are
// read each on its own. In all but dates they equal the evaluator.
func FuzzHeader(f *testing.F) {
	for _, v := range ownFacts(f) {
		f.Add(strings.Join(v.Headers, "\n"), "googlebot")
	}
	f.Add("unavailable_after: Wed, 03 Dec 2025 13:09:53 GMT, a: b: noindex, :x, max-x: 1, *:none", "a")
	f.Fuzz(func(t *testing.T, field, token string) {
		lines := strings.Split(field, "\n")
		rules := page.ParseHeader(lines)
		n := 0
		for s := range rules.All() {
			n++
			if s.Line < 1 || s.Line > len(lines) || s.Text == "" || !strings.Contains(lines[s.Line-1], s.Text) || s.Offset != -1 {
				t.Errorf("%q: got statement %+v, which is no part of it", lines, s)
			}
		}
		if n > 256 {
			t.Errorf("got %d statements, want at most 256", n)
		}
		var byLine page.Rules
		for _, line := range lines {
			byLine = byLine.Add(page.ParseHeader([]string{line}))
		}
		for _, d := range dialects {
			e := rules.For(d, token)
			if each := byLine.For(d, token); each != e && !e.Incomplete {
				t.Errorf("%v: %q: got %v, want the effect of each line, %v", d, lines, e, each)
			}
			if e.Incomplete {
				continue
			}
			if d == policy.RFC9309 || d == policy.Google {
				if again := page.ParseHeader([]string{e.String()}).For(d); again != e {
					t.Errorf("%v: %q: %v reads as %v, want it again", d, lines, e, again)
				}
			}
			var effective page.Rules
			for s, why := range rules.Explain(d, token) {
				if why == "" {
					effective = effective.Add(again(s))
				}
				if s.Problem != "" && why != s.Problem {
					t.Errorf("%v: %v: got %q, want its problem, %q", d, s, why, s.Problem)
				}
			}
			got := effective.For(d, token)
			if e.NoSnippet { // which is stricter than any length
				got.MaxSnippet = e.MaxSnippet
			}
			if got != e {
				t.Errorf("%v: %q: the statements with an effect come to %v, want %v", d, lines, got, e)
			}
		}
	})
}

// again reads a statement in other words.
func again(s page.Statement) page.Rules {
	line := s.Rule
	if s.Value != "" {
		line += ":" + s.Value
	}
	if s.Scope != "" {
		line = s.Scope + ":" + line
	}
	return page.ParseHeader([]string{line})
}
