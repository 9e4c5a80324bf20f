package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// A Record is a line that is neither a user-agent line nor a rule: Sitemap, Crawl-delay or
// any other field (RFC 9309 §2.2.4).
type Record struct {
	Field, Value string // as the file writes them, without comment and outer white space
	Line         int    // counted from 1
	Group        int    // the line at which its group begins, or 0 outside of groups

	names string // see Under
}

// Under reports whether the record stands under a user-agent line for the token. A
// Content-Usage record ends the list of names above it (draft-ietf-aipref-attach), although
// RFC 9309 reads the names below it into the same group (§2.2.4). A record of any other field
// stands under all names of its group.
func (r Record) Under(token string) bool {
	if r.names == "" {
		return true
	}
	for name := range strings.SplitSeq(r.names, "\n") {
		if ascii.FoldEqual(name, token) {
			return true
		}
	}
	return false
}

// Known returns the usual spelling of the record's field, and the source that defines it: a
// specification, or the engine that reads or read it. Both are empty if this package knows none.
// Nothing here decides by a record.
func (r Record) Known() (name, source string) {
	for _, k := range known {
		if ascii.FoldEqual(r.Field, k.name) {
			return k.name, k.source
		}
	}
	return "", ""
}

const conner = "An Extended Standard for Robot Exclusion (Conner)"

var known = [...]struct{ name, source string }{
	{"Sitemap", "sitemaps.org"},
	{"Crawl-delay", "Bing"},
	{"Request-rate", "Seznam; " + conner},
	{"Visit-time", conner},
	{"Robot-version", conner},
	{"Comment", conner},
	{"Clean-param", "Yandex"},
	{"Host", "Yandex, until March 2018"},
	{"Noindex", "Google, undocumented, until September 2019"},
	{"Nofollow", "Google, undocumented, until September 2019"},
	{"Content-Usage", "draft-ietf-aipref-attach"},
	{"Content-Signal", "Cloudflare; draft-romm-aipref-contentsignals"},
	{"License", "RSL 1.0"},
	{"LLM-Policy", "crawler-commons"},
	{"DisallowAITraining", "draft-canel-robots-ai-control-00, expired"},
	{"AllowAITraining", "draft-canel-robots-ai-control-00, expired"},
}

// recordReader reads what recordWriter wrote.
type recordReader struct {
	stream string
	rec    Record
}

func (r *recordReader) next() bool { return r.stream != "" && r.read() && r.rec.Field != "" }

// read reads a record, or what addNames has written. The stream is ours, so it is not checked.
func (r *recordReader) read() bool {
	r.rec.Line += r.varint()
	r.rec.Group += r.varint() // a record after the groups goes back to 0
	field, value := int(r.uvarint()), int(r.uvarint())
	r.rec.Field, r.stream = r.stream[:field], r.stream[field:]
	r.rec.Value, r.stream = r.stream[:value], r.stream[value:]
	return true
}

// varint reads a signed number (zigzag).
func (r *recordReader) varint() int {
	v := r.uvarint()
	return int(v>>1) ^ -int(v&1)
}

func (r *recordReader) uvarint() (v uint64) {
	for shift := 0; ; shift += 7 {
		c := r.stream[0]
		r.stream = r.stream[1:]
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v
		}
	}
}

// Records yields the records of the file with the given field name, in any case, in the
// order of the file. If field is empty, it yields all; Record.Known tells what each is.
//
// A field name is a letter and up to 63 more letters, digits, "-", "_", "." or spaces. At
// most 256 KiB of a file's records are kept.
func (p *Policy) Records(field string) iter.Seq[Record] {
	return func(yield func(Record) bool) { p.eachRecord(field, nil, yield) } // inlined, it takes no memory
}

// HasRecord reports whether the file has a record with one of the field names, in any case.
// It takes no memory, and hardly any time for fields that the file does not have.
func (p *Policy) HasRecord(fields ...string) bool {
	for _, field := range fields {
		if !p.mayHold(field) {
			continue
		}
		for r := (recordReader{stream: p.text[p.records:]}); r.next(); {
			if field == "" || p.isField(r.rec.Field, field) {
				return true
			}
		}
	}
	return false
}

// mayHold reports whether the file may have records with the given field name, or any if
// that is empty.
func (p *Policy) mayHold(field string) bool {
	return p != nil && (field == "" && p.fields != 0 || field != "" && p.fields&fieldBit(len(field), field[0]) != 0)
}

// Records yields the records in the group, as Policy.Records does for the file. Records of
// combined groups are combined. Sitemap records are for every crawler and belong to no
// group.
func (g Group) Records(field string) iter.Seq[Record] {
	return func(yield func(Record) bool) { g.eachRecord(field, yield) }
}

func (g Group) eachRecord(field string, yield func(Record) bool) {
	if g.name == 0 || !g.p.mayHold(field) {
		return
	}
	var few [16]uint32
	begins := few[:0] // the lines of the groups that are combined, in order
	for b := range g.p.blocks(g.name) {
		begins = b.appendGroups(begins)
	}
	g.p.eachRecord(field, begins, yield)
}

// eachRecord yields the records in the groups that begin at the lines, or, if that is nil, all.
func (p *Policy) eachRecord(field string, begins []uint32, yield func(Record) bool) {
	if !p.mayHold(field) {
		return
	}
	names := p.listed()
	for r := (recordReader{stream: p.text[p.records:]}); r.next(); {
		if field != "" && !p.isField(r.rec.Field, field) {
			continue
		}
		if _, in := slices.BinarySearch(begins, uint32(r.rec.Group)); !in && begins != nil {
			continue
		}
		r.rec.names = names[r.rec.Line]
		if !yield(r.rec) {
			return
		}
	}
}

// listed returns what addNames has told, by line: nothing for nearly all files.
func (p *Policy) listed() (names map[int]string) {
	if p.lineWidth&listsNames == 0 {
		return nil
	}
	names = map[int]string{}
	r, last := recordReader{stream: p.text[p.records:]}, ""
	for r.next() {
	}
	for ; r.rec.Field == ""; r.read() {
		last = cmp.Or(r.rec.Value, last)
		if names[r.rec.Line] = last; r.stream == "" {
			break
		}
	}
	return names
}

// isField reports whether a field is called name, in a spelling that the dialect accepts.
func (p *Policy) isField(field, name string) bool {
	if ascii.FoldEqual(field, name) {
		return true
	}
	if !ascii.FoldEqual(name, "sitemap") { // the only record that a dialect reads in other spellings
		return false
	}
	kind, _ := p.dialect.reading().lines.KindOf([]byte(field))
	return kind == scan.Sitemap
}

// Sitemaps yields the absolute URLs of the Sitemap records, each once, in the order of the
// file. They belong to no group and may lead to any host.
func (p *Policy) Sitemaps() iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for r := range p.Records("sitemap") {
			if !isAbsoluteURL(r.Value) || seen[r.Value] {
				continue
			}
			seen[r.Value] = true
			if !yield(r.Value) {
				return
			}
		}
	}
}

// isAbsoluteURL reports whether s begins with a scheme (RFC 3986 §3.1) and an authority.
func isAbsoluteURL(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || rest == "" || strings.IndexByte("/?#", rest[0]) >= 0 || scheme == "" || !ascii.IsLetter(scheme[0]) {
		return false // no scheme, or no host
	}
	for _, c := range []byte(scheme) {
		if !ascii.IsLetter(c) && (c < '0' || c > '9') && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// CrawlDelay returns how long the site asks a crawler to wait between requests. If the group
// has several values, the largest counts. Values that are not plain non-negative decimals do
// not count. If no value counts, CrawlDelay reports false. It always does in the dialects
// that ignore the record (Google, Yandex, Original). In the Bing dialect the value is a
// window of 1 to 30 seconds for one request. A value beyond the range of a Duration becomes
// the largest Duration.
//
// Nothing in this package waits.
func (g Group) CrawlDelay() (time.Duration, bool) {
	var longest time.Duration
	found := false
	for b := range g.p.blocks(g.name) {
		if d, ok := b.delay(); ok {
			longest, found = max(longest, d), true
		}
	}
	return longest, found
}
