package policy

import (
	"bytes"
	"fmt"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// parsingLimit is how much of a file is read (RFC 9309 §2.5: at least 500 KiB).
const parsingLimit = 500 << 10

// A Line is one line of a robots.txt file as a dialect reads it. It is meant for
// tools that show a file to people; permission is asked of a Policy.
type Line struct {
	Number int // counted from 1
	Kind   LineKind

	// Field and Value are what stands before and after the colon, without white
	// space around it and without comment, and empty if the line has neither.
	Field, Value string

	Comment  bool // has a "#"
	Misspelt bool // Field is a misspelling that the dialect accepts (Google)
	NoColon  bool // white space stands for the colon (Google)
	Cut      bool // longer than the dialect reads; the rest is not in Value (Google)
}

// A LineKind says what a line is to the dialect.
type LineKind uint8

const (
	LineBlank     LineKind = iota + 1 // nothing but white space
	LineComment                       // nothing but a comment
	LineUserAgent                     // begins or widens a group
	LineAllow                         // a rule
	LineDisallow                      // a rule
	LineSitemap                       // a record that names a sitemap
	LineRecord                        // any other field
	LineInvalid                       // no field, or nothing before the colon: skipped
)

// String returns the kind in a word or two.
func (k LineKind) String() string {
	names := [...]string{"", "blank", "comment", "user-agent", "allow", "disallow", "sitemap", "record", "invalid"}
	if k == 0 || int(k) >= len(names) {
		return fmt.Sprintf("LineKind(%d)", uint8(k))
	}
	return names[k]
}

// Lines yields the lines of a file one by one, up to the parsing limit, as the
// parser of the dialect sees them. A line end at the end of the file is followed
// by one more, blank line.
func (d Dialect) Lines(data []byte) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		s := newScanner(d.reading(), data)
		for s.next() {
			l := Line{
				Number: s.number, Kind: s.kind,
				Field: string(s.field()), Value: string(s.value()),
				Comment: s.comment, Misspelt: s.misspelt, NoColon: s.noColon, Cut: s.cut,
			}
			if !yield(l) {
				return
			}
		}
	}
}

// scanner reads a file line by line, in one forward pass.
type scanner struct {
	*reading
	data []byte
	pos  int // where the next line begins

	// Where the next of these octets stands, as far as known; see ahead.
	lf, cr, nul, hash, colon int

	// The line that next found.
	number                          int
	kind                            LineKind
	fieldAt, fieldEnd               int // in data
	valueAt, valueEnd               int // in data
	comment, misspelt, noColon, cut bool
}

// newScanner applies what concerns the file as a whole: the parsing limit, byte
// order marks, UTF-16.
func newScanner(r *reading, data []byte) scanner {
	cut := len(data) > parsingLimit
	if cut {
		data = data[:parsingLimit+1] // the last octet may show that a line just fits
	}
	if r.utf16 {
		data = decodeUTF16(data)
	}
	if cut {
		data = wholeLines(data)
	}
	// A byte order mark is skipped, also what is left of a damaged one: it would
	// cost the first line, and that line names the crawler.
	const bom = "\xEF\xBB\xBF"
	pos := 0
	for pos < len(bom) && pos < len(data) && data[pos] == bom[pos] {
		pos++
	}
	return scanner{reading: r, data: data, pos: pos, lf: -1, cr: -1, nul: -1, hash: -1, colon: -1}
}

// ahead returns where c stands next, not before from, or len(data). It is searched
// for only once it has been passed: to find again and again that a file has no
// "#", or where its only LF is while all of its lines end in CR, would cost more
// than all the rest, or even the square of the length.
func (s *scanner) ahead(known *int, c byte, from int) int {
	if *known < from {
		*known = len(s.data)
		if i := bytes.IndexByte(s.data[from:], c); i >= 0 {
			*known = from + i
		}
	}
	return *known
}

// wholeLines drops a last line that has no end. Where the parsing limit cut it,
// it may say something else than it did: half of "Disallow: /private" is
// "Disallow: /".
func wholeLines(data []byte) []byte {
	n := len(data)
	for n > 0 && data[n-1] != '\n' && data[n-1] != '\r' {
		n--
	}
	return data[:n]
}

// decodeUTF16 decodes a file that opens with a UTF-16 byte order mark and
// returns any other as it is.
func decodeUTF16(data []byte) []byte {
	if len(data) < 2 || !(data[0] == 0xFE && data[1] == 0xFF || data[0] == 0xFF && data[1] == 0xFE) {
		return data
	}
	high, low := 0, 1
	if data[0] == 0xFF {
		high, low = 1, 0
	}
	text := make([]byte, 0, len(data))
	for data = data[2:]; len(data) >= 2; data = data[2:] {
		r := rune(data[high])<<8 | rune(data[low])
		if utf16.IsSurrogate(r) {
			var second rune
			if len(data) >= 4 {
				second = rune(data[2+high])<<8 | rune(data[2+low])
			}
			if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
				data = data[2:]
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return text
}

// next reads the next line: comment, white space, field, value (§2.2).
func (s *scanner) next() bool {
	start, end, ok := s.nextLine()
	if !ok {
		return false
	}
	s.fieldAt, s.fieldEnd, s.valueAt, s.valueEnd = end, end, end, end
	s.comment, s.misspelt, s.noColon, s.cut = false, false, false, false
	if s.lineLimit > 0 && end-start > s.lineLimit {
		end, s.cut = start+s.lineLimit, true
	}
	// A NUL, which no grammar allows, ends the line as it does for Google's parser, whose
	// lines are C strings: a rule that it is part of would match nothing that is sent.
	if s.nul < end { // or not looked for yet
		end = min(end, s.ahead(&s.nul, 0, start))
	}
	if hash := s.ahead(&s.hash, '#', start); hash < end {
		end, s.comment = hash, true
	}
	start, end = s.trim(start, end)
	switch {
	case start < end:
		s.split(start, end)
	case s.comment:
		s.kind = LineComment
	default:
		s.kind = LineBlank
	}
	return true
}

// nextLine finds the next line, which CR, LF or CR LF ends.
func (s *scanner) nextLine() (start, end int, ok bool) {
	if s.pos > len(s.data) {
		return 0, 0, false
	}
	lf := s.ahead(&s.lf, '\n', s.pos)
	start, end = s.pos, min(lf, s.ahead(&s.cr, '\r', s.pos))
	s.pos = end + 1
	if s.pos == lf && lf < len(s.data) {
		s.pos++ // CR LF
	}
	s.number++
	return start, end, true
}

// split divides a line that is not blank into field and value.
func (s *scanner) split(start, end int) {
	s.kind = LineInvalid
	colon := s.ahead(&s.colon, ':', start)
	if colon >= end {
		if !s.lenient {
			return
		}
		gap := soleGap(s.data[start:end])
		if gap < 0 {
			return
		}
		colon, s.noColon = start+gap, true
	}
	_, fieldEnd := s.trim(start, colon)
	if fieldEnd <= start {
		return
	}
	s.fieldAt, s.fieldEnd = start, fieldEnd
	s.valueAt, s.valueEnd = s.trim(colon+1, end)
	s.kind, s.misspelt = s.kindOf(s.field())
}

func (s *scanner) field() []byte { return s.data[s.fieldAt:s.fieldEnd] }
func (s *scanner) value() []byte { return s.data[s.valueAt:s.valueEnd] }

// trim leaves out white space at both ends: SP and HTAB (§2.2), in a lenient
// reading VT and FF too.
func (s *scanner) trim(start, end int) (int, int) {
	for start < end && s.data[start] <= ' ' && s.isSpace(s.data[start]) {
		start++
	}
	for start < end && s.data[end-1] <= ' ' && s.isSpace(s.data[end-1]) {
		end--
	}
	return start, end
}

func (r *reading) isSpace(c byte) bool {
	return c == ' ' || c == '\t' || r.lenient && (c == '\v' || c == '\f')
}

// soleGap returns where the white space begins that parts a line of exactly two
// words, else -1.
func soleGap(line []byte) int {
	gap := bytes.IndexAny(line, " \t")
	if gap < 0 || bytes.ContainsAny(bytes.TrimLeft(line[gap:], " \t"), " \t") {
		return -1
	}
	return gap
}

// kindOf recognises a field. Names are case-insensitive (§2.2).
func (r *reading) kindOf(field []byte) (kind LineKind, misspelt bool) {
	if r.lenient {
		return lenientKind(field)
	}
	switch len(field) {
	case len("disallow"):
		if foldEqual(field, "disallow") {
			return LineDisallow, false
		}
	case len("allow"):
		if foldEqual(field, "allow") {
			return LineAllow, false
		}
	case len("user-agent"):
		if foldEqual(field, "user-agent") {
			return LineUserAgent, false
		}
	case len("sitemap"):
		if foldEqual(field, "sitemap") {
			return LineSitemap, false
		}
	}
	return LineRecord, false
}

// lenientKind recognises a field by its beginning, in the spellings that
// Google's parser accepts.
func lenientKind(field []byte) (kind LineKind, misspelt bool) {
	switch lower(field[0]) {
	case 'u':
		return lenientPrefix(field, LineUserAgent, "user-agent", "useragent", "user agent")
	case 'a':
		return lenientPrefix(field, LineAllow, "allow")
	case 'd':
		return lenientPrefix(field, LineDisallow, "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
	case 's':
		return lenientPrefix(field, LineSitemap, "sitemap", "site-map")
	}
	return LineRecord, false
}

// lenientPrefix returns kind if field begins with one of the spellings, of which
// the first is the right one.
func lenientPrefix(field []byte, kind LineKind, spellings ...string) (LineKind, bool) {
	for i, s := range spellings {
		if foldPrefix(field, s) {
			return kind, i > 0
		}
	}
	return LineRecord, false
}
