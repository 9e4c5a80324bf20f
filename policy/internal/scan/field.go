package scan

import "github.com/robotsgate/robotsgate/policy/internal/ascii"

// A Kind tells what a line is.
type Kind uint8

// The kinds. Package lint exports the same list.
const (
	Blank     Kind = iota + 1 // only white space
	Comment                   // only a comment
	UserAgent                 // begins or widens a group
	Allow                     // a rule
	Disallow                  // a rule
	Sitemap                   // a record that names a sitemap
	Record                    // any other field
	Invalid                   // no field, or nothing before the colon: skipped
)

// spellings are the fields of RFC 9309 §2.2 and of sitemaps.org, in lower case, and the
// misspellings of them that Google's parser accepts. The most frequent come first.
var spellings = [...]struct {
	text     string
	kind     Kind
	misspelt bool
}{
	{"disallow", Disallow, false}, {"dissallow", Disallow, true}, {"dissalow", Disallow, true},
	{"disalow", Disallow, true}, {"diasllow", Disallow, true}, {"disallaw", Disallow, true},
	{"allow", Allow, false},
	{"user-agent", UserAgent, false}, {"useragent", UserAgent, true}, {"user agent", UserAgent, true},
	{"sitemap", Sitemap, false}, {"site-map", Sitemap, true},
}

// usual returns the kind of a line that begins as nearly all do, and where its colon stands,
// or else 0.
func usual(line []byte) (kind Kind, colon int) {
	switch {
	case len(line) >= 9 && string(line[:9]) == "Disallow:":
		return Disallow, 8
	case len(line) >= 6 && string(line[:6]) == "Allow:":
		return Allow, 5
	case len(line) >= 11 && string(line[:11]) == "User-agent:":
		return UserAgent, 10
	}
	return 0, 0
}

// KindOf recognizes a field, in any case (§2.2). A lenient reading also recognizes
// misspellings, and longer fields by their beginning.
func (r *Reading) KindOf(field []byte) (kind Kind, misspelt bool) {
	for i := range spellings {
		s := &spellings[i]
		if (r.lenient || len(field) == len(s.text) && !s.misspelt) && ascii.FoldPrefix(field, s.text) {
			return s.kind, s.misspelt
		}
	}
	return Record, false
}
