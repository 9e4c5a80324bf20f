package page

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// maxPage is how many bytes of a page are kept for the Tokenizer. The head of a page has a tenth of that.
const maxPage = 256 << 10

// A Reader is the body of a response that looks for meta elements in what its caller reads. It hands over each piece as
// soon as Body does, and never reads on its own account:
//
//	body := &page.Reader{Body: resp.Body, ContentType: resp.Header.Get("Content-Type")}
//	resp.Body = body
//
// Bodies that are not HTML are passed on untouched. Of HTML the first 256 KiB are kept, for as long as the Reader is.
// If a meta element seems to follow them, the rules are incomplete.
//
// Body must be decoded: of a gzipped one nothing can be read. The rules of a page in UTF-16 or ISO-2022-JP are
// incomplete.
//
// Like its Body, a Reader is for one goroutine at a time, but Close may be called while another reads if that holds for
// Body. A Reader must not be copied. The zero Reader is an empty page.
type Reader struct {
	// Body is the body of the response. If nil, it is empty.
	Body io.ReadCloser

	// ContentType is the Content-Type field of the response. If empty, the body is taken for HTML.
	ContentType string

	// Header are the X-Robots-Tag field lines of the response, with whose statements
	// Rules begins; see ParseHeader. If nil, Rules has those of the page alone.
	Header []string

	text   []byte // that is kept
	behind []byte // the last bytes that were read, if that is more than the text
	later  bool   // a meta element seems to stand there
	ended  bool   // the page has been read to the end
}

// Read reads from Body.
func (r *Reader) Read(p []byte) (int, error) {
	if r.Body == nil {
		return 0, io.EOF
	}
	n, err := r.Body.Read(p)
	if isHTML(r.ContentType) {
		r.look(p[:n], err)
	}
	return n, err
}

// Close closes Body.
func (r *Reader) Close() error {
	if r.Body == nil {
		return nil
	}
	return r.Body.Close()
}

// Rules returns the statements of Header and those of the meta elements that have been read so far. They are complete,
// see [Rules.Incomplete], if the page has been read to its end and did not go beyond a limit.
func (r *Reader) Rules() Rules {
	rules := ParseHeader(r.Header).Add(r.scan(nil))
	rules.incomplete = rules.incomplete || r.later || !r.ended && r.Body != nil && isHTML(r.ContentType)
	return rules
}

// Metas calls f for each meta element with a name and a content that has been read so far, those that are not for
// crawlers included, with the values of the attributes and the element's offset in the body.
func (r *Reader) Metas(f func(name, content string, offset int64)) { r.scan(f) }

// look keeps what has been read, or looks whether there is more to read in it.
func (r *Reader) look(p []byte, err error) {
	r.ended = r.ended || err == io.EOF
	room := min(len(p), maxPage-len(r.text))
	r.text = append(r.text, p[:room]...)
	if p = p[room:]; len(p) == 0 {
		return
	}
	if r.behind == nil {
		r.behind = lastOf(r.text)
	}
	p = append(r.behind, p...)
	r.later = r.later || begins(p)
	r.behind = lastOf(p)
}

const start = "<meta"

// begins reports whether a meta element seems to begin in a text.
func begins(text []byte) bool { return bytes.Contains(bytes.ToLower(text), []byte(start)) }

// lastOf returns a copy of the end of a text, where half of a start may stand.
func lastOf(text []byte) []byte { return bytes.Clone(text[max(0, len(text)-len(start)+1):]) }

// ParseHTML returns the statements of the meta elements of a page, as a [Reader] does that has read it to the end.
func ParseHTML(page []byte) Rules {
	var r Reader
	r.look(page, io.EOF)
	return r.Rules()
}

func isHTML(contentType string) bool {
	return holds([]string{"", "text/html"}, mediaType(contentType)) || isXHTML(contentType)
}

// isXHTML recognizes XML, where <script/> is an empty element.
func isXHTML(contentType string) bool {
	return holds([]string{"application/xhtml+xml", "application/vnd.wap.xhtml+xml"}, mediaType(contentType))
}

// mediaType cuts the parameters of a Content-Type, and a second value that a server sent beside it.
func mediaType(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	return trim(contentType)
}

// maxReuse is how long a tag may be for its Tokenizer to go on. That clears a map of attributes for
// each tag, which takes as long as the tag with the most of them did.
const maxReuse = 1 << 10

// rawElements are the elements whose content is no markup to a Tokenizer, but is in svg and math.
var rawElements = [...]string{
	"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext",
}

// A scanner reads the meta elements of a page: what x/net/html's Tokenizer finds, except that the content of noscript
// is markup, as for a reader without scripts, and that "/>" closes an element in svg and math (HTML §13.2.6.5). Where
// the parser of a browser may see a meta element in what is passed over, the rules are incomplete.
type scanner struct {
	listParser
	foreign [2]int // svg and math elements that are open
	doubt   bool   // HTML may stand in them, where "/>" closes nothing
}

// scan reads what is kept of the page. It calls f, if any, for each meta element with a name and a content.
func (r *Reader) scan(f func(name, content string, offset int64)) Rules {
	var s scanner
	// In UTF-16, and after an escape of ISO-2022-JP, bytes of other characters pass for markup.
	s.incomplete = bytes.ContainsAny(r.text, "\x00\x1B")
	z := html.NewTokenizer(bytes.NewReader(r.text))
	long := false
	for at := 0; ; {
		kind := z.Next()
		token := r.text[at : at+len(z.Raw())]
		if kind == html.ErrorToken {
			s.incomplete = s.incomplete || r.behind != nil && begins(r.text[at:])
			return s.Rules
		}
		b, _ := z.TagName()
		name := string(b)
		tag := kind == html.StartTagToken || kind == html.SelfClosingTagToken
		if tag && name == "meta" {
			s.element(attributes(z), int64(at), f)
			token = token[1:]
		}
		if name == "noscript" || kind == html.SelfClosingTagToken && (isXHTML(r.ContentType) || s.isForeign()) {
			z.NextIsNotRawText()
		}
		raw := tag && slices.Contains(rawElements[:], name)
		s.passOver(kind, name, raw, token)
		if at += len(z.Raw()); len(token) > maxReuse {
			long = true
		}
		if long && !raw { // else the next token depends on this one
			z, long = html.NewTokenizer(bytes.NewReader(r.text[at:])), false
		}
	}
}

// passOver follows where svg and math begin and end, and notes what a token may hide there.
func (s *scanner) passOver(kind html.TokenType, name string, raw bool, token []byte) {
	if s.isForeign() || s.doubt {
		s.incomplete = s.incomplete || begins(token)
		s.doubt = s.doubt || raw && kind == html.SelfClosingTagToken
	}
	i := slices.Index([]string{"svg", "math"}, name)
	switch {
	case i < 0:
	case kind == html.StartTagToken:
		s.foreign[i]++
	case kind == html.EndTagToken: // one of the other closes nothing
		s.foreign[i] = max(0, s.foreign[i]-1)
	}
}

func (s *scanner) isForeign() bool { return s.foreign != [2]int{} }

// attributes returns those of a tag. Of two equal names the Tokenizer returns the first.
func attributes(z *html.Tokenizer) map[string]string {
	a := map[string]string{}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		a[string(key)] = string(value)
	}
	return a
}

// element reads a meta element.
func (s *scanner) element(a map[string]string, offset int64, f func(name, content string, offset int64)) {
	content, ok := a["content"]
	name, named := a["name"]
	switch {
	case !ok || named && name == "":
	case named:
		if f != nil {
			f(name, content, offset)
		}
		s.meta(name, content, offset, "")
	case ascii.FoldEqual(trim(a["http-equiv"]), "x-robots-tag"):
		s.meta("", content, offset, `http-equiv="X-Robots-Tag" makes no robots rules: name="robots" does`)
	case ascii.FoldEqual(trim(a["property"]), "robots"):
		s.meta("", content, offset, `property="robots" makes no robots rules: name="robots" does`)
	}
}

// metadata are names of meta elements that never are crawlers: those of the HTML standard and its registry that occur
// most. Without the table, the list of a page's keywords would count as rules for a crawler called keywords.
var metadata = [...]string{
	"application-name", "author", "color-scheme", "copyright", "description", "format-detection", "generator",
	"keywords", "language", "news_keywords", "rating", "referrer", "subject", "theme-color", "title", "viewport",
}

// engineNames are the names of meta elements that engines document. In
// theirs, and in robots, a word that is not understood is a statement too.
var engineNames = [...]string{
	"googlebot", "googlebot-news", "adsbot-google", "yandex", "yandexbot", "bingbot", "msnbot", "slurp",
}

// meta reads one element. The problem, if any, is that of the element.
func (p *listParser) meta(name, content string, offset int64, problem string) {
	name = trim(name)
	from := Statement{Scope: name, Offset: offset, Problem: problem}
	switch {
	case problem != "" || ascii.FoldEqual(name, "robots"):
		from.Scope = ""
	case !namesCrawler(name, content):
		return
	}
	p.list(content, from)
}

// namesCrawler reports whether a meta element of that name and content is meant
// for a crawler: a known name, or any with a known rule.
func namesCrawler(name, content string) bool {
	if holds(engineNames[:], name) {
		return true
	}
	if name == "" || strings.Contains(name, ":") || holds(metadata[:], name) { // og:title
		return false
	}
	for item := range strings.SplitSeq(content, ",") {
		item, _, _ = strings.Cut(item, ":")
		if lookup(trim(item)) != unknown {
			return true
		}
	}
	return false
}
