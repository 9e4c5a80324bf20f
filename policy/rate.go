package policy

import (
	"iter"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
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
	minutesOfDay = 24 * 60

	maxRates = 32 // records of one group that are read: each costs its readers time for every turn
)

// rateForm is pages "/" period and perhaps a window "hhmm-hhmm". The period is in s, m, h or d;
// without a unit, as in most files, in seconds.
var rateForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(\d+)\s*/\s*(\d+)([smhdSMHD]?)(?:\s+(\d\d)([0-5]\d)-(\d\d)([0-5]\d))?\s*$`)
})

// RequestRates yields the Request-rate records of the group, in the order of the file. Of
// several that hold at the same time, a crawler should keep the slowest. Records that are
// not in Seznam's form are left out. Only the first 32 records are read.
func (g Group) RequestRates() iter.Seq[Rate] {
	return func(yield func(Rate) bool) {
		n := 0
		for record := range g.Records("request-rate") {
			if n++; n > maxRates {
				return
			}
			if r, ok := parseRate(record.Value); ok && !yield(r) {
				return
			}
		}
	}
}

// periods are never written to.
var periods = map[string]time.Duration{
	"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

func parseRate(value string) (Rate, bool) {
	part := rateForm().FindStringSubmatch(value)
	if part == nil {
		return Rate{}, false
	}
	// What is too large for an int64 becomes the largest: it stands for "many", not for nothing.
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(part[i], 10, 64) // 0 for a part that is not there
		return n
	}
	over, period := bits.Mul64(uint64(number(2)), uint64(periods[strings.ToLower(part[3])]))
	if over != 0 || period > math.MaxInt64 {
		period = math.MaxInt64
	}
	r := Rate{Pages: number(1), Period: time.Duration(period), To: minutesOfDay}
	if part[4] != "" {
		r.From, r.To = int(60*number(4)+number(5)), int(60*number(6)+number(7))
	}
	// An empty window, and one that starts at 2400, cannot be what was meant.
	return r, r.Pages > 0 && r.Period > 0 && r.From != r.To && r.From < minutesOfDay && r.To <= minutesOfDay
}
