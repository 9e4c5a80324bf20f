package pace

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// Values of Request-rate, those of real files among them. delay 0: ignored.
var rates = []struct {
	value    string
	delay    time.Duration
	from, to int // minutes; 0 to 1440: at any hour
}{
	// As Seznam documents them (spec.md E-01).
	{"1/10s", 10 * time.Second, 0, 1440},
	{"100/15m", 9 * time.Second, 0, 1440},
	{"400/1h", 9 * time.Second, 0, 1440},
	{"9000/1d", 9600 * time.Millisecond, 0, 1440},
	{"1/10s 1800-1900", 10 * time.Second, 1080, 1140},

	// As files have them.
	{"1/5", 5 * time.Second, 0, 1440},
	{"5/1", 200 * time.Millisecond, 0, 1440},
	{"1/10S", 10 * time.Second, 0, 1440},
	{"1/1M 2200-0600", time.Minute, 1320, 360},
	{" 1 / 10s \t 0000-2400 ", 10 * time.Second, 0, 1440},
	{"01/010s", 10 * time.Second, 0, 1440},

	// Rounded up: never one more than asked for.
	{"3/1s", 333333334, 0, 1440},
	{"7/10s 0000-0001", 1428571429, 0, 1},

	// Absurd, in range all the same.
	{"1/99999999999999999999999999d", math.MaxInt64, 0, 1440},
	{"1/200000d", math.MaxInt64, 0, 1440},
	{"99999999999999999999999999/1s", 1, 0, 1440},
	{"99999999999999999999999999/99999999999999999999999999d", 1, 0, 1440},

	// Malformed (spec.md RT411).
	{"", 0, 0, 0},
	{"10", 0, 0, 0},
	{"/", 0, 0, 0},
	{"1/", 0, 0, 0},
	{"/10s", 0, 0, 0},
	{"1/s", 0, 0, 0},
	{"0/10s", 0, 0, 0},
	{"1/0s", 0, 0, 0},
	{"-1/10s", 0, 0, 0},
	{"1/-10s", 0, 0, 0},
	{"+1/10s", 0, 0, 0},
	{"1/10x", 0, 0, 0},
	{"1/10ss", 0, 0, 0},
	{"1.5/10s", 0, 0, 0},
	{"1/1.5s", 0, 0, 0},
	{"1_0/10s", 0, 0, 0},
	{"one/10s", 0, 0, 0},
	{"1/10 s", 0, 0, 0},
	{"1/10s/2", 0, 0, 0},
	{"1/10s 1800", 0, 0, 0},
	{"1/10s 1800-", 0, 0, 0},
	{"1/10s 1800-1900-2000", 0, 0, 0},
	{"1/10s 18:00-19:00", 0, 0, 0},
	{"1/10s 1860-1900", 0, 0, 0},
	{"1/10s 2400-0100", 0, 0, 0},
	{"1/10s 1800-2401", 0, 0, 0},
	{"1/10s 1800-1800", 0, 0, 0},
	{"1/10s 1800-1900 UTC", 0, 0, 0},
	{"1/١٠s", 0, 0, 0}, // digits of another script
}

// paceFor is what a file with this Request-rate asks for.
func paceFor(value string) pace {
	return paceOf(policy.Parse([]byte("User-agent: *\nRequest-rate: " + value)).Group("*"))
}

func TestRequestRateComesDownToADelay(t *testing.T) {
	for _, c := range rates {
		var want pace
		switch {
		case c.delay == 0:
		case c.from == 0 && c.to == minutesOfDay:
			want = pace{delay: c.delay, said: true}
		default:
			want = pace{rates: []rate{{c.delay, c.from, c.to}}}
		}
		if got := paceFor(c.value); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", c.value, got, want)
		}
	}
}

func FuzzRequestRate(f *testing.F) {
	for _, c := range rates {
		f.Add(c.value, int64(1_700_000_000))
	}
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		a := paceFor(value)
		if len(a.rates) == 0 {
			return
		}
		r := a.rates[0]
		if r.delay <= 0 || r.from < 0 || r.from >= minutesOfDay || r.to < 0 || r.to > minutesOfDay || r.from == r.to {
			t.Fatalf("%q: out of range: %+v", value, r)
		}
		// Between now and the next change the window is open, or closed, throughout.
		now := time.Unix(unix%(1<<40), 0)
		a = pace{rates: []rate{r}}
		change := a.nextChange(now)
		if !change.After(now) || change.Sub(now) > Day {
			t.Fatalf("%q: at %v the next change is at %v", value, now, change)
		}
		if r.holds(now) != r.holds(change.Add(-1)) {
			t.Fatalf("%q: it changed between %v and %v", value, now, change)
		}
	})
}
