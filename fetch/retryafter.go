package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxRetryAfter      = 24 * time.Hour // how long rules hold without being asked for again (RFC 9309 §2.4)
	maxRetryAfterBytes = 1 << 10        // of all its lines: a page's header may have megabytes of commas
)

// RetryAfter returns how long the Retry-After field asks to stay away (RFC 9110 §10.2.3), at most 24 h. The field is
// honoured only with a temporary status: 408, 421, 425, 428, 429, 431 or 5xx. RetryAfter returns 0 for any other
// status, and if the field is absent, longer than 1 KiB, cannot be read, or names no later time.
//
// A date counts from the Date of the same header, so wrong clocks do not matter; without one, from now. Beyond the RFC,
// as servers write it: a fraction of seconds is rounded up, a date may have a numeric zone, and of several values the
// largest counts.
func RetryAfter(status int, h http.Header, now time.Time) time.Duration {
	all := strings.Join(h.Values("Retry-After"), ",")
	if !isOfTheMoment(status) || len(all) > maxRetryAfterBytes {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	longest, before := time.Duration(0), ""
	for part := range strings.SplitSeq(all, ",") { // a comma separates values, or stands inside a date
		longest = max(longest, parseRetry(part, now), parseRetry(before+","+part, now))
		before = part
	}
	return min(longest, maxRetryAfter)
}

// parseRetry reads seconds or a date that lies ahead; 0: neither.
func parseRetry(value string, now time.Time) time.Duration {
	value = strings.Trim(value, " \t")
	if whole, fraction, _ := strings.Cut(value, "."); whole != "" && strings.Trim(whole+fraction, digits) == "" {
		seconds, _ := strconv.ParseUint(whole, 10, 64) // saturates
		seconds = min(seconds, uint64(maxRetryAfter/time.Second))
		if strings.Trim(fraction, "0") != "" {
			seconds++
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		if date, err = time.Parse(time.RFC1123Z, value); err != nil {
			return 0
		}
	}
	return date.Sub(now)
}
