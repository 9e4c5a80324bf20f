// Package scan divides a robots.txt file into lines, fields and values (RFC 9309 §2.2).
// Package policy reads a file through it to decide, package lint to judge it.
package scan

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Limit is how many bytes of a file are read (RFC 9309 §2.5: at least 500 KiB).
const Limit = 500 << 10

// GoogleLine is how many bytes of a line Google's parser reads.
const GoogleLine = 8*2083 - 1

// A Reading tells how lines are read.
type Reading struct {
	lenient   bool // Google's misspellings, field prefixes and missing colons
	lineLimit int  // bytes of a line that count; 0: all
	utf16     bool // a file that begins with a UTF-16 byte order mark is decoded
	whole     bool // no limit, and a NUL does not end a line
}

// The readings. They are never written to.
var (
	RFC9309 = &Reading{utf16: true}
	Google  = &Reading{lenient: true, lineLimit: GoogleLine}
	Author  = &Reading{lenient: true, whole: true} // what the author of a file meant
)

// A Scanner reads a file line by line, in one forward pass.
type Scanner struct {
	Data []byte // the file as read: perhaps decoded, perhaps cut
	BOM  int    // bytes of the byte order mark in front; fewer than three if it is damaged

	// The line that Next found, without its end. All positions are in Data.
	Number            int // counted from 1
	Kind              Kind
	Start, End        int
	FieldAt, FieldEnd int // Field
	ValueAt, ValueEnd int // Value
	CommentAt         int // the "#" that begins the comment, or the end of what is read
	Comment           bool
	Misspelt          bool // Google accepts the field, but it is misspelt
	NoColon           bool // white space stands for the colon
	Cut               bool // the line is longer than the reading permits

	*Reading
	pos               int // where the next line begins
	lf, cr, nul, hash int // where these bytes come next, if known; see ahead
}

// New applies what concerns the file as a whole: the limit, byte order marks, UTF-16.
func New(r *Reading, data []byte) Scanner {
	cut := len(data) > Limit && !r.whole
	if cut {
		data = data[:Limit+1] // the last byte may show that a line just fits
	}
	if r.utf16 {
		data = decodeUTF16(data)
	}
	if cut {
		data = wholeLines(data)
	}
	// A byte order mark is skipped, even a damaged one: it would spoil the first line, which
	// names the crawler.
	const bom = "\xEF\xBB\xBF"
	n := 0
	for n < len(bom) && n < len(data) && data[n] == bom[n] {
		n++
	}
	return Scanner{Reading: r, Data: data, BOM: n, pos: n, lf: -1, cr: -1, nul: -1, hash: -1}
}

// wholeLines drops a last line without an end. Cut by the limit, it may mean something else:
// half of "Disallow: /private" is "Disallow: /".
func wholeLines(data []byte) []byte {
	return data[:bytes.LastIndexAny(data, "\r\n")+1]
}

// decodeUTF16 decodes a file that begins with a UTF-16 byte order mark. It returns any
// other file unchanged.
func decodeUTF16(data []byte) []byte {
	var order binary.ByteOrder = binary.BigEndian
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case !bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return data
	}
	units := make([]uint16, len(data)/2-1)
	for i := range units {
		units[i] = order.Uint16(data[2+2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// ahead returns the index of the next c at or after from, or len(Data). It searches only
// beyond the last place that is known: a file may have no "#", or a single LF while its lines
// end in CR, and searching it again for every line would take quadratic time.
func (s *Scanner) ahead(known *int, c byte, from int) int {
	if *known < from {
		*known = find(s.Data, c, from)
	}
	return *known
}

// find returns the index of the first c in data at or after from, or len(data). It is apart
// from ahead so that the compiler can inline that.
func find(data []byte, c byte, from int) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// Next reads the next line: comment, white space, field, value (§2.2). A line end at the
// end of the file is followed by one more, blank line.
func (s *Scanner) Next() bool {
	if !s.nextLine() {
		return false
	}
	start, end := s.Start, s.End
	s.FieldAt, s.FieldEnd, s.ValueAt, s.ValueEnd = end, end, end, end
	s.Comment, s.Misspelt, s.NoColon, s.Cut = false, false, false, false
	if s.lineLimit > 0 && end-start > s.lineLimit {
		end, s.Cut = start+s.lineLimit, true
	}
	// A NUL, which no grammar allows, ends the line as it does for Google's parser, whose
	// lines are C strings: a rule that contains it would match nothing that is sent.
	if s.nul < end && !s.whole { // or not looked for yet
		end = min(end, s.ahead(&s.nul, 0, start))
	}
	if hash := s.ahead(&s.hash, '#', start); hash < end {
		end, s.Comment = hash, true
	}
	s.CommentAt = end
	start = s.trimLeft(start, end)
	end = s.trimRight(start, end)
	switch {
	case start < end:
		s.split(start, end)
	case s.Comment:
		s.Kind = Comment
	default:
		s.Kind = Blank
	}
	return true
}

// nextLine finds the next line, which CR, LF or CR LF ends.
func (s *Scanner) nextLine() bool {
	if s.pos > len(s.Data) {
		return false
	}
	lf := s.ahead(&s.lf, '\n', s.pos)
	s.Start, s.End = s.pos, min(lf, s.ahead(&s.cr, '\r', s.pos))
	s.pos = s.End + 1
	if s.pos == lf && lf < len(s.Data) {
		s.pos++ // CR LF
	}
	s.Number++
	return true
}

// split divides a line that is not blank into field and value.
func (s *Scanner) split(start, end int) {
	line := s.Data[start:end]
	kind, colon := usual(line)
	fieldEnd := start + colon
	if kind == 0 {
		s.Kind = Invalid
		if colon = bytes.IndexByte(line, ':'); colon < 0 && s.lenient {
			colon = soleGap(line)
			s.NoColon = colon >= 0
		}
		if colon <= 0 {
			return
		}
		fieldEnd = s.trimRight(start, start+colon)
		kind, s.Misspelt = s.KindOf(s.Data[start:fieldEnd])
	}
	s.Kind, s.FieldAt, s.FieldEnd = kind, start, fieldEnd
	s.ValueAt, s.ValueEnd = s.trimLeft(start+colon+1, end), end
}

// Field returns what stands before the colon, without white space around it.
func (s *Scanner) Field() []byte { return s.Data[s.FieldAt:s.FieldEnd] }

// Value returns what stands after the colon, without white space around it and comment.
func (s *Scanner) Value() []byte { return s.Data[s.ValueAt:s.ValueEnd] }

// trimLeft returns where a text begins without white space in front: SP and HTAB (§2.2), and in
// a lenient reading VT and FF too.
func (s *Scanner) trimLeft(start, end int) int {
	for start < end && s.isSpace(s.Data[start]) {
		start++
	}
	return start
}

// trimRight returns where a text ends without the white space behind it.
func (s *Scanner) trimRight(start, end int) int {
	for start < end && s.isSpace(s.Data[end-1]) {
		end--
	}
	return end
}

func (r *Reading) isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\t' || r.lenient && (c == '\v' || c == '\f'))
}

// soleGap returns where the white space begins that separates exactly two words, or -1 for
// any other line.
func soleGap(line []byte) int {
	gap := bytes.IndexAny(line, " \t")
	if gap < 0 || bytes.ContainsAny(bytes.TrimLeft(line[gap:], " \t"), " \t") {
		return -1
	}
	return gap
}
