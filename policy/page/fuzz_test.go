package page_test

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// element is a meta element that a reader of pages reports.
type element struct {
	name, content string
	offset        int64
}

// elements reads a page with x/net/html's Tokenizer alone, the whole of it in
// memory: what the Reader must find.
func elements(text string, xhtml, headOnly bool) (all []element) {
	offset := int64(0)
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		t := z.Next()
		at := offset
		offset += int64(len(z.Raw()))
		switch t {
		case html.ErrorToken:
			return all
		case html.EndTagToken:
			if name, _ := z.TagName(); headOnly && string(name) == "head" {
				return all
			}
			continue
		case html.StartTagToken, html.SelfClosingTagToken:
		default:
			continue
		}
		b, more := z.TagName()
		name := string(b)
		if headOnly && name == "body" {
			return all
		}
		if name == "noscript" || xhtml && t == html.SelfClosingTagToken {
			z.NextIsNotRawText()
		}
		if name != "meta" {
			continue
		}
		attributes := map[string]string{}
		for more {
			var key, value []byte
			key, value, more = z.TagAttr()
			if _, twice := attributes[string(key)]; !twice {
				attributes[string(key)] = string(value)
			}
		}
		content, ok := attributes["content"]
		if attributes["name"] != "" && ok {
			all = append(all, element{attributes["name"], content, at})
		}
	}
}

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

// FuzzPage holds the Reader to x/net/html's Tokenizer: it finds the same meta
// elements in the same places, however the page arrives, and hands on the page.
func FuzzPage(f *testing.F) {
	for _, text := range pages {
		f.Add(text, []byte{1}, uint8(0))
		f.Add(text, []byte{3, 200}, uint8(1))
		f.Add(text, []byte{}, uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, sizes []byte, mode uint8) {
		if len(text) > 16<<10 || slices.Contains(sizes, 0) || len(text) >= 2 && (text[0] == 0 || text[1] == 0 || text[0] >= 0xFE) {
			return // limits and UTF-16 have tests of their own
		}
		xhtml, headOnly := mode&1 != 0, mode&2 != 0
		contentType := "text/html"
		if xhtml {
			contentType = "application/xhtml+xml"
		}
		want := elements(text, xhtml, headOnly)
		var got []element
		r := &page.Reader{
			Body: &inPieces{text: text, sizes: sizes}, ContentType: contentType, HeadOnly: headOnly,
			Meta: func(name, content string, offset int64) { got = append(got, element{name, content, offset}) },
		}
		var copied bytes.Buffer
		var err error
		if mode&4 != 0 {
			_, err = r.WriteTo(&copied)
		} else {
			_, err = copied.ReadFrom(struct{ io.Reader }{r})
		}
		if err != nil || copied.String() != text {
			t.Fatalf("got %d bytes and %v, want the page's %d", copied.Len(), err, len(text))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in %q got\n%+v, want\n%+v", text, got, want)
		}
		rules := page.Rules{}
		for _, e := range want {
			rules = rules.Add(page.ParseMeta(e.name, e.content))
		}
		equal(t, r.Rules(), rules, text)
		if !xhtml && !headOnly {
			equal(t, page.ParseHTML([]byte(text)), rules, text)
		}
	})
}

// equal compares what readers came to with the whole page at hand and in pieces.
// Elements that only look like rules differ, but have no effect.
func equal(t *testing.T, got, want page.Rules, text string) {
	t.Helper()
	for _, d := range dialects {
		tokens := []string{"googlebot", "yandex", "bingbot", "a"}
		g, w := got.For(d, tokens...), want.For(d, tokens...)
		if g.Incomplete || w.Incomplete {
			continue // past 256 statements, those that look like rules make a difference
		}
		if g != w {
			t.Fatalf("%v: of %q got %v, want %v", d, text, g, w)
		}
	}
}

// plain is text in which the evaluator's ideas of white space and case are ours.
var plain = regexp.MustCompile(`^[ -~\t\n]*$`)

// FuzzHeader holds what is read of field lines to what is true of any: every
// statement is a part of its line, an effect in its own words comes to the same,
// the statements with an effect come to it without the others, and the lines are
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
			if d != policy.Original && plain.MatchString(field) && plain.MatchString(token) {
				want := evaluate(lines, d, []string{token})
				if want.UnavailableAfter = e.UnavailableAfter; e != want { // dates have forms that it does not know
					t.Errorf("%v: %q for %q: got %v, want %v of the evaluator", d, lines, token, e, want)
				}
			}
			if d == policy.RFC9309 || d == policy.Google {
				if again := page.ParseHeader([]string{e.String()}).For(d); again != e {
					t.Errorf("%v: %q: %v reads as %v", d, lines, e, again)
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
