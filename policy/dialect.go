package policy

import (
	"fmt"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// A Dialect is how a family of crawlers reads robots.txt. The zero value is RFC9309, which a new crawler should use.
// The others, Google, Yandex, Bing and Original, answer the question "what would that crawler make of this file?".
// Whatever an engine does not document follows RFC 9309.
//
// Each rule of a dialect has a grade: documented by the engine, observed in its own software, or ours where there is
// neither.
type Dialect uint8

const (
	// RFC9309 is the Robots Exclusion Protocol as standardised in 2022. Ours: product tokens may have digits;
	// Crawl-delay counts in seconds, Request-rate as Seznam documents it.
	RFC9309 Dialect = iota

	// Google is the reading of Google's published parser (github.com/google/robotstxt). Observed: verdicts and lines are
	// those of the parser in every case tried. It accepts misspelt fields, a missing colon and fields with a longer name.
	// A user-agent line names its leading letters, "-" and "_"; the token that is asked for is compared whole. URLs are
	// compared as given. Allowing index.html also allows its directory. Documented: Crawl-delay is ignored.
	Google

	// Yandex is the reading of the robots.txt tester of Yandex Webmaster. Where its documentation differs, the
	// tester counts.
	//
	// Observed in July 2026: a blank line ends nothing; an empty Disallow is "Allow: /", and an empty Allow is nothing;
	// the rule with the most literal bytes decides, not counting "*" and a final "$"; allow wins a tie; a user-agent line
	// of several words names another crawler, unless it begins with "*"; groups with the same name are combined.
	//
	// Documented by Yandex (2018 to 2026): a user-agent line names every token that it contains; crawlers whose names
	// begin with Yandex fall back to Yandex; rules past the 2,048th, and those longer than 1,024 characters, do not
	// count; a file of more than 500 KiB permits everything; Crawl-delay is ignored since 2018.
	Yandex

	// Bing differs from RFC 9309 in three points: bingbot falls back to msnbot (documented by Bing in 2012), Crawl-delay
	// is a window of 1 to 30 seconds (documented in 2009 and 2012), and Request-rate is ignored.
	Bing

	// Original is the protocol of 1994 with the Allow lines of the 1996 draft. Documented, by these two texts:
	// blank lines separate records; a user-agent line names every token that it contains, and only the first
	// such record counts; "*" and "$" in a path are ordinary; the first rule that matches decides. Ours: a record
	// without rules does not count, and Crawl-delay is ignored.
	Original
)

// reading is a row of the table of differences between the dialects.
type reading struct {
	name string

	// Lines and groups.
	lines       *scan.Reading
	blankEnds   bool // a blank line ends the group
	oversizeOK  bool // a file above the parsing limit permits everything; else it is cut
	ruleLimit   int  // rules of a file that count; 0: all
	ruleRunes   int  // characters a pattern may have to count, as the file writes them; 0: any
	needsRule   bool // a group without rules does not count
	firstRecord bool // only the first group of a name counts; else they are combined

	// Product tokens.
	leading   bool   // a value names its leading letters, "-" and "_", nothing else
	substring bool   // a value names every token that it contains,
	words     bool   // but not if it has several words
	family    string // tokens that begin so fall back to ...
	fallback  string // ... this one before "*"

	// Rules.
	escape      escaping
	literal     bool // "*" and "$" are ordinary, and the first rule in the file decides
	indexHTML   bool // allowing .../index.htm allows .../ as well
	emptyAllows bool // an empty Disallow is "Allow: /", and an empty Allow is nothing
	signsFree   bool // "*" and a final "$" make a pattern no more specific

	delay delayReading
	rates bool // Request-rate counts
}

// precedence ranks the rules that match (§2.2.2): the more specific one first, then allow. Of equal ones, the first in
// the file decides.
func (r *reading) precedence(of *rule) uint32 {
	if r.literal {
		return 0
	}
	octets := of.n - uint32(of.free)
	if of.flags&ruleAllow != 0 {
		return 2*octets + 1
	}
	return 2 * octets
}

// delayReading is what a Crawl-delay line means.
type delayReading uint8

const (
	delayIgnored delayReading = iota
	delaySeconds
	delayWindow // seconds, clamped to 1 to 30
)

// readings is the table of differences between the dialects: whatever is not in it is the same for all. It is never
// written to.
var readings = [...]reading{
	RFC9309: {
		name: "RFC9309", lines: scan.RFC9309, escape: escapeRFC, delay: delaySeconds, rates: true,
	},
	Google: {
		name: "Google", lines: scan.Google, leading: true,
		escape: escapeGoogle, indexHTML: true,
	},
	Yandex: {
		name: "Yandex", lines: scan.RFC9309, oversizeOK: true, ruleLimit: 2048, ruleRunes: 1024,
		substring: true, words: true, family: "yandex", fallback: "yandex", escape: escapeRFC,
		emptyAllows: true, signsFree: true,
	},
	Bing: {
		name: "Bing", lines: scan.RFC9309, family: "bingbot", fallback: "msnbot", escape: escapeRFC, delay: delayWindow,
	},
	Original: {
		name: "Original", lines: scan.RFC9309, blankEnds: true, needsRule: true, firstRecord: true,
		substring: true, escape: escapeDecode, literal: true,
	},
}

// reading returns the row of d. A value outside the constants reads as RFC9309.
func (d Dialect) reading() *reading {
	if int(d) < len(readings) {
		return &readings[d]
	}
	return &readings[RFC9309]
}

// String returns the name of the constant, "RFC9309" for example.
func (d Dialect) String() string {
	if int(d) < len(readings) {
		return readings[d].name
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// MarshalText returns the name of the constant. It fails for a value outside the constants.
func (d Dialect) MarshalText() ([]byte, error) {
	if int(d) >= len(readings) {
		return nil, fmt.Errorf("policy: %v is no dialect; use one of %s", d, dialectNames())
	}
	return []byte(readings[d].name), nil
}

// UnmarshalText accepts the names of the constants in any case. Any other text is an error.
func (d *Dialect) UnmarshalText(text []byte) error {
	for i := range readings {
		if strings.EqualFold(readings[i].name, string(text)) {
			*d = Dialect(i)
			return nil
		}
	}
	return fmt.Errorf("policy: unknown dialect %q; use one of %s", text, dialectNames())
}

func dialectNames() string {
	names := make([]string, len(readings))
	for i := range readings {
		names[i] = readings[i].name
	}
	return strings.Join(names, ", ")
}
