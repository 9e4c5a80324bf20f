package policy

import (
	"iter"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// A Rate is a Request-rate record: so many pages in a period. RFC 9309 leaves room for the
// record (§2.2.4), Seznam documents it.
type Rate struct {
	Pages  int64         // at least 1
	Period time.Duration // above zero

	// The rate holds every day from minute From until before minute To, counted from
	// midnight UTC. If To is less than From, it holds beyond midnight. From 0 to 1440 is
	// the whole day.
	From, To int
}

const (
	day          = 24 * time.Hour
	minutesOfDay = 24 * 60

	maxRates = 32 // records of one group that are read: each costs its readers time for every turn
)

// RequestRates yields the Request-rate records of the group, in the order of the file. Of
// several that hold at the same time, a crawler should keep the slowest. Records that are
// not in Seznam's form are left out. Only the first 32 records are read. It yields none in the
// dialects other than RFC9309: their engines ignore the record.
func (g Group) RequestRates() iter.Seq[Rate] {
	return func(yield func(Rate) bool) {
		n := 0
		for record := range g.Records("request-rate") {
			if n++; n > maxRates || g.p.dialect != RFC9309 {
				return
			}
			if r, ok := parseRate(record.Value); ok && !yield(r) {
				return
			}
		}
	}
}

// parseRate reads pages "/" period and perhaps a window "hhmm-hhmm". The period is in s, m,
// h or d; without a unit, as in most files, in seconds.
func parseRate(value string) (r Rate, ok bool) {
	pages, rest, found := strings.Cut(value, "/")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 || len(fields) > 2 {
		return Rate{}, false
	}
	r.To = minutesOfDay
	var okPages, okPeriod bool
	r.Pages, okPages = parseCount(strings.TrimSpace(pages))
	r.Period, okPeriod = parsePeriod(fields[0])
	ok = okPages && okPeriod
	if ok && len(fields) == 2 {
		r.From, r.To, ok = parseWindow(fields[1])
	}
	return r, ok
}

// parsePeriod reads "10", "10s", "15m", "1h" or "1d".
func parsePeriod(s string) (time.Duration, bool) {
	unit := time.Second
	if i := strings.IndexByte("smhd", ascii.Lower(s[len(s)-1])); i >= 0 {
		s, unit = s[:len(s)-1], [...]time.Duration{time.Second, time.Minute, time.Hour, day}[i]
	}
	n, ok := parseCount(s)
	// As in parseCount, what is too large becomes the largest.
	hi, lo := bits.Mul64(uint64(n), uint64(unit))
	if hi != 0 || lo > math.MaxInt64 {
		lo = math.MaxInt64
	}
	return time.Duration(lo), ok
}

// parseCount reads a positive decimal number without a sign. A number too large for an
// int64 becomes the largest: it stands for "many", not for nothing.
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
