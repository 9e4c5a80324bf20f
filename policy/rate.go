package policy

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// A Rate is how often a site wants to be asked: the distance between two requests, at each time of the day. The zero
// Rate asks for nothing.
type Rate struct {
	delay   time.Duration // at all times
	stated  bool          // there is such a delay
	windows []window
}

// window is a Request-rate that holds every day from one minute after midnight UTC until before another. If it ends
// before it starts, it goes on after midnight.
type window struct {
	delay    time.Duration
	from, to int
}

const (
	day          = 24 * time.Hour
	minutesOfDay = 24 * 60

	maxRates = 32 // Request-rate records that are read of a group: each makes At slower
)

// CrawlDelay returns how long the site asks a crawler to wait between requests. If the group has several values, the
// largest counts. Values that are not plain non-negative decimals do not count. If no value counts, CrawlDelay reports
// false. It always does in the dialects that ignore the record (Google, Yandex, Original). In the Bing dialect the
// value is a window of 1 to 30 seconds for one request. A value beyond the range of a Duration becomes the largest
// Duration.
//
// A Crawl-delay applies to the names that stand above it in its group, as other parsers read it.
//
// Nothing in this package waits.
func (g Group) CrawlDelay() (time.Duration, bool) {
	var longest time.Duration
	found := false
	for r := range g.Records("crawl-delay") {
		if d, ok := g.p.dialect.reading().crawlDelay(r.Value); ok && g.isNamed(r.names) {
			longest, found = max(longest, d), true
		}
	}
	return longest, found
}

// isNamed reports whether a name of g is in a list, as Record.Under does. The names of g are in the order of the file,
// and a list begins with its group.
func (g Group) isNamed(list span) bool {
	names := g.p.sorted[g.names.from:g.names.to]
	i, _ := slices.BinarySearch(names, list.from)
	return i < len(names) && names[i] < list.to
}

// Rate returns what Crawl-delay (see CrawlDelay) and Request-rate ask for. RFC 9309 leaves room for the records
// (§2.2.4), Seznam documents Request-rate: "1/10s" is one page in ten seconds, and "1/10s 1800-1900" is that from 18:00
// to 19:00 UTC. Records that are not in Seznam's form are left out. Only the first 32 Request-rate records are read,
// and none in the dialects other than RFC9309: their engines ignore them.
//
// A Rate does not retain the Policy.
func (g Group) Rate() Rate {
	var rate Rate
	rate.delay, rate.stated = g.CrawlDelay()
	if g.p == nil || !g.p.dialect.reading().rates {
		return rate
	}
	n := 0
	for r := range g.Records("request-rate") {
		if !g.isNamed(r.names) {
			continue
		}
		n++
		if n > maxRates {
			break
		}
		w, ok := parseRate(r.Value)
		switch {
		case !ok:
		case w.from == 0 && w.to == minutesOfDay:
			rate.delay, rate.stated = max(rate.delay, w.delay), true
		default:
			rate.windows = append(rate.windows, w)
		}
	}
	return rate
}

// At returns the delay between requests at time t, and when it may change: the zero Time if never. If several records
// hold, the largest delay counts: too polite a crawler hurts no site. It reports false if no record holds.
func (r Rate) At(t time.Time) (delay time.Duration, until time.Time, ok bool) {
	delay, ok = r.delay, r.stated
	for _, w := range r.windows {
		if w.holds(t) {
			delay, ok = max(delay, w.delay), true
		}
		if change := w.change(t); until.IsZero() || change.Before(until) {
			until = change
		}
	}
	return delay, until, ok
}

// IsZero reports whether r asks for nothing at any time.
func (r Rate) IsZero() bool { return !r.stated && len(r.windows) == 0 }

func (w window) holds(t time.Time) bool {
	utc := t.UTC()
	minute := utc.Hour()*60 + utc.Minute()
	if w.from < w.to {
		return w.from <= minute && minute < w.to
	}
	return minute >= w.from || minute < w.to
}

// change returns the next edge of the window after t.
func (w window) change(t time.Time) time.Time {
	next := t.Add(2 * day)
	midnight := t.Truncate(day) // in UTC
	for _, minute := range []int{w.from, w.to, w.from + minutesOfDay, w.to + minutesOfDay} {
		if edge := midnight.Add(time.Duration(minute) * time.Minute); edge.After(t) && edge.Before(next) {
			next = edge
		}
	}
	return next
}

// parseRate reads pages "/" period and perhaps a window "hhmm-hhmm". The period is in s, m, h or d; without a unit, as
// in most files, in seconds.
func parseRate(value string) (w window, ok bool) {
	count, rest, found := strings.Cut(value, "/")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 || len(fields) > 2 {
		return window{}, false
	}
	pages, okPages := parseCount(strings.TrimSpace(count))
	period, okPeriod := parsePeriod(fields[0])
	if !okPages || !okPeriod {
		return window{}, false
	}
	w = window{delay: period / time.Duration(pages), to: minutesOfDay}
	if period%time.Duration(pages) != 0 {
		w.delay++ // rounded up, or a period could see one page more
	}
	ok = true
	if len(fields) == 2 {
		w.from, w.to, ok = parseWindow(fields[1])
	}
	return w, ok
}

// parsePeriod reads "10", "10s", "15m", "1h" or "1d".
func parsePeriod(s string) (time.Duration, bool) {
	unit := time.Second
	if i := strings.IndexByte("smhd", ascii.Lower(s[len(s)-1])); i >= 0 {
		s, unit = s[:len(s)-1], [...]time.Duration{time.Second, time.Minute, time.Hour, day}[i]
	}
	n, ok := parseCount(s)
	if n > math.MaxInt64/int64(unit) { // as in parseCount, what is too large becomes the largest
		return math.MaxInt64, ok
	}
	return time.Duration(n) * unit, ok
}

// parseCount reads a positive decimal number without a sign. A number too large for an int64 becomes the largest: it
// stands for "many", not for nothing.
func parseCount(s string) (int64, bool) {
	if !isDigits(s) {
		return 0, false
	}
	n, _ := strconv.ParseInt(s, 10, 64) // the largest int64 if it does not fit
	return n, n > 0
}

// parseWindow reads "1800-1900", in minutes after midnight.
func parseWindow(s string) (from, to int, ok bool) {
	a, b, _ := strings.Cut(s, "-")
	from, okFrom := parseClock(a)
	to, okTo := parseClock(b)
	// An empty window, and one that starts at 2400, cannot be what was meant.
	return from, to, okFrom && okTo && from != to && from < minutesOfDay
}

// parseClock reads "0000" to "2400".
func parseClock(s string) (minute int, ok bool) {
	if len(s) != 4 || !isDigits(s) {
		return 0, false
	}
	hhmm, _ := strconv.Atoi(s)
	minute = hhmm/100*60 + hhmm%100
	return minute, hhmm%100 < 60 && minute <= minutesOfDay
}
