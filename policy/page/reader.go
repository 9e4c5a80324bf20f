package page

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// A Reader is the body of a response that looks for meta elements in what its
// caller reads. It hands over each piece as soon as Body does, keeps nothing of
// the page but the statements, and never reads on its own account:
//
//	body := &page.Reader{Body: resp.Body, ContentType: resp.Header.Get("Content-Type")}
//	resp.Body = body
//
// Bodies that are not HTML are passed on untouched. HTML is scanned up to 1 MiB,
// beyond the head too, because engines respect meta elements there. With HeadOnly
// the scan ends with the head. The rest is passed on unscanned.
//
// Body must be decoded: of a gzipped one nothing can be read. Pages in UTF-16 are
// understood. In their statements "?" stands for what is not ASCII.
//
// Like its Body, a Reader is for one goroutine at a time, but Close may be called
// while another reads if that holds for Body. A Reader must not be copied. The
// zero Reader is an empty page.
type Reader struct {
	// Body is the body of the response. If nil, it is empty.
	Body io.ReadCloser

	// ContentType is the Content-Type field of the response. If empty, the body
	// is taken for HTML.
	ContentType string

	// Header are the X-Robots-Tag field lines of the response, with whose statements
	// Rules begins; see ParseHeader. If nil, Rules has those of the page alone.
	Header []string

	// HeadOnly ends the scan at </head> or <body>, where most engines document
	// the element. Google respects those that follow, too. If false, the scan goes
	// on through the body.
	HeadOnly bool

	// Meta is called during Read for each meta element with a name and a content,
	// those that are not for crawlers included: with the values of the attributes
	// and the element's offset in the body. If nil, nothing is called.
	Meta func(name, content string, offset int64)

	scan    scanner
	started bool
	passing bool // the rest is not looked at
	ended   bool // the page has been read to the end
	unit    encoding
	half    [4]byte // the bytes before the encoding is known, or half a unit of UTF-16
	halves  int
}

// An encoding is what the bytes of a page are.
type encoding uint8

const (
	undecided encoding = iota
	octets             // ASCII and what extends it
	littleEndian
	bigEndian
)

// Read reads from Body.
func (r *Reader) Read(p []byte) (int, error) {
	if r.Body == nil {
		return 0, io.EOF
	}
	n, err := r.Body.Read(p)
	if !r.passing {
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

// WriteTo writes the rest of Body to w, for io.Copy. Once the scan has ended, it copies
// from Body to w directly.
func (r *Reader) WriteTo(w io.Writer) (written int64, err error) {
	r.start()
	from := watched{reader: r}
	if !r.passing { // else there is nothing to look at, and no need of a buffer
		written, err = io.Copy(w, &from)
	}
	if err != nil || from.ended || r.Body == nil {
		return written, err
	}
	n, err := io.Copy(w, r.Body)
	return written + n, err
}

// watched is the part of a Body that is looked at.
type watched struct {
	reader *Reader
	ended  bool // Body has: it may not like to be read again
}

func (w *watched) Read(p []byte) (n int, err error) {
	if w.reader.passing {
		return 0, io.EOF
	}
	n, err = w.reader.Read(p)
	w.ended = err == io.EOF
	return n, err
}

// Rules returns the statements of Header and those of the meta elements that have been
// read so far. They are complete, see [Rules.Incomplete], if the page has been read to its end
// or to where the scan ends, and did not go beyond a limit.
func (r *Reader) Rules() Rules {
	rules := ParseHeader(r.Header).Add(r.scan.Rules)
	rules.incomplete = rules.incomplete || !r.ended && r.Body != nil && isHTML(r.ContentType)
	return rules
}

// start decides whether there is something to look for.
func (r *Reader) start() {
	if r.started {
		return
	}
	r.started = true
	r.passing = !isHTML(r.ContentType)
	r.ended = r.passing
	r.scan = scanner{hook: r.Meta, headOnly: r.HeadOnly, xhtml: isXHTML(r.ContentType), width: 1, moves: moves(), state: inText}
}

// look scans what has been read.
func (r *Reader) look(p []byte, err error) {
	r.start()
	if r.passing {
		return
	}
	if room := maxPage - r.scan.pos - int64(r.halves); int64(len(p)) > room {
		r.scan.incomplete = true
		r.passing = true
		p = p[:room]
	}
	r.decode(p)
	if r.scan.done || err == io.EOF {
		r.ended, r.passing = true, true
	}
	if r.passing {
		r.scan.buf = element{} // free memory
	}
}

// decode scans p in the encoding of the page.
func (r *Reader) decode(p []byte) {
	if r.unit == undecided {
		n := copy(r.half[r.halves:], p)
		p, r.halves = p[n:], r.halves+n
		if r.halves < len(r.half) {
			return
		}
		r.unit = encodingOf(r.half, r.ContentType)
		r.halves = 0
		r.scan.width = 2
		first := r.half
		r.units(first[:])
	}
	r.units(p)
}

// units scans bytes of a known encoding.
func (r *Reader) units(p []byte) {
	if r.unit != octets {
		r.utf16(p)
		return
	}
	// An escape sequence of ISO-2022-JP: bytes of characters pass for markup.
	r.scan.incomplete = r.scan.incomplete || bytes.IndexByte(p, 0x1B) >= 0
	r.scan.width = 1
	r.scan.scan(p)
}

// utf16 scans the ASCII characters of p.
func (r *Reader) utf16(p []byte) {
	var order binary.ByteOrder = binary.BigEndian
	if r.unit == littleEndian {
		order = binary.LittleEndian
	}
	text := make([]byte, 0, 512)
	for _, b := range p {
		r.half[r.halves] = b
		if r.halves++; r.halves < 2 {
			continue
		}
		r.halves = 0
		c := byte('?')
		if u := order.Uint16(r.half[:2]); u < 0x80 {
			c = byte(u)
		}
		if text = append(text, c); len(text) == cap(text) {
			r.scan.scan(text)
			text = text[:0]
		}
	}
	r.scan.scan(text)
}

// encodingOf returns the encoding of a page by its byte order mark, by the zeros
// of two first characters in ASCII, or else by what the Content-Type says, unless
// the page cannot be in UTF-16.
func encodingOf(b [4]byte, contentType string) encoding {
	plain := b[0] < 0x80 && b[1] < 0x80
	even, odd := b[0] == 0 && b[2] == 0, b[1] == 0 && b[3] == 0
	label := charset(contentType)
	switch {
	case b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF: // UTF-8, whatever the label
		return octets
	case b[0] == 0xFF && b[1] == 0xFE, odd && !even:
		return littleEndian
	case b[0] == 0xFE && b[1] == 0xFF, even && !odd:
		return bigEndian
	case !plain && (ascii.FoldEqual(label, "utf-16") || ascii.FoldEqual(label, "utf-16le")):
		return littleEndian
	case !plain && ascii.FoldEqual(label, "utf-16be"):
		return bigEndian
	}
	return octets
}

func charset(contentType string) string {
	for _, parameter := range strings.Split(contentType, ";")[1:] {
		if name, value, _ := strings.Cut(parameter, "="); ascii.FoldEqual(trim(name), "charset") {
			return strings.Trim(trim(value), `"'`)
		}
	}
	return ""
}

func isHTML(contentType string) bool {
	return holds([]string{"", "text/html"}, mediaType(contentType)) || isXHTML(contentType)
}

// isXHTML recognizes XML, where <script/> is an empty element.
func isXHTML(contentType string) bool {
	return holds([]string{"application/xhtml+xml", "application/vnd.wap.xhtml+xml"}, mediaType(contentType))
}

// mediaType cuts the parameters of a Content-Type, and a second value that a
// server sent beside it.
func mediaType(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	return trim(contentType)
}

// ParseHTML returns the statements of the meta elements of a page, as a [Reader]
// does. It reads the first MiB.
func ParseHTML(page []byte) Rules {
	var r Reader
	r.look(page, io.EOF)
	return r.Rules()
}
