package fetch

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is as long as rules hold without being asked for again (RFC 9309 §2.4).
const maxRetryAfter = 24 * time.Hour

// RetryAfter returns how long the Retry-After field of a status that passes (408, 421, 425,
// 428, 429, 431, or 5xx) asks to stay away (RFC 9110 §10.2.3), at most 24 h. 0 if the status
// is another, or the field is absent, cannot be read, or names no later time. A date counts from the Date of the same header, or, if
// it has none, from now: a clock that is wrong on either side does not matter then.
func RetryAfter(status int, h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" || !passes(status) {
		return 0
	}
	if strings.Trim(v, "0123456789") == "" {
		// ParseUint saturates, and the comparison comes before the multiplication.
		seconds, _ := strconv.ParseUint(v, 10, 64)
		if seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}

// passes reports whether a status is about one request or one moment, not about the file.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly,
		http.StatusPreconditionRequired, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return status >= 500 && status <= 599
}
