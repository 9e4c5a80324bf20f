package page

import (
	"bytes"
	"io"
	"slices"

	"golang.org/x/net/html"
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
	state state
	done  bool // no meta element that follows is wanted

	// The tag that is being passed over.
	name   [len("plaintext")]byte // in lower case, as far as it fits
	length int                    // of the whole name
	end    bool                   // </p>
	empty  bool                   // <p/>, if nothing but ">" follows
	key    int                    // bytes of an attribute's name so far
	offset int64
	inMeta bool // it is a meta element, which buf collects
	buf    element

	foreign int  // svg and math elements that are open
	mixed   bool // HTML may stand in them

	// Comments, and raw text up to its end tag.
	dashes  int
	opening bool // nothing but dashes since "<!--"
	raw     string
	matched int // bytes of raw
}

// A state is where in the markup the scanner is. The states behind a "<" are
// entered with that byte passed over.
type state uint8

const (
	inText state = iota
	afterLess
	afterLessSlash
	afterLessBang
	afterLessBangDash
	inBogus // a declaration or a broken tag, up to ">"
	inComment
	afterCommentBang

	inTagName
	beforeKey
	inKey
	afterKey
	beforeValue
	inBare
	inSingle
	inDouble
	afterTag

	inPlain // <plaintext>: the rest of the page
	inRaw
	inRawLess
	inRawEnd

	// The content of script, which may hide an end tag in a comment.
	inScript
	scriptLess
	scriptEnd
	scriptBang
	scriptBangDash
	escaped
	escapedDash
	escapedDashes
	escapedLess
	escapedEnd
	doubleStart
	double
	doubleDash
	doubleDashes
	doubleLess
	doubleEnd
)

// rawElements are the elements whose content is no markup.
var rawElements = [...]string{"style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"}

// scan passes over the next piece of the page.
func (s *scanner) scan(piece []byte) {
	for i := 0; i < len(piece) && !s.done; {
		i = s.step(piece, i)
	}
	s.pos += int64(len(piece)) * int64(s.width)
}

// step goes on from a place in the piece, as far as one state leads, and returns where that
// is. It looks at no byte behind that place, so that the time for a page is that of its bytes
// and steps.
func (s *scanner) step(piece []byte, i int) int {
	switch {
	case s.state == inText:
		return s.find(piece, i, '<', afterLess)
	case s.state == inTagName:
		return s.tagName(piece, i)
	case inTagName < s.state && s.state < afterTag:
		from := i
		i = s.attributes(piece, i)
		if s.inMeta {
			s.buf.keep(piece[from:i])
		}
		if s.state == afterTag {
			s.closeTag()
		}
		return i
	case s.state == inComment:
		return s.comment(piece, i)
	case s.state >= inPlain:
		return s.rawText(piece, i)
	}
	return s.markup(piece, i)
}

// find goes on behind the next c, in the state then, or to the end of the piece.
func (s *scanner) find(piece []byte, i int, c byte, then state) int {
	n := bytes.IndexByte(piece[i:], c)
	if n < 0 {
		return len(piece)
	}
	s.state = then
	return i + n + 1
}

// markup passes over what begins with "<" and is neither tag name nor comment.
func (s *scanner) markup(piece []byte, i int) int {
	c := piece[i]
	switch s.state {
	case afterLess, afterLessSlash:
		return s.open(c, i)
	case afterLessBang, afterLessBangDash:
		switch {
		case c != '-':
			s.passedOver(c == '[') // CDATA, whose end is not the next ">"
			s.state = inBogus
			return i
		case s.state == afterLessBang:
			s.state = afterLessBangDash
		default:
			s.state, s.dashes, s.opening = inComment, 0, true
		}
	case inBogus:
		return s.find(piece, i, '>', inText)
	case afterCommentBang:
		s.dashes, s.opening = 0, false
		switch c {
		case '>':
			s.state = inText
		case '-':
			s.state, s.dashes = inComment, 1
		default:
			s.state = inComment
		}
	}
	return i + 1
}

// open looks at the byte behind "<" or "</".
func (s *scanner) open(c byte, i int) int {
	end := s.state == afterLessSlash
	switch {
	case isLetter(c):
		s.state, s.length, s.end = inTagName, 0, end
		s.offset = s.pos + int64(i-1)*int64(s.width) // of a start tag
		return i
	case end && c == '>':
		s.state = inText
	case end || c == '?':
		s.state = inBogus
	case c == '/':
		s.state = afterLessSlash
	case c == '!':
		s.state = afterLessBang
	default:
		s.state = inText
		return i
	}
	return i + 1
}

// comment passes over the text of a comment and its end: "-->", "--!>", or ">"
// where nothing but dashes precedes it.
func (s *scanner) comment(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		switch c := piece[i]; {
		case c == '-':
			s.dashes++
			continue
		case c == '>' && (s.dashes >= 2 || s.opening):
			s.state = inText
			return i + 1
		case c == '!' && s.dashes >= 2:
			s.state = afterCommentBang
			return i + 1
		}
		s.dashes, s.opening = 0, false
		n := bytes.IndexByte(piece[i+1:], '-')
		if n < 0 {
			return len(piece)
		}
		i += n
	}
	return i
}

// tagName collects the name of a tag. The byte behind it is left to attributes.
func (s *scanner) tagName(piece []byte, i int) int {
	for ; i < len(piece); i++ {
		c := piece[i]
		if isBlank(c) || c == '/' || c == '>' {
			s.state, s.empty = beforeKey, false
			if !s.end && s.named("meta") {
				s.inMeta = true
				s.buf.open()
			}
			return i
		}
		if s.length < len(s.name) {
			s.name[s.length] = lower(c)
		}
		s.length++
	}
	return i
}

// named reports whether the tag is one of an element.
func (s *scanner) named(name string) bool {
	return s.length == len(name) && string(s.name[:s.length]) == name
}

// isBlank reports whether c is white space of HTML.
func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

// attributes passes over the rest of a tag. At its ">" the state is afterTag.
func (s *scanner) attributes(piece []byte, i int) int {
	for i < len(piece) && s.state != afterTag {
		switch c := piece[i]; s.state {
		case beforeKey:
			switch {
			case c == '>':
				s.state = afterTag
			case isBlank(c):
				s.empty = false
			default:
				s.state, s.key, s.empty = inKey, 0, false
				continue
			}
		case inKey:
			i = s.attributeName(piece, i)
			continue
		case afterKey, beforeValue:
			if !isBlank(c) && !s.behindKey(c) {
				continue
			}
		case inBare:
			if isBlank(c) || c == '>' {
				s.state = beforeKey
				continue
			}
		case inSingle, inDouble:
			i = s.find(piece, i, quotes[s.state], beforeKey)
			continue
		}
		i++
	}
	return i
}

// attributeName passes over the name of an attribute, of which a first "=" is part.
func (s *scanner) attributeName(piece []byte, i int) int {
	if s.key == 0 && piece[i] == '=' {
		s.key++
		return i + 1
	}
	from := i
	for i < len(piece) && !endsKey[piece[i]] {
		i++
	}
	if s.key += i - from; i < len(piece) {
		s.state = afterKey
	}
	return i
}

// behindKey looks at what stands between the name of an attribute and its value, if it has
// one, and reports whether c is passed over.
func (s *scanner) behindKey(c byte) bool {
	switch value := s.state == beforeValue; {
	case value && c == '\'':
		s.state = inSingle
	case value && c == '"':
		s.state = inDouble
	case value && c != '>':
		s.state = inBare
	case !value && c == '/':
		s.state, s.empty = beforeKey, true
	case !value && c == '=':
		s.state = beforeValue
	default:
		s.state = beforeKey
		return false
	}
	return true
}

// endsKey holds the bytes that end the name of an attribute.
var endsKey = [256]bool{' ': true, '\t': true, '\n': true, '\f': true, '\r': true, '/': true, '>': true, '=': true}

var quotes = [...]byte{inSingle: '\'', inDouble: '"'}

// closeTag looks at the tag that has been passed over.
func (s *scanner) closeTag() {
	s.state = inText
	if s.inMeta {
		s.inMeta = false
		s.element()
		return
	}
	s.inForeign()
	switch {
	case s.end:
		s.done = s.headOnly && s.named("head")
	case s.headOnly && s.named("body"):
		s.done = true
	case s.xhtml && s.empty:
	case s.empty && s.foreign > 0: // which is closed, in svg and math (HTML §13.2.6.5)
		s.passedOver(s.mixed && s.isRaw())
	case s.named("plaintext"):
		s.passedOver(true)
		s.state = inPlain
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
func (s *scanner) inForeign() {
	outer := s.named("svg") || s.named("math")
	switch {
	case outer && s.end:
		s.foreign = max(0, s.foreign-1)
	case outer && !s.empty:
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
	read   int
	cut    bool // it is too long
	tokens *html.Tokenizer
}

func (e *element) open() { e.text, e.read, e.cut = append(e.text[:0], "<meta"...), 0, false }

func (e *element) keep(b []byte) {
	if len(e.text)+len(b) > maxMeta {
		e.cut = true
		return
	}
	e.text = append(e.text, b...)
}

// Read is what the Tokenizer calls.
func (e *element) Read(b []byte) (int, error) {
	if e.read == len(e.text) {
		return 0, io.EOF
	}
	n := copy(b, e.text[e.read:])
	e.read += n
	return n, nil
}

// attributes returns the name and the content of the element, if it has both,
// and what is wrong with an element that only looks like one of rules.
func (e *element) attributes() (name, content, problem string) {
	// This saves the Tokenizer most of what a page has, and of what a hostile page may have.
	if !bytes.Contains(bytes.ToLower(e.text), []byte("content")) {
		return "", "", ""
	}
	if e.tokens == nil {
		e.tokens = html.NewTokenizer(e)
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
	case foldEqual(trim(equiv), "x-robots-tag"):
		return equiv, content, `http-equiv="X-Robots-Tag" makes no robots rules: name="robots" does`
	case foldEqual(trim(property), "robots"):
		return property, content, `property="robots" makes no robots rules: name="robots" does`
	}
	return "", "", ""
}
