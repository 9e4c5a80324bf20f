package promise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// Apply returns the file with the edits, which are in its order and about different lines.
// Line ends, the byte order mark and all other bytes stay.
func Apply(f *model.File, edits []Edit) string {
	var b strings.Builder
	b.Grow(len(f.Text) + 1<<10)
	b.WriteString("\uFEFF"[:f.BOM])
	done := 0
	for _, e := range edits {
		b.WriteString(f.Text[done:e.Line.Offset])
		done = e.Line.Offset + len(e.Line.Text)
		end := model.LineEnd(f.Text[done:])
		if e.Text == "" {
			done += len(end)
			continue
		}
		if end == "" { // the last line: as the first one ends
			end = "\n"
			if i := strings.IndexAny(f.Text, "\r\n"); i >= 0 {
				end = model.LineEnd(f.Text[i:])
			}
		}
		b.WriteString(strings.ReplaceAll(e.Text, "\n", end))
	}
	b.WriteString(f.Text[done:])
	return b.String()
}

// summary gathers what changes, in words.
type summary struct{ parts []part }

type part struct {
	verb, object string
	tokens       []string
	dialects     uint8 // as bits
}

// A sentence names so many changes, and so many crawlers for each.
const (
	maxParts = 3
	maxNamed = 3
)

// decided notes that a target is decided otherwise, and names it by the rule that is new, or
// by that which is not there any more.
func (s *summary) decided(d int, token, target string, before, after policy.Decision) {
	verb := "closes"
	if after.Allowed {
		verb = "opens"
	}
	object := target
	for _, x := range [...]policy.Decision{before, after} {
		if x.Reason == policy.ReasonRule && x.Rule.Allow == after.Allowed || object == target && x.Reason == policy.ReasonRule {
			object = x.Rule.Pattern
		}
	}
	s.add(d, token, verb, chars.Quote(object).String())
}

// add keeps one part, and one token, more than String names: that there are more.
func (s *summary) add(d int, token, verb, object string) {
	i := slices.IndexFunc(s.parts, func(p part) bool { return p.verb == verb && p.object == object })
	if i < 0 {
		i = len(s.parts)
		if i > maxParts {
			return
		}
		s.parts = append(s.parts, part{verb: verb, object: object})
	}
	p := &s.parts[i]
	p.dialects |= 1 << d
	if !slices.Contains(p.tokens, token) && len(p.tokens) <= maxNamed {
		p.tokens = append(p.tokens, token)
	}
}

// String says it all: `closes "/a" to *, and opens "/b" to x (Google)`.
func (s *summary) String() string {
	var all []string
	for i, p := range s.parts {
		if i == maxParts {
			all = append(all, "more")
			break
		}
		tokens := p.tokens
		if len(tokens) > maxNamed {
			tokens = append(slices.Clone(tokens[:maxNamed]), "others")
		}
		text := fmt.Sprintf("%s %s to %s", p.verb, p.object, strings.Join(tokens, ", "))
		if p.verb == "asks" {
			text = fmt.Sprintf("asks %s %s", strings.Join(tokens, ", "), p.object)
		}
		if p.dialects != 1<<len(dialects)-1 {
			var names []string
			for d, dialect := range dialects {
				if p.dialects&(1<<d) != 0 {
					names = append(names, dialect.String())
				}
			}
			text += " (" + strings.Join(names, ", ") + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
