package fetch_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

var retryNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// retries has values of Retry-After, seen at retryNow in an answer with that Date or none.
var retries = []struct {
	status      int
	value, date string
	want        time.Duration // 0: as if absent
}{
	// RFC 9110 §10.2.3: seconds, or a date in one of three formats (§5.6.7).
	{503, "120", "", 2 * time.Minute},
	{503, "00120", "", 2 * time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "", time.Minute},
	{503, "Saturday, 21-Nov-26 12:01:00 GMT", "", time.Minute},
	{503, "Sat Nov 21 12:01:00 2026", "", time.Minute},

	{429, "120", "", 2 * time.Minute},
	{500, "120", "", 2 * time.Minute},
	{200, "120", "", 0},
	{301, "120", "", 0},
	{404, "120", "", 0},
	{600, "120", "", 0},

	// The server's clock is wrong: the difference of its own two times counts.
	{503, "Sat, 21 Nov 2026 15:01:00 GMT", "Sat, 21 Nov 2026 15:00:00 GMT", time.Minute},
	{503, "Sat, 21 Nov 2026 09:00:00 GMT", "Sat, 21 Nov 2026 08:00:00 GMT", time.Hour},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "nonsense", time.Minute},

	// A day at most.
	{503, "86400", "", 24 * time.Hour},
	{503, "86401", "", 24 * time.Hour},
	{503, "9223372037", "", 24 * time.Hour}, // overflows a Duration
	{503, "9223372036854775808", "", 24 * time.Hour},
	{503, "9999999999999999999999999999", "", 24 * time.Hour}, // overflows everything
	{503, "Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", 24 * time.Hour},

	// As servers write it.
	{503, "1.5", "", 2 * time.Second},
	{503, "0.001", "", time.Second},
	{503, "120, 240", "", 4 * time.Minute},
	{503, "soon, 120", "", 2 * time.Minute},
	{503, ",, 120 ,", "", 2 * time.Minute},
	{503, "Sat, 21 Nov 2026 14:01:00 +0200", "", time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 -0000", "", time.Minute},
	{503, "30, Sat, 21 Nov 2026 12:01:00 GMT", "", time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT, 30", "", time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT, Sat, 21 Nov 2026 12:02:00 GMT", "", 2 * time.Minute},

	// Says nothing.
	{503, ".5", "", 0},
	{503, "1.5s", "", 0},
	{503, "1.2.3", "", 0},
	{503, "", "", 0},
	{503, "0", "", 0},
	{503, "-1", "", 0},
	{503, "0x10", "", 0},
	{503, "soon", "", 0},
	{503, "Sat, 21 Nov 2026", "", 0},
	{503, "Sat, 21 Nov 2026 11:59:00 GMT", "", 0},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", 0},
}

func TestRetryAfterIsSecondsOrADateAndAtMostADay(t *testing.T) {
	for _, c := range retries {
		h := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		if got := fetch.RetryAfter(c.status, h, retryNow); got != c.want {
			t.Errorf("%d with %q, dated %q: got %v, want %v", c.status, c.value, c.date, got, c.want)
		}
	}
	if got := fetch.RetryAfter(503, http.Header{"Retry-After": {"1", "120", "x"}}, retryNow); got != 2*time.Minute {
		t.Errorf("three lines: got %v, want 2m", got)
	}
	if got := fetch.RetryAfter(503, nil, retryNow); got != 0 {
		t.Errorf("absent: got %v, want 0", got)
	}
}

func TestStatusesOfTheMoment(t *testing.T) {
	for status := range 700 {
		want := status >= 500 && status <= 599 || slices.Contains([]int{408, 421, 425, 428, 429, 431}, status)
		if got := (&fetch.Result{StatusCode: status}).OfTheMoment(); got != want {
			t.Errorf("%d: %v", status, got)
		}
		if r := (fetch.Result{StatusCode: status, Err: fetch.ErrBusy}); r.OfTheMoment() {
			t.Errorf("%d: unreachable, and of the moment", status)
		}
	}
}

func TestRetryAfterIsReportedInTheResult(t *testing.T) {
	for status, want := range map[int]time.Duration{503: 2 * time.Minute, 429: 2 * time.Minute, 404: 0} {
		rt, _ := answers(response(status, "", "Retry-After", "120"))
		f := fetch.Fetcher{Transport: rt, Retries: -1}
		if r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || r.RetryAfter != want {
			t.Errorf("%d: got %v, want %v (%v)", status, r.RetryAfter, want, err)
		}
	}
}

// Pauses grow, are random, and leave room for the wish of the server.
func TestThePausesBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var longest [3]time.Duration
		for range 300 {
			var at []time.Time
			f := fetch.Fetcher{Retries: 3, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				return response(503, ""), nil
			})}
			if _, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || len(at) != 4 {
				t.Fatalf("%d requests, %v", len(at), err)
			}
			for i := range longest {
				longest[i] = max(longest[i], at[i+1].Sub(at[i]))
			}
		}
		for i, d := range longest {
			// Of 300 draws below a limit, the largest is above two thirds of it, but for one in 10^52.
			if limit := 250 * time.Millisecond << i; d >= limit || d < limit*2/3 {
				t.Errorf("pause %d is up to %v, want almost %v", i, d, limit)
			}
		}
	})
}
