package model

import (
	"maps"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
)

// A comment that begins so speaks to this package:
//
//	# robots-lint: ignore RT314, RT403 why
//	# robots-lint: ignore-file RT007
const directive = "robots-lint:"

// ruleSet is identifiers of rules, of which there are a thousand at most.
type ruleSet map[string]bool

// silence is which rules the comments of a file switch off.
type silence struct {
	next ruleSet         // what a comment alone on its line says for the next record
	at   map[int]ruleSet // by line; 0: in all of the file
}

// listen reads a comment from its "#" on. After a record it is about that line; alone on its
// line it is about the next record.
func (s *silence) listen(comment string, number int, alone bool) {
	text, ok := strings.CutPrefix(strings.TrimLeft(comment, "#"+chars.Blanks), directive)
	if !ok {
		return
	}
	// A verb that is not known does nothing, so a slip shows: the finding is still there.
	verb, list, _ := chars.CutWord(text)
	switch {
	case verb == "ignore-file":
		s.of(0).read(list)
	case verb == "ignore" && alone:
		s.next.read(list)
	case verb == "ignore":
		s.of(number).read(list)
	}
}

// read adds the rules that list begins with. What follows them is the reason.
func (set ruleSet) read(list string) {
	isEnd := func(r rune) bool { return strings.ContainsRune(chars.Blanks+",", r) }
	for id := range strings.FieldsFuncSeq(list, isEnd) {
		number, ok := strings.CutPrefix(id, "RT")
		// Any identifier, not only those that there are: a newer version may have more, and an
		// older one must not take the rest of its list for the reason.
		if !ok || len(number) != 3 || strings.Trim(number, "0123456789") != "" {
			return
		}
		set[id] = true
	}
}

func (s *silence) of(number int) ruleSet {
	if s.at[number] == nil {
		s.at[number] = ruleSet{}
	}
	return s.at[number]
}

// settle gives the record in the line what the comments above it say.
func (s *silence) settle(number int) {
	if len(s.next) > 0 {
		maps.Copy(s.of(number), s.next)
		clear(s.next)
	}
}

// Silent reports whether a comment says that findings of the rule are unwanted at a line; 0 is
// the file.
func (f *File) Silent(id string, number int) bool {
	return f.quiet.at[0][id] || f.quiet.at[number][id]
}
