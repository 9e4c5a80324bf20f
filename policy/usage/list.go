package usage

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Limits of what is read. Those of P-42, 64 lines and 256 statements, are package page's: the
// page rules that come here have been held to them.
const (
	maxText       = 64 << 10 // bytes of all fields or lines that are read at once
	maxFile       = 1 << 20  // bytes of a tdmrep.json
	maxStatements = 1024     // RFC 9651 §3.2: as many members as a parser must support
)

// Why a statement has no effect.
const (
	problemMore = "there is more than is read"
	problemURL  = "not an absolute URL"
)

// A list collects statements that stand in one place.
type list struct {
	in   Place
	said []Statement
	read int // bytes of text so far
}

// add adds a statement, or one that says that there are more.
func (l *list) add(s Statement) {
	if s.In = l.in; s.In != InMeta {
		s.Offset = -1
	}
	switch n := len(l.said); {
	case n < maxStatements:
		l.said = append(l.said, s)
	case n == maxStatements:
		l.said = append(l.said, Statement{By: s.By, In: s.In, Line: s.Line, Offset: s.Offset, Problem: problemMore})
	}
}

// fits reports whether n more bytes of a mechanism may be read, and else says so.
func (l *list) fits(by Mechanism, n int, s Statement) bool {
	if l.read+n <= maxText && len(l.said) <= maxStatements {
		l.read += n
		return true
	}
	s.By, s.Text, s.Problem = by, "", problemMore
	l.add(s)
	return false
}

// dictionary reads a dictionary of preferences (vocab-08 §6). Two fields of a header are
// one dictionary, whose last member of a name counts.
func (l *list) dictionary(fields []string, from Statement) {
	from.By = ContentUsage
	if !l.fits(ContentUsage, len(strings.Join(fields, "")), from) {
		return
	}
	d, err := httpsfv.UnmarshalDictionary(fields)
	if err != nil {
		from.Problem = "not a dictionary (RFC 9651 §3.2), so nothing is known: " + err.Error()
		l.add(from)
		return
	}
	names := d.Names()
	if len(names) == 0 {
		from.Problem = "states no preference"
		l.add(from)
	}
	l.said = slices.Grow(l.said, min(len(names), maxStatements))
	for _, name := range names {
		member, _ := d.Get(name)
		from.Key, from.Value, from.Problem = name, textOf(member), ""
		if from.Value != "y" && from.Value != "n" {
			from.Problem = "the value is neither y nor n"
		}
		l.add(from)
	}
}

// textOf returns a token as it is. Of any other member it returns its form in a
// dictionary, which is not that of a token y or n.
func textOf(m httpsfv.Member) string {
	item, ok := m.(httpsfv.Item)
	if !ok {
		return "(…)"
	}
	if token, ok := item.Value.(httpsfv.Token); ok {
		return string(token)
	}
	text, err := httpsfv.Marshal(httpsfv.NewItem(item.Value)) // without parameters, which say nothing
	if err != nil {
		return "?"
	}
	return text
}

// signal reads a list of content signals in s.Text, such as search=yes, ai-train=no.
func (l *list) signal(s Statement) {
	s.By = ContentSignal
	if !l.fits(ContentSignal, len(s.Text), s) {
		return
	}
	members := min(strings.Count(s.Text, ",")+1, maxStatements)
	for member := range strings.SplitSeq(s.Text, ",") {
		key, value, ok := strings.Cut(member, "=")
		if !ok && isNo(afterColon(member)) {
			key, value, ok = strings.Cut(member, ":")
		}
		s.Key, s.Value, s.Problem = lower(key), lower(value), ""
		if isNo(value) {
			s.Value = "no"
		}
		switch {
		case s.Key == "" && !ok:
			continue
		case !ok:
			s.Problem = "not of the form key=value"
		case s.Key == "use" && s.Value != "immediate" && s.Value != "reference" && s.Value != "full":
			s.Problem = "the value is none of immediate, reference, full"
		case s.Key != "use" && s.Value != "yes" && s.Value != "no":
			s.Problem = "the value is neither yes nor no"
		}
		l.said, members = slices.Grow(l.said, members), 0 // no list of nothing
		l.add(s)
	}
}

func afterColon(member string) string {
	_, value, _ := strings.Cut(member, ":")
	return value
}

// isNo reports whether a value can be read as no, with signs around it that do not belong there: a site that refuses
// is understood, also where it has a semicolon too many. What permits has to be exact.
func isNo(value string) bool { return lower(strings.Trim(value, space+`;"'.`)) == "no" }

// Names of TDMRep, in lower case.
const (
	reservation = "tdm-reservation"
	tdmPolicy   = "tdm-policy"
)

// tdm reads one property of TDMRep.
func (l *list) tdm(s Statement) {
	s.By = TDMRep
	if !l.fits(TDMRep, len(s.Value), s) {
		return
	}
	s.Value = strings.Trim(s.Value, space)
	switch {
	case s.Key == reservation && s.Value != "0" && s.Value != "1":
		s.Problem = "the value is neither 0 nor 1"
	case s.Key == tdmPolicy && !isAbsolute(s.Value):
		s.Problem = problemURL
	}
	l.add(s)
}

// isAbsolute reports whether s is a URL of http or https with a host.
func isAbsolute(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

const space = " \t\r\n\f"

// lower trims and lowers ASCII: names are ASCII, and the folding of Unicode would make "K" of the Kelvin sign.
func lower(s string) string {
	s = strings.Trim(s, space)
	for i := range len(s) {
		if s[i] >= 0x80 {
			return strconv.QuoteToASCII(s) // matches nothing
		}
	}
	return strings.ToLower(s)
}
