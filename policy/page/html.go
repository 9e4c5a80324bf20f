package page

import (
	"bytes"
	"slices"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// maxReuse is how long a tag may be for its Tokenizer to go on. That clears a map of attributes for
// each tag, which takes as long as the tag with the most of them did.
const maxReuse = 1 << 10

// rawElements are the elements whose content is no markup to a Tokenizer, but is in svg and math.
var rawElements = [...]string{"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"}

// A scanner reads the meta elements of a page: what x/net/html's Tokenizer finds, except that the content of noscript
// is markup, as for a reader without scripts, and that "/>" closes an element in svg and math (HTML §13.2.6.5). Where
// the parser of a browser may see a meta element in what is passed over, the rules are incomplete.
type scanner struct {
	listParser
	foreign int  // svg and math elements that are open
	doubt   bool // HTML may stand in them, where "/>" closes nothing
}

// scan reads what is kept of the page. There may be more of it.
func (r *Reader) scan(more bool) Rules {
	text, width := decoded(r.text, r.ContentType)
	var s scanner
	// After an escape of ISO-2022-JP, bytes of characters pass for markup. In UTF-16, nothing is looked for behind the limit.
	s.incomplete = bytes.IndexByte(text, 0x1B) >= 0 || more && width == 2
	z := html.NewTokenizer(bytes.NewReader(text))
	long := false
	for at := 0; ; {
		kind := z.Next()
		token := text[at : at+len(z.Raw())]
		if kind == html.ErrorToken {
			var unfinished seeker
			s.incomplete = s.incomplete || more && unfinished.finds(text[at:])
			return s.Rules
		}
		b, _ := z.TagName()
		name := string(b)
		start := kind == html.StartTagToken || kind == html.SelfClosingTagToken
		if start && name == "meta" {
			r.element(&s, z, int64(at)*width)
			token = token[1:]
		}
		if name == "noscript" || kind == html.SelfClosingTagToken && (isXHTML(r.ContentType) || s.foreign > 0) {
			z.NextIsNotRawText()
		}
		raw := start && slices.Contains(rawElements[:], name)
		s.passOver(kind, name, raw, token)
		if at += len(z.Raw()); len(token) > maxReuse {
			long = true
		}
		if long && !raw { // else the next token depends on this one
			z, long = html.NewTokenizer(bytes.NewReader(text[at:])), false
		}
	}
}

// passOver follows where svg and math begin and end, and notes what a token may hide there.
func (s *scanner) passOver(kind html.TokenType, name string, raw bool, token []byte) {
	if s.foreign > 0 || s.doubt {
		var hidden seeker
		s.incomplete = s.incomplete || hidden.finds(token)
		s.doubt = s.doubt || raw && kind == html.SelfClosingTagToken
	}
	if name != "svg" && name != "math" {
		return
	}
	switch kind {
	case html.StartTagToken:
		s.foreign++
	case html.EndTagToken:
		s.foreign = max(0, s.foreign-1)
	}
}

// element reads a meta element.
func (r *Reader) element(s *scanner, z *html.Tokenizer, offset int64) {
	a := map[string]string{}
	for more := true; more; {
		var key, value []byte
		if key, value, more = z.TagAttr(); key != nil { // the first of two equal keys only
			a[string(key)] = string(value)
		}
	}
	content, ok := a["content"]
	name, named := a["name"]
	switch {
	case !ok || named && name == "":
	case named:
		if r.Meta != nil && offset >= r.told {
			r.told = offset + 1
			r.Meta(name, content, offset)
		}
		s.meta(name, content, offset, "")
	case ascii.FoldEqual(trim(a["http-equiv"]), "x-robots-tag"):
		s.meta("", content, offset, `http-equiv="X-Robots-Tag" makes no robots rules: name="robots" does`)
	case ascii.FoldEqual(trim(a["property"]), "robots"):
		s.meta("", content, offset, `property="robots" makes no robots rules: name="robots" does`)
	}
}
