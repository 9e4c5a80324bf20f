package client

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// pace is what a group of robots.txt asks for. Neither record is part of RFC 9309,
// which leaves room for them (§2.2.4).
type pace struct {
	delay time.Duration // Crawl-delay or Request-rate at any hour, the larger
	said  bool          // there is one of them
	rates []rate        // Request-rate with a window
}

// rate is a Request-rate record: the delay that it comes down to, and the window of
// the day (minutes after midnight UTC, until before the second) in which it holds.
type rate struct {
	delay    time.Duration
	from, to int
}

const (
	// mostRates bounds what one file can make us keep and go through per request.
	mostRates    = 32
	minutesOfDay = 24 * 60
)

// paceOf reads the records of g. Of several that hold at the same time, the largest
// delay counts: nobody has been hurt by too polite a crawler.
func paceOf(g policy.Group) pace {
	var a pace
	a.delay, a.said = g.CrawlDelay()
	n := 0
	for record := range g.Records("request-rate") {
		if n++; n > mostRates {
			break
		}
		switch r, ok := parseRate(record.Value); {
		case !ok:
		case r.from == 0 && r.to == minutesOfDay:
			a.delay, a.said = max(a.delay, r.delay), true
		default:
			a.rates = append(a.rates, r)
		}
	}
	return a
}

// at is the delay asked for at time t, if any is.
func (a *pace) at(t time.Time) (delay time.Duration, ok bool) {
	delay, ok = a.delay, a.said
	for _, r := range a.rates {
		if r.holds(t) {
			delay, ok = max(delay, r.delay), true
		}
	}
	return delay, ok
}

// nextChange is when, after t, the answer of at may change; zero if it never does.
func (a *pace) nextChange(t time.Time) time.Time {
	var next time.Time
	midnight := t.Truncate(day) // in UTC
	for _, r := range a.rates {
		for _, minute := range []int{r.from, r.to, r.from + minutesOfDay, r.to + minutesOfDay} {
			edge := midnight.Add(time.Duration(minute) * time.Minute)
			if edge.After(t) && (next.IsZero() || edge.Before(next)) {
				next = edge
			}
		}
	}
	return next
}

// holds says whether t lies in the window. One that ends before it starts goes on
// after midnight.
func (r rate) holds(t time.Time) bool {
	utc := t.UTC()
	minute := utc.Hour()*60 + utc.Minute()
	if r.from < r.to {
		return r.from <= minute && minute < r.to
	}
	return minute >= r.from || minute < r.to
}

// parseRate reads the value of a Request-rate record as Seznam documents it:
// documents "/" interval, the interval in s, m, h or d (none: seconds, as most files
// have it), perhaps followed by a window "hhmm-hhmm" in UTC. Anything else is ignored.
// The documents are spread evenly: 100/15m is one in nine seconds.
func parseRate(value string) (rate, bool) {
	documents, rest, ok := strings.Cut(value, "/")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 || len(fields) > 2 {
		return rate{}, false
	}
	n, okN := parseCount(strings.TrimSpace(documents))
	interval, okInterval := parseInterval(fields[0])
	if !okN || !okInterval {
		return rate{}, false
	}
	// Rounded up, so that no window of the interval sees one document more.
	r := rate{delay: interval / time.Duration(n), to: minutesOfDay}
	if interval%time.Duration(n) != 0 {
		r.delay++
	}
	if len(fields) == 2 {
		r.from, r.to, ok = parseWindow(fields[1])
	}
	return r, ok
}

// parseInterval reads "10", "10s", "15m", "1h" or "1d".
func parseInterval(s string) (time.Duration, bool) {
	unit := time.Second
	switch s[len(s)-1] | 0x20 {
	case 's':
		s = s[:len(s)-1]
	case 'm':
		s, unit = s[:len(s)-1], time.Minute
	case 'h':
		s, unit = s[:len(s)-1], time.Hour
	case 'd':
		s, unit = s[:len(s)-1], day
	}
	n, ok := parseCount(s)
	hi, lo := bits.Mul64(uint64(n), uint64(unit))
	if hi != 0 || lo > math.MaxInt64 {
		lo = math.MaxInt64
	}
	return time.Duration(lo), ok
}

// parseCount reads a positive decimal number without a sign. One too large for an
// int64 is the largest there is: it stands for "many", not for nothing.
func parseCount(s string) (int64, bool) {
	if strings.TrimLeft(s, "0123456789") != "" {
		return 0, false
	}
	n, _ := strconv.ParseInt(s, 10, 64) // the largest int64 where it does not fit
	return n, n > 0
}

// parseWindow reads "1800-1900", in minutes after midnight.
func parseWindow(s string) (from, to int, ok bool) {
	a, b, _ := strings.Cut(s, "-")
	from, okFrom := parseClock(a)
	to, okTo := parseClock(b)
	return from, to, okFrom && okTo && from != to && from < minutesOfDay
}

// parseClock reads "0000" to "2400".
func parseClock(s string) (minute int, ok bool) {
	if len(s) != 4 || strings.TrimLeft(s, "0123456789") != "" {
		return 0, false
	}
	hhmm, _ := strconv.Atoi(s)
	minute = hhmm/100*60 + hhmm%100
	return minute, hhmm%100 < 60 && minute <= minutesOfDay
}
