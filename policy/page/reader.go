package page

import (
	"bytes"
	"io"
	"mime"
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
// Bodies that are not HTML are passed on untouched. Of HTML the first 256 KiB are kept until they
// are complete, and read. If a meta element seems to follow them, the rules are incomplete.
//
// Body must be decoded: of a gzipped one nothing can be read. Pages in UTF-16 are
// understood. In their statements "?" stands for what is not ASCII.
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

	// Meta is called once for each meta element with a name and a content, those that are not for crawlers included,
	// with the values of the attributes and the element's offset in the body: during the Read that completes what is
	// kept, or before that during Rules. If nil, nothing is called.
	Meta func(name, content string, offset int64)

	text   []byte // that is kept
	told   int64  // Meta has been called for elements before this offset
	found  Rules  // in the text, once that is complete and not kept any more
	whole  bool   // it is
	behind seeker // of what follows the text
	later  bool   // a meta element seems to
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
	found := r.found
	if !r.whole {
		found = r.scan(false)
	}
	rules := ParseHeader(r.Header).Add(found)
	rules.incomplete = rules.incomplete || r.later || !r.ended && r.Body != nil && isHTML(r.ContentType)
	return rules
}

// look keeps what has been read, or looks whether there is more to read in it.
func (r *Reader) look(p []byte, err error) {
	r.ended = r.ended || err == io.EOF
	if !r.whole {
		room := min(len(p), maxPage-len(r.text))
		r.text = append(r.text, p[:room]...)
		if p = p[room:]; len(p) > 0 || r.ended {
			r.found, r.whole = r.scan(len(p) > 0), true
			r.behind.finds(r.text[max(0, len(r.text)-len("<met")):])
			r.text = nil
		}
	}
	r.later = r.later || r.behind.finds(p)
}

// A seeker looks for the beginning of a meta element, "<meta" in any case, in pieces of a text. It is the end of the last
// piece, in lower case.
type seeker []byte

func (s *seeker) finds(p []byte) bool {
	const start = "<meta"
	text := bytes.ToLower(append(*s, p...))
	*s = bytes.Clone(text[max(0, len(text)-len(start)+1):])
	return bytes.Contains(text, []byte(start))
}

// ParseHTML returns the statements of the meta elements of a page, as a [Reader] does that has read it to the end.
func ParseHTML(page []byte) Rules {
	var r Reader
	r.look(page, io.EOF)
	return r.Rules()
}

// decoded returns a page as ASCII, or what extends it, and how many bytes of the page one of these is: two in UTF-16.
func decoded(text []byte, contentType string) (characters []byte, width int64) {
	high, low := wide(text, contentType)
	if high == low {
		return text, 1
	}
	characters = make([]byte, len(text)/2)
	for i := range characters {
		if characters[i] = text[2*i+low]; text[2*i+high] != 0 || characters[i] >= 0x80 {
			characters[i] = '?'
		}
	}
	return characters, 2
}

// wide returns where the high and the low byte of a character in UTF-16 stand, or zeros if the page has
// another encoding. It goes by its byte order mark, by the zeros of two first characters in ASCII,
// or else by what the Content-Type says, unless the page cannot be in UTF-16.
func wide(text []byte, contentType string) (high, low int) {
	var b [4]byte
	copy(b[:], text)
	plain := b[0] < 0x80 && b[1] < 0x80
	even, odd := b[0] == 0 && b[2] == 0, b[1] == 0 && b[3] == 0
	_, parameters, _ := mime.ParseMediaType(contentType)
	label := parameters["charset"]
	switch {
	case string(b[:3]) == "\uFEFF": // UTF-8, whatever the label
	case b[0] == 0xFF && b[1] == 0xFE, odd && !even,
		!plain && (ascii.FoldEqual(label, "utf-16") || ascii.FoldEqual(label, "utf-16le")):
		return 1, 0
	case b[0] == 0xFE && b[1] == 0xFF, even && !odd, !plain && ascii.FoldEqual(label, "utf-16be"):
		return 0, 1
	}
	return 0, 0
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
// for a crawler: a known one, or any that is told a known rule.
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
