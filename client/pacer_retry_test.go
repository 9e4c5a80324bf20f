package client

import (
	"net/http"
	"testing"
	"time"
)

var retryNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Values of Retry-After, seen at retryNow in an answer with that Date or none.
var retries = []struct {
	value, date string
	want        time.Duration // 0: as if absent
}{
	// RFC 9110 §10.2.3: seconds, or a date in one of three formats (§5.6.7).
	{"120", "", 2 * time.Minute},
	{"Sat, 21 Nov 2026 12:01:00 GMT", "", time.Minute},
	{"Saturday, 21-Nov-26 12:01:00 GMT", "", time.Minute},
	{"Sat Nov 21 12:01:00 2026", "", time.Minute},
	{" 120 ", "", 2 * time.Minute},
	{"00120", "", 2 * time.Minute},

	// The server's clock is wrong: the difference of its own two times counts.
	{"Sat, 21 Nov 2026 15:01:00 GMT", "Sat, 21 Nov 2026 15:00:00 GMT", time.Minute},
	{"Sat, 21 Nov 2026 12:01:00 GMT", "nonsense", time.Minute},

	// Clamped to a day.
	{"86400", "", day},
	{"86401", "", day},
	{"9223372037", "", day}, // overflows a Duration
	{"9223372036854775807", "", day},
	{"9999999999999999999999999999", "", day}, // overflows everything
	{"Fri, 31 Dec 9999 23:59:59 GMT", "", day},
	{"Sat, 21 Nov 2026 12:01:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", day},

	// Says nothing.
	{"", "", 0},
	{"0", "", 0},
	{"-1", "", 0},
	{"+5", "", 0},
	{"1.5", "", 0},
	{"1e3", "", 0},
	{"0x10", "", 0},
	{"120, 240", "", 0},
	{"soon", "", 0},
	{"120s", "", 0},
	{"Sat, 21 Nov 2026 11:59:00 GMT", "", 0},
	{"Thu, 01 Jan 1970 00:00:00 GMT", "", 0},
	{"Sat, 21 Nov 2026 12:01:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", 0},
	{"Sat, 21 Nov 2026", "", 0},
}

func TestRetryAfterIsSecondsOrADateAndAtMostADay(t *testing.T) {
	for _, c := range retries {
		h := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		if got := retryAfter(h, retryNow); got != c.want {
			t.Errorf("%q, Date %q: got %v, want %v", c.value, c.date, got, c.want)
		}
	}
	if got := retryAfter(http.Header{}, retryNow); got != 0 {
		t.Errorf("absent: got %v, want 0", got)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, c := range retries {
		f.Add(c.value, c.date)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if got := retryAfter(h, retryNow); got < 0 || got > day {
			t.Fatalf("%q, Date %q: %v is out of range", value, date, got)
		}
	})
}
