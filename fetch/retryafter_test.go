package fetch_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

func TestRetryAfterIsReportedAndBounded(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			status      int
			value, date string
			want        time.Duration
		}{
			{503, "120", "", 2 * time.Minute},
			{503, " 120 ", "", 2 * time.Minute},
			{429, "120", "", 2 * time.Minute},
			{500, "120", "", 2 * time.Minute},
			{200, "120", "", 0},
			{404, "120", "", 0},
			{600, "120", "", 0},
			{503, "", "", 0},
			{503, "0", "", 0},
			{503, "-5", "", 0},
			{503, "+5", "", 0},
			{503, "1.5", "", 0},
			{503, "1e3", "", 0},
			{503, "soon", "", 0},
			{503, "86400", "", 24 * time.Hour},
			{503, "86401", "", 24 * time.Hour},
			{503, "9223372037", "", 24 * time.Hour}, // overflows a Duration
			{503, "9223372036854775808", "", 24 * time.Hour},
			{503, "99999999999999999999999999", "", 24 * time.Hour},
			{503, at(10 * time.Minute), "", 10 * time.Minute},
			{503, at(-10 * time.Minute), "", 0},
			{503, at(300 * 24 * time.Hour), "", 24 * time.Hour},
			{503, at(3 * time.Hour), at(2 * time.Hour), time.Hour}, // its clock is two hours fast
			{503, at(-3 * time.Hour), at(-4 * time.Hour), time.Hour},
			{503, at(10 * time.Minute), "now", 10 * time.Minute},
			{503, "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", 24 * time.Hour},
		} {
			rt, _ := answers(response(c.status, "", "Retry-After", c.value, "Date", c.date))
			f := fetch.Fetcher{Transport: rt, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			if err != nil || r.RetryAfter != c.want {
				t.Errorf("%d with %q, dated %q: got %v, want %v (%v)", c.status, c.value, c.date, r.RetryAfter, c.want, err)
			}
		}
	})
}

// Pauses grow, are random, and leave room for the wish of the server.
func TestThePausesBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var longest [3]time.Duration
		for range 300 {
			var at []time.Time
			f := fetch.Fetcher{Retries: 3, Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
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
		var at []time.Time
		f := fetch.Fetcher{Retries: 1, Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Now())
			return response(503, "", "Retry-After", "7"), nil
		})}
		if _, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || len(at) != 2 || at[1].Sub(at[0]) != 7*time.Second {
			t.Errorf("asked at %v, %v", at, err)
		}
	})
}
