package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is how long rules hold without being asked for again (RFC 9309 §2.4).
const maxRetryAfter = 24 * time.Hour

// RetryAfter returns how long the Retry-After field asks to stay away (RFC 9110 §10.2.3), at
// most 24 h. The field is honoured only with a temporary status: 408, 421, 425, 428, 429, 431 or
// 5xx. RetryAfter returns 0 for any other status, and if the field is absent, cannot be
// read, or names no later time.
//
// A date counts from the Date of the same header, so wrong clocks do not matter. If there
// is no Date, it counts from now.
//
// Beyond the RFC, as servers write it: a fraction of seconds is rounded up, a date may have a numeric zone, and of
// several values the largest counts.
func RetryAfter(status int, h http.Header, now time.Time) time.Duration {
	if !passes(status) {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	longest := time.Duration(0)
	for _, line := range h.Values("Retry-After") {
		for line != "" {
			var wait time.Duration
			wait, line = cutRetry(line, now)
			longest = max(longest, min(wait, maxRetryAfter))
		}
	}
	return longest
}

// cutRetry reads the first value of a list, or skips it. A comma parts values, unless it is that of a date.
func cutRetry(list string, now time.Time) (wait time.Duration, rest string) {
	value, rest, _ := strings.Cut(list, ",")
	if date, after, _ := strings.Cut(rest, ","); date != "" {
		if wait, ok := parseRetry(value+","+date, now); ok {
			return wait, after
		}
	}
	wait, _ = parseRetry(value, now)
	return wait, rest
}

// parseRetry reads seconds or a date.
func parseRetry(value string, now time.Time) (time.Duration, bool) {
	value = strings.Trim(value, " \t")
	whole, fraction, _ := strings.Cut(value, ".")
	if whole != "" && strings.Trim(whole+fraction, "0123456789") == "" {
		// ParseUint saturates, and the comparison comes before the multiplication.
		seconds, _ := strconv.ParseUint(whole, 10, 64)
		if seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter, true
		}
		if strings.Trim(fraction, "0") != "" {
			seconds++
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(value)
	if err != nil {
		date, err = time.Parse(time.RFC1123Z, value)
	}
	return max(0, date.Sub(now)), err == nil
}
