package policy

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// A Record is a line that is neither a user-agent line nor a rule: Sitemap, Crawl-delay or any other field (RFC 9309
// §2.2.4).
type Record struct {
	Field, Value string // as the file writes them, without comment and outer white space
	Line         int    // counted from 1
	GroupLine    int    // the line at which its group begins, or 0 outside of groups

	names span // in p, see Under
	p     *Policy
}

// Under reports whether the record applies to a token. Most records apply to all names of their group. A Crawl-delay or
// Request-rate applies to the names above it in its group. A Content-Usage record applies to those between it and the
// rule or Content-Usage record above (draft-ietf-aipref-attach), though names below it are of the same group (§2.2.4).
func (r Record) Under(token string) bool {
	if r.names == everyone {
		return true
	}
	for i := r.names.from; i < r.names.to; i++ {
		if ascii.FoldEqual(r.p.nameAt(i), token) {
			return true
		}
	}
	return false
}

// Known returns the usual spelling of the record's field, and the source that defines it: a specification, or the
// engine that reads or read it. Both are empty if this package knows none. Nothing here decides by a record.
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
	{"LLMs-txt", "llms.txt readers, undocumented"},
	{"Schemamap", "NLWeb"},
	{"Agentmap", "readers of agent catalogues, undocumented"},
	{"DisallowAITraining", "draft-canel-robots-ai-control-00, expired"},
	{"AllowAITraining", "draft-canel-robots-ai-control-00, expired"},
}

// everyone stands for all names of a group.
var everyone = span{0, math.MaxUint32}

// record is how a Policy keeps a Record.
type record struct {
	at    uint32 // of the field in Policy.text; the value follows
	value uint32 // bytes of the value
	line  uint32
	group uint32 // GroupLine
	names span   // of Policy.names, see Record.Under
	field uint8  // bytes of the field
}

func (p *Policy) recordAt(i int) Record {
	r := &p.records[i]
	value := r.at + uint32(r.field)
	return Record{
		Field: p.text[r.at:value], Value: p.text[value : value+r.value], Line: int(r.line), GroupLine: int(r.group),
		names: r.names, p: p,
	}
}

// Records yields the records of the file with the given field name, in any case, in the order of the file. If field is
// empty, it yields all; Record.Known tells what each is.
//
// A field name is a letter and up to 63 more letters, digits, "-", "_", "." or spaces. At most 256 KiB of a file's
// records are kept.
func (p *Policy) Records(field string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if p == nil {
			return
		}
		for i := range p.records {
			if r := p.recordAt(i); (field == "" || p.isField(r.Field, field)) && !yield(r) {
				return
			}
		}
	}
}

// HasRecord reports whether the file has a record with one of the field names, in any case.
func (p *Policy) HasRecord(fields ...string) bool {
	for _, field := range fields {
		for range p.Records(field) {
			return true
		}
	}
	return false
}

// Records yields the records in the group, as Policy.Records does for the file. Records of combined groups are
// combined. Sitemap records are for every crawler and belong to no group.
func (g Group) Records(field string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		parts := g.parts()
		for r := range g.p.Records(field) {
			if r.GroupLine == 0 {
				continue
			}
			_, in := slices.BinarySearchFunc(parts, r.GroupLine, func(part group, line int) int { return int(part.line) - line })
			if in && !yield(r) {
				return
			}
		}
	}
}

// isField reports whether name names a field. Sitemap is the only record that dialects also read in other spellings.
func (p *Policy) isField(field, name string) bool {
	if !ascii.FoldEqual(name, "sitemap") {
		return ascii.FoldEqual(field, name)
	}
	kind, _ := p.dialect.reading().lines.KindOf([]byte(field))
	return kind == scan.Sitemap
}

// Sitemaps yields the absolute URLs of the Sitemap records, each once, in the order of the file. They belong to no
// group and may lead to any host.
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
		if !ascii.IsLetter(c) && !ascii.IsDigit(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
