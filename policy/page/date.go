package page

import "time"

// Names that dates are made of. time.Parse would take a zone that it does not
// know for UTC, without an error, and one that it knows for different instants
// on machines in different places (P-25).
var (
	weekdays = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	months   = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
	zones    = [...]struct {
		name  string
		hours int
	}{
		{"Z", 0}, {"GMT", 0}, {"UT", 0}, {"UTC", 0},
		{"EST", -5}, {"EDT", -4}, {"CST", -6}, {"CDT", -5}, {"MST", -7}, {"MDT", -6}, {"PST", -8}, {"PDT", -7},
	}
)

// isWeekday reports whether s is the name of a weekday, whole as in RFC 850 or
// its first three letters as in RFC 822.
func isWeekday(s string) bool {
	for _, day := range weekdays {
		if foldEqual(s, day) || foldEqual(s, day[:3]) {
			return true
		}
	}
	return false
}

// firstYear is the first that ISO 8601 has without agreement between the
// parties. What lies before it is a programmer's null, "0001-01-01".
const firstYear = 1583

// parseDate reads the value of unavailable_after (P-24): the dates of RFC 822
// and RFC 850 and those of ISO 8601, with a zone by name or by offset. Without a
// zone it is UTC, without a time the day begins it, which is the strict reading
// (P-26). Fractions of a second are dropped.
func parseDate(s string) (time.Time, bool) {
	c := cursor(s)
	iso := len(s) > 4 && s[4] == '-'
	if word := c.word(); word != "" {
		if !isWeekday(word) {
			return time.Time{}, false
		}
		c.spaces()
		c.accept(',')
		c.spaces()
	}
	year, month, day, ok := c.day(iso)
	if !ok {
		return time.Time{}, false
	}
	hour, minute, second, ok := c.clock(iso)
	if !ok {
		return time.Time{}, false
	}
	offset, ok := c.zone()
	if !ok || c != "" {
		return time.Time{}, false
	}
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if year < firstYear || midnight.Day() != day {
		return time.Time{}, false
	}
	return midnight.Add(time.Duration(hour*3600+minute*60+second-offset) * time.Second), true
}

// A cursor is what is still to be read of a date.
type cursor string

func (c *cursor) accept(b byte) bool {
	if *c == "" || (*c)[0] != b {
		return false
	}
	*c = (*c)[1:]
	return true
}

func (c *cursor) spaces() (n int) {
	for ; *c != "" && isSpace((*c)[0]); n++ {
		*c = (*c)[1:]
	}
	return n
}

// word reads letters.
func (c *cursor) word() string {
	n := 0
	for n < len(*c) && isLetter((*c)[n]) {
		n++
	}
	w := (*c)[:n]
	*c = (*c)[n:]
	return string(w)
}

// digits reads at most four digits and returns how many they were.
func (c *cursor) digits() (value, width int) {
	for width < 4 && width < len(*c) && isDigit((*c)[width]) {
		value = value*10 + int((*c)[width]-'0')
		width++
	}
	*c = (*c)[width:]
	return value, width
}

// two reads exactly two digits that make a number up to most.
func (c *cursor) two(most int) (int, bool) {
	n, width := c.digits()
	return n, width == 2 && n <= most
}

// day reads 2006-01-02, or 2 Jan 2006, 02-Jan-06 and their kin.
func (c *cursor) day(iso bool) (year, month, day int, ok bool) {
	first, width := c.digits()
	if iso {
		ok = width == 4 && c.accept('-')
		month, ok = and(c, ok, 12)
		ok = ok && c.accept('-')
		day, ok = and(c, ok, 31)
		return first, month, day, ok && month > 0 && day > 0
	}
	ok = (width == 1 || width == 2) && 0 < first && first <= 31 && c.separator()
	name := c.word()
	for i, m := range months {
		if foldEqual(name, m) {
			month = i + 1
		}
	}
	ok = ok && month > 0 && c.separator()
	year, width = c.digits()
	switch {
	case width == 2 && year >= 69: // as Go does (P-26)
		year += 1900
	case width == 2:
		year += 2000
	case width != 4:
		ok = false
	}
	return year, month, first, ok
}

// and reads two digits up to most if what came before was right.
func and(c *cursor, ok bool, most int) (int, bool) {
	if !ok {
		return 0, false
	}
	return c.two(most)
}

// separator reads what stands between day, month and year: "-" or white space.
func (c *cursor) separator() bool { return c.accept('-') || c.spaces() > 0 }

// clock reads the time of day, if there is one.
func (c *cursor) clock(iso bool) (hour, minute, second int, ok bool) {
	spaces := c.spaces()
	if iso && spaces == 0 && (c.accept('T') || c.accept('t')) {
		spaces = -1
	}
	if *c == "" || !isDigit((*c)[0]) {
		return 0, 0, 0, spaces >= 0
	}
	hour, ok = c.two(23)
	ok = ok && spaces != 0 && c.accept(':')
	minute, ok = and(c, ok, 59)
	if ok && c.accept(':') {
		second, ok = c.two(60) // a leap second
		if ok && c.accept('.') {
			ok = c.fraction()
		}
	}
	return hour, minute, second, ok
}

// fraction passes over the digits of a fraction.
func (c *cursor) fraction() bool {
	n := 0
	for n < len(*c) && isDigit((*c)[n]) {
		n++
	}
	*c = (*c)[n:]
	return n > 0
}

// zone reads a zone, if there is one, and returns its offset from UTC in seconds.
func (c *cursor) zone() (offset int, ok bool) {
	c.spaces()
	sign := 0
	switch {
	case *c == "":
		return 0, true
	case c.accept('+'):
		sign = 1
	case c.accept('-'):
		sign = -1
	default:
		name := c.word()
		for _, z := range zones {
			if foldEqual(name, z.name) {
				return z.hours * 3600, true
			}
		}
		return 0, false
	}
	n, width := c.digits()
	hours, minutes := n/100, n%100
	if width == 2 {
		hours, minutes = n, 0
		if c.accept(':') {
			if minutes, width = c.digits(); width != 2 {
				return 0, false
			}
		}
	} else if width != 4 {
		return 0, false
	}
	return sign * (hours*3600 + minutes*60), hours <= 23 && minutes <= 59
}
