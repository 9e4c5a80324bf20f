package page

import (
	"bytes"
	"slices"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

const (
	maxPage = 1 << 20  // bytes of a body that are scanned
	maxMeta = 16 << 10 // bytes of one meta element

	// A Tokenizer keeps a map of attributes that it clears for each tag, which
	// takes as long as the tag with the most of them did. It serves again only
	// while that is short.
	maxReuse = 1 << 10
)

// A scanner finds the meta elements of a page that is handed to it in pieces. It
// keeps its place between the pieces instead of the text, so that its memory
// does not grow with the page, and looks at each byte once. What it passes over
// are the tokens of x/net/html's Tokenizer, except that the content of noscript
// is markup, as for a reader without scripts, and that "/>" closes an
// element in svg and math; FuzzPage holds it to that. Where a DOM parser may see a
// meta element in what is passed over, the rules are incomplete.
// The Tokenizer itself, which has to hold a whole token in memory, reads the
// meta elements only.
type scanner struct {
	listParser
	hook     func(name, content string, offset int64)
	xhtml    bool // <script/> is an empty element
	headOnly bool // stop where the head ends

	pos   int64 // of the piece in the body
	width int   // bytes of the body for one of the piece: 2 in UTF-16
	moves *[len(steps)][256]state
	state state
	done  bool // no meta element that follows is wanted

	// The tag that is being passed over.
	name   [len("plaintext")]byte // in lower case, as far as it fits
	length int                    // of the whole name
	end    bool                   // </p>
	offset int64
	inMeta bool // it is a meta element, which buf collects
	buf    element

	foreign int    // svg and math elements that are open
	mixed   bool   // HTML may stand in them
	raw     string // the name that ends raw text
	matched int    // bytes of raw
}

// rawElements are the elements whose content is no markup.
var rawElements = [...]string{"style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"}

// scan passes over the next piece of the page.
func (s *scanner) scan(piece []byte) {
	for i := 0; i < len(piece) && !s.done; {
		i = s.step(piece, i)
	}
	s.pos += int64(len(piece)) * int64(s.width)
}

// step goes on from a place in the piece to the next name or the end of a tag, and returns where
// that is. It looks at no byte behind that place, so that the time for a page is that of its bytes
// and steps.
func (s *scanner) step(piece []byte, i int) int {
	switch s.state {
	case inTagName:
		return s.tagName(piece, i)
	case inRawEnd, scriptEnd, escapedEnd, doubleStart, doubleEnd:
		return s.endOfRaw(piece[i], i)
	}
	from, at := i, s.state
	for row := &steps[at]; row.other != 0 && i < len(piece); row = &steps[at] {
		if row.only != 0 {
			n := bytes.IndexByte(piece[i:], row.only)
			if n < 0 {
				i = len(piece)
				break
			}
			i += n
		}
		to := s.moves[at][piece[i]]
		if to&again == 0 {
			at = to
			i++
			continue
		}
		s.passedOver(row.hides != 0 && row.hides == ascii.Lower(piece[i]))
		if to &^= again; to == inTagName {
			s.length, s.end = 0, at == afterLessSlash
			s.offset = s.pos + int64(i-1)*int64(s.width) // of a start tag
		}
		at = to
	}
	s.state, s.matched = at, 0
	if s.inMeta {
		s.buf.keep(piece[from:i])
	}
	if s.state == afterTag || s.state == afterEmptyTag {
		s.closeTag(s.state == afterEmptyTag)
	}
	return i
}

// tagName collects the name of a tag. The byte behind it is left to the next step.
func (s *scanner) tagName(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		if endsName(piece[i]) {
			s.state = beforeKey
			if !s.end && s.named("meta") {
				s.inMeta = true
				s.buf.open()
			}
			return i
		}
		if s.length < len(s.name) {
			s.name[s.length] = ascii.Lower(piece[i])
		}
		s.length++
	}
	return i
}

// endOfRaw compares the next byte with the name that ends the raw text, or that
// hides its end, and goes on where the comparison leads.
func (s *scanner) endOfRaw(c byte, i int) int {
	switch {
	case s.matched < len(s.raw) && ascii.Lower(c) == s.raw[s.matched]:
		s.matched++
		return i + 1
	case s.matched < len(s.raw) || !endsName(c):
		s.state = missed[s.state]
	case s.state == doubleStart:
		s.state = double
		return i + 1
	case s.state == doubleEnd:
		s.state = escaped
		return i + 1
	default: // an end tag; its attributes begin with c
		s.state, s.end, s.length = beforeKey, true, 0
	}
	return i
}

// endsName reports whether c ends the name of a tag.
func endsName(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' || c == '/' || c == '>'
}

// named reports whether the tag is one of an element.
func (s *scanner) named(name string) bool {
	return s.length == len(name) && string(s.name[:s.length]) == name
}

// closeTag looks at the tag that has been passed over, which is empty if it ends in "/>".
func (s *scanner) closeTag(empty bool) {
	s.state = inText
	if s.inMeta {
		s.inMeta = false
		s.element()
		return
	}
	s.inForeign(empty)
	switch {
	case s.end:
		s.done = s.headOnly && s.named("head")
	case s.headOnly && s.named("body"):
		s.done = true
	case s.xhtml && empty:
	case empty && s.foreign > 0: // which is closed, in svg and math (HTML §13.2.6.5)
		s.passedOver(s.mixed && s.isRaw())
	case s.named("plaintext"):
		s.passedOver(true)
		s.done = true // the rest of the page is text
	case s.named("script"):
		s.state, s.raw = inScript, "script"
	default:
		if i := slices.IndexFunc(rawElements[:], s.named); i >= 0 {
			s.state, s.raw = inRaw, rawElements[i]
		}
	}
}

// drawing are elements in which no HTML stands.
var drawing = [...]string{"svg", "math", "g", "path", "rect", "circle", "ellipse", "line", "polygon", "polyline", "use", "defs", "symbol", "image"}

// inForeign counts the open svg and math elements. A DOM parser reads these by other rules,
// unless HTML stands in them; what that is, the scanner does not follow.
func (s *scanner) inForeign(empty bool) {
	outer := s.named("svg") || s.named("math")
	switch {
	case outer && s.end:
		s.foreign = max(0, s.foreign-1)
	case outer && !empty:
		s.foreign++
	}
	s.mixed = s.foreign > 0 && (s.mixed || !s.isRaw() && !slices.ContainsFunc(drawing[:], s.named))
}

// isRaw reports whether the tag is one of an element with raw text.
func (s *scanner) isRaw() bool {
	return s.named("script") || s.named("plaintext") || slices.ContainsFunc(rawElements[:], s.named)
}

// passedOver notes, if so, that a DOM parser may see what the scanner does not, since svg or
// math are open.
func (s *scanner) passedOver(so bool) { s.incomplete = s.incomplete || so && s.foreign > 0 }

// element reads the meta element that has been passed over.
func (s *scanner) element() {
	if s.buf.cut {
		s.incomplete = true
		return
	}
	name, content, problem := s.buf.attributes()
	if name == "" {
		return
	}
	if s.hook != nil && problem == "" {
		s.hook(name, content, s.offset)
	}
	s.meta(name, content, s.offset, problem)
}

// An element is a meta element, and what x/net/html's Tokenizer reads it from.
// The Tokenizer reads no further than a tag's ">", so that one serves all the
// elements of a page.
type element struct {
	text   []byte
	cut    bool // it is too long
	reader bytes.Reader
	tokens *html.Tokenizer
}

func (e *element) open() { e.text, e.cut = append(e.text[:0], "<meta"...), false }

func (e *element) keep(b []byte) {
	if len(e.text)+len(b) > maxMeta {
		e.cut = true
		return
	}
	e.text = append(e.text, b...)
}

// attributes returns the name and the content of the element, if it has both,
// and what is wrong with an element that only looks like one of rules.
func (e *element) attributes() (name, content, problem string) {
	// This saves the Tokenizer most of what a page has, and of what a hostile page may have.
	if !bytes.Contains(bytes.ToLower(e.text), []byte("content")) {
		return "", "", ""
	}
	if e.reader.Reset(e.text); e.tokens == nil {
		e.tokens = html.NewTokenizer(&e.reader)
	}
	if len(e.text) > maxReuse {
		defer func() { e.tokens = nil }()
	}
	if t := e.tokens.Next(); t != html.StartTagToken && t != html.SelfClosingTagToken {
		e.tokens = nil
		return "", "", ""
	}
	var equiv, property string
	var hasName, hasContent bool
	for _, more := e.tokens.TagName(); more; {
		var key, value []byte
		key, value, more = e.tokens.TagAttr() // the first of two equal keys only
		switch string(key) {
		case "name":
			name, hasName = string(value), true
		case "content":
			content, hasContent = string(value), true
		case "http-equiv":
			equiv = string(value)
		case "property":
			property = string(value)
		}
	}
	switch {
	case !hasContent:
		return "", "", ""
	case hasName:
		return name, content, ""
	case ascii.FoldEqual(trim(equiv), "x-robots-tag"):
		return equiv, content, `http-equiv="X-Robots-Tag" makes no robots rules: name="robots" does`
	case ascii.FoldEqual(trim(property), "robots"):
		return property, content, `property="robots" makes no robots rules: name="robots" does`
	}
	return "", "", ""
}
