package page

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// Limits of what is kept of one response.
const (
	maxLines  = 64
	maxHeader = 64 << 10 // bytes of all field lines
)

// ParseHeader reads the X-Robots-Tag field lines of a response, which are what [net/http.Header.Values] returns for
// that name. Each is read on its own, because a scope ends with its line: never pass lines that were joined, nor only
// the first of them.
//
// Reading cannot fail: what is not understood becomes a [Statement] with a Problem. At most 64 lines, 64 KiB of text
// and 256 statements are read; if there is more, the Rules are incomplete.
func ParseHeader(lines []string) Rules {
	if len(lines) == 0 {
		return Rules{}
	}
	var p listParser
	room := maxHeader
	for i, line := range lines {
		p.incomplete = p.incomplete || i == maxLines || len(line) > room
		if i == maxLines {
			break
		}
		if len(line) > room {
			// Half an item may say something else: it is dropped.
			line = line[:max(0, strings.LastIndexByte(line[:room], ','))]
		}
		room -= len(line)
		p.list(line, Statement{Line: i + 1, Offset: -1})
		if p.incomplete {
			break
		}
	}
	return p.Rules
}

// ParseMeta reads one meta element, for a program that has parsed the page already: the values of its attributes name
// and content, character references decoded. Where the element stood is not known, so Statement.Offset is -1. An
// element that does not address crawlers yields no statements.
func ParseMeta(name, content string) Rules {
	var p listParser
	p.meta(name, content, -1, "")
	return p.Rules
}

// A listParser reads lists of rules and collects the statements.
type listParser struct {
	Rules
	from  Statement // where the list stands
	scope string    // of the items that follow
	line  string
	next  int // where in line the next item begins
}

// list reads one field line or one content attribute.
func (p *listParser) list(line string, from Statement) {
	p.line, p.next, p.from, p.scope = line, 0, from, from.Scope
	if p.statements == nil {
		p.statements = make([]Statement, 0, min(1+strings.Count(line, ","), maxStatements))
	}
	for p.next <= len(line) {
		start, end := p.item()
		item := trim(line[start:end])
		if item == "" {
			continue
		}
		if len(p.statements) >= maxStatements {
			p.incomplete = true
			return
		}
		s := p.statement(item)
		s.Line, s.Offset = from.Line, from.Offset
		s.Scope = p.scope
		s.Text = trim(line[start : p.next-1]) // a date may have taken a second item
		if from.Problem != "" {
			s.Problem = from.Problem
		}
		p.statements = append(p.statements, s)
	}
}

// item returns the bounds of the next item and passes over the comma behind it.
func (p *listParser) item() (start, end int) {
	start, end = p.next, len(p.line)
	if i := strings.IndexByte(p.line[start:], ','); i >= 0 {
		end = start + i
	}
	p.next = end + 1
	return start, end
}

// statement reads an item, [scope ":"] rule [":" value].
func (p *listParser) statement(item string) Statement {
	problem := ""
	for scoped := false; problem == ""; scoped = true {
		name, rest, colon := strings.Cut(item, ":")
		name, item = trim(name), trim(rest)
		r := lookup(name)
		switch {
		// Items of a header may name a crawler.
		case p.from.Line == 0 || !colon || r != unknown || ascii.FoldPrefix(name, "max-"):
			return p.rule(name, item, colon, r)
		case scoped:
			problem = "a second crawler's name in one item"
			continue
		case name == "":
			problem = "no crawler's name before the colon"
			continue
		case item == "":
			problem = "no rule after the crawler's name"
		}
		if p.scope = oneSpaced(name); name == "*" {
			p.scope = ""
		}
	}
	return Statement{rule: unknown, Problem: problem}
}

// rule reads the part of an item behind its scope. The index r is that of name.
func (p *listParser) rule(name, value string, colon bool, r uint8) Statement {
	s := Statement{Rule: name, rule: r}
	if r != unknown {
		s.Rule = rules[r].name
	}
	if colon {
		s.Value = trim(value)
	}
	switch valued := r != unknown && rules[r].value != noValue; {
	case r == unknown && colon && ascii.FoldPrefix(name, "max-"):
		s.Problem = "unknown rule with a value"
	case r == unknown:
		s.Problem = "unknown rule"
	case !valued && colon:
		s.Problem = "the rule takes no value"
	case valued && s.Value == "":
		s.Problem = "the rule needs a value"
	case valued:
		p.value(&s)
	}
	return s
}

// value reads the value of a rule that has one.
func (p *listParser) value(s *Statement) {
	switch rules[s.rule].value {
	case snippet, video:
		if n, ok := number(s.Value); ok {
			s.number = n
		} else {
			s.Problem = "the value is neither -1 nor decimal digits"
		}
	case image:
		s.Problem = "the value is none of none, standard, large"
		for i, v := range imagePreviews {
			if ascii.FoldEqual(v, s.Value) {
				s.number, s.Problem = int64(i), ""
			}
		}
	case date:
		s.Value = p.date(s.Value)
		if t, ok := parseDate(s.Value); ok {
			s.number = t.Unix()
		} else {
			s.Problem = "the value is not a date that can be read"
		}
	}
}

// date returns the whole value of a date that may hold a comma: a value that is only the name of a weekday takes the
// next item too. That item must begin with a digit, as every date behind a weekday does, because the rule of another
// item should not be lost to a broken date.
func (p *listParser) date(value string) string {
	if p.next > len(p.line) || !isWeekday(value) {
		return value
	}
	at := p.next
	start, end := p.item()
	if next := trim(p.line[start:end]); next == "" || !ascii.IsDigit(next[0]) {
		p.next = at
		return value
	}
	return trim(p.line[strings.LastIndex(p.line[:at], value):end])
}

// number reads -1 or decimal digits. What is larger than any int32 counts as the largest of them.
func number(s string) (int64, bool) {
	if s == "-1" {
		return -1, true
	}
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, _ := strconv.ParseInt(s, 10, 32)
	return n, true
}

// Names in dates. time.Parse would take a zone that it does not know for UTC, without an error, and one
// that it knows for different instants on machines in different places.
var (
	weekdays = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	zones    = map[string]string{
		"Z": "+0000", "GMT": "+0000", "UT": "+0000", "UTC": "+0000", "EST": "-0500", "EDT": "-0400",
		"CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
	}
)

// isWeekday reports whether s is the name of a weekday, whole as in RFC 850 or its first three letters as in RFC 822.
func isWeekday(s string) bool {
	return slices.ContainsFunc(weekdays[:], func(day string) bool {
		return ascii.FoldEqual(s, day) || ascii.FoldEqual(s, day[:3])
	})
}

// The parts of the dates that are read, for time.Parse.
var (
	days   = [...]string{"2006-01-02", "20060102", "2 Jan 2006", "2-Jan-2006", "2 Jan 06", "2-Jan-06"}
	clocks = [...]string{"", " 15:04", " 15:04:05", "T15:04", "T15:04:05", "T1504", "T150405"}
	shifts = [...]string{"", "-0700", "-07:00", "-07"}
)

// parseDate reads the value of unavailable_after: the dates of RFC 822 and RFC 850 and those of ISO 8601, with a zone
// by name or by offset. Without a zone it is UTC, without a time the day begins it, which is the strict reading.
func parseDate(s string) (time.Time, bool) {
	s = strings.ToUpper(oneSpaced(s))
	if day, rest, _ := strings.Cut(strings.Replace(s, ",", " ", 1), " "); isWeekday(day) {
		s = trim(rest)
	}
	word := s[1+strings.LastIndexFunc(s, func(c rune) bool { return c < 'A' || c > 'Z' }):]
	if shift, ok := zones[word]; ok {
		s = strings.TrimSuffix(s, word) + shift
	}
	s = strings.NewReplacer(" +", "+", " -", "-").Replace(s)
	for _, day := range days {
		for _, clock := range clocks {
			for _, shift := range shifts {
				if t, err := time.Parse(day+clock+shift, s); err == nil {
					return t, !t.IsZero() // "0001-01-01" is a programmer's null
				}
			}
		}
	}
	return time.Time{}, false
}

// oneSpaced returns s with each run of white space as one space, and none around it.
func oneSpaced(s string) string {
	return strings.Join(strings.FieldsFunc(s, isSpace), " ")
}
