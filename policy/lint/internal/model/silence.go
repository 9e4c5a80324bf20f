package model

import (
	"regexp"
	"strings"
	"sync"
)

// directive is a comment that speaks to this package:
//
//	# robots-lint: ignore RT314, RT403 why
//	# robots-lint: ignore-file RT007
//
// A verb that is not known does nothing, so a slip shows: the finding is still there. Any identifier will do, not only
// those that there are: a newer version may have more, and an older one must not take the rest for the reason.
var directive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[# \t\v\f]*robots-lint:[ \t\v\f]*(ignore-file|ignore)((?:[ ,\t\v\f]+RT\d\d\d\b)*)`)
})

// silence is which rules the comments of a file switch off: by line, 0 for all of the file.
type silence map[int]map[string]bool

// next is the line of what a comment alone on its line says, until the next record has its number.
const next = -1

// listen reads a comment from its "#" on. After a record it is about that line; alone on its
// line it is about the next record.
func (s silence) listen(comment string, number int, alone bool) {
	if !strings.Contains(comment, "robots-lint:") {
		return
	}
	said := directive().FindStringSubmatch(comment)
	switch {
	case said == nil:
		return
	case said[1] == "ignore-file":
		number = 0
	case alone:
		number = next
	}
	for id := range strings.FieldsFuncSeq(said[2], func(r rune) bool { return r != 'R' && r != 'T' && (r < '0' || r > '9') }) {
		if s[number] == nil {
			s[number] = map[string]bool{}
		}
		s[number][id] = true
	}
}

// settle gives the record in the line what the comments above it say.
func (s silence) settle(number int) {
	for id := range s[next] {
		if s[number] == nil {
			s[number] = map[string]bool{}
		}
		s[number][id] = true
	}
	delete(s, next)
}

// Silent reports whether a comment says that findings of the rule are unwanted at a line; 0 is
// the file.
func (f *File) Silent(id string, number int) bool { return f.quiet[0][id] || f.quiet[number][id] }
