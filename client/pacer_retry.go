package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter is what the Retry-After field (RFC 9110 §10.2.3) says: seconds or a date,
// at most a day. 0 where it is absent, malformed, or not in the future.
//
// A date is taken relative to the answer's own Date where it has one, so that a wrong
// clock on either side does not matter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.TrimLeft(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(day/time.Second) { // err: out of range
			return day
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), day)
}
