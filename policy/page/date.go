package page

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// Names that dates are made of. time.Parse would take a zone that it does not know for UTC, without an error, and one
// that it knows for different instants on machines in different places.
var (
	weekdays = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	months   = [...]string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}
	zones    = map[string]int{ // in hours
		"Z": 0, "GMT": 0, "UT": 0, "UTC": 0,
		"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
	}
)

// isWeekday reports whether s is the name of a weekday, whole as in RFC 850 or its first three letters as in RFC 822.
func isWeekday(s string) bool {
	return slices.ContainsFunc(weekdays[:], func(day string) bool { return ascii.FoldEqual(s, day) || ascii.FoldEqual(s, day[:3]) })
}

// firstYear is the first that ISO 8601 has without agreement between the
// parties. What lies before it is a programmer's null, "0001-01-01".
const firstYear = 1583

// maxDate is how many bytes a date may have. None has as many, and regexp takes its time for what
// is made to look like one.
const maxDate = 100

// dateForm is the form of all dates that are read, with white space as oneSpaced leaves it. Which names there are, and
// how many days a month has, it leaves to parseDate. It is compiled for the first date.
var dateForm = sync.OnceValue(func() *regexp.Regexp {
	const (
		iso   = `(?<year>\d{4})-(?<month>0[1-9]|1[0-2])-(?<day>\d\d)`
		rfc   = `(?:(?<weekday>[A-Za-z]+) ?,? ?)?(?<d>\d\d?)[ -](?<name>[A-Za-z]+)[ -](?<y>\d{4}|\d\d)`
		clock = `(?<behind>[ Tt])(?<hour>[01]\d|2[0-3]):(?<minute>[0-5]\d)(?::(?<second>[0-5]\d|60)(?:\.\d+)?)?` // 60: a leap second
		zone  = `(?<zone>[A-Za-z]+)|(?<east>[+-](?:[01]\d|2[0-3]))(?::?(?<minutes>[0-5]\d))?`
	)
	return regexp.MustCompile(`^(?:` + iso + `|` + rfc + `)(?:` + clock + `)? ?(?:` + zone + `)?$`)
})

// parseDate reads the value of unavailable_after: the dates of RFC 822 and RFC 850 and those of ISO 8601, with a zone
// by name or by offset. Without a zone it is UTC, without a time the day begins it, which is the strict reading.
// Fractions of a second are dropped.
func parseDate(s string) (time.Time, bool) {
	if s = oneSpaced(s); len(s) > maxDate {
		return time.Time{}, false
	}
	form := dateForm()
	parts := form.FindStringSubmatch(s)
	if parts == nil {
		return time.Time{}, false
	}
	part := func(name string) string { return parts[form.SubexpIndex(name)] }
	number := func(name string) int {
		n, _ := strconv.Atoi(part(name)) // 0 for a part that is not there
		return n
	}
	year, month, day := number("year"), number("month"), number("day")
	if year == 0 {
		weekday := part("weekday")
		if weekday != "" && !isWeekday(weekday) || strings.ContainsAny(part("behind"), "Tt") {
			return time.Time{}, false
		}
		year, day = number("y"), number("d")
		month = 1 + slices.Index(months[:], strings.ToUpper(part("name")))
		if len(part("y")) == 2 { // as Go does
			year = 1969 + (year+31)%100
		}
	}
	hours, known := zones[strings.ToUpper(part("zone"))]
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if !known && part("zone") != "" || year < firstYear || month == 0 || midnight.Day() != day {
		return time.Time{}, false
	}
	minutes := number("minutes")
	if strings.HasPrefix(part("east"), "-") {
		minutes = -minutes
	}
	hours, minutes = number("hour")-hours-number("east"), number("minute")-minutes
	return midnight.Add(time.Duration(hours*3600+minutes*60+number("second")) * time.Second), true
}

// oneSpaced returns s with each run of white space as one space, and none around it.
func oneSpaced(s string) string {
	return strings.Join(strings.FieldsFunc(s, isSpace), " ")
}
