// Package freshness reads what an answer says about its own reuse (RFC 9111 §4.2, RFC 5861). It knows no bounds but
// those of what it reads.
package freshness

import (
	"net/http"
	"strings"
	"time"
)

// Statement is what an answer and the redirects to it say.
type Statement struct {
	Source          string        // the field that states a lifetime; "": none does
	Lifetime        time.Duration // less the age at receipt, at least 0; 0 also for an invalid one (§4.2.1)
	NoStore         bool          // not to be written to a Store; not to be validated either
	MustRevalidate  bool          // never to be used stale, except where the origin is unreachable
	WhileRevalidate time.Duration // stale-while-revalidate (RFC 5861 §3)

	// The least of the redirects that state a lifetime, or maxDelta if none does.
	Redirect      time.Duration // lifetime
	RedirectStale time.Duration // lifetime and stale-while-revalidate
}

// Read reads the header of an answer received at a time, and those of the redirects that led to it. The answer may be
// reused as long as each redirect that states a lifetime. One that states none does not count, or the default would
// apply to every redirected file.
func Read(h http.Header, redirects []http.Header, received time.Time) Statement {
	s := readOne(h, received)
	s.Redirect, s.RedirectStale = maxDelta*time.Second, maxDelta*time.Second
	for _, h := range redirects {
		hop := readOne(h, received)
		if hop.Source != "" {
			s.Redirect = min(s.Redirect, hop.Lifetime)
			s.RedirectStale = min(s.RedirectStale, hop.Lifetime+hop.WhileRevalidate)
		}
		// What is stored of the answer includes where it came from (RFC 9111 §5.2.2.5).
		s.NoStore = s.NoStore || hop.NoStore
		s.MustRevalidate = s.MustRevalidate || hop.MustRevalidate
	}
	return s
}

// readOne reads one header. The request time is not known, so the response delay of §4.2.3 counts as zero. Dates have
// whole seconds, so a fraction of received would make the answer seem older.
func readOne(h http.Header, received time.Time) Statement {
	received = received.Truncate(time.Second)
	s := readCacheControl(h)
	if expires := h["Expires"]; s.Source == "" && len(expires) > 0 {
		s.Source = "Expires" // §5.3: any value that is no date is a time in the past
		if t, ok := parseDate(expires[0]); ok {
			s.Lifetime = min(t.Sub(dateOf(h, received)), maxDelta*time.Second)
		}
	}
	if VaryAny(h) {
		s.Source, s.Lifetime, s.WhileRevalidate = "Vary", 0, 0 // §4.1: never matches another request
	}
	age := max(0, declaredAge(h), received.Sub(dateOf(h, received))) // §4.2.3
	left := max(0, s.Lifetime) - age                                 // cannot overflow
	if s.Source != "" {
		s.WhileRevalidate = max(0, s.WhileRevalidate+min(0, left)) // RFC 5861 §3: the time after it became stale
	}
	s.Lifetime = max(0, left)
	return s
}

// NoStore reports whether Cache-Control has a no-store.
func NoStore(h http.Header) bool { return readCacheControl(h).NoStore }

// dateOf is when the origin made the answer, or when it arrived if it does not say.
func dateOf(h http.Header, received time.Time) time.Time {
	if t, ok := parseDate(h.Get("Date")); ok {
		return t
	}
	return received
}

// parseDate reads an HTTP-date in its three formats (RFC 9110 §5.6.7) as a cache has to (RFC 9111 §4.2): in upper or
// lower case, and in GMT only. Package time also accepts others, such as an hour of one digit. So the date is formatted
// again and compared, except for the name of the day, which says nothing.
func parseDate(s string) (time.Time, bool) {
	_, date, _ := strings.Cut(s, " ")
	for _, layout := range [...]string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		t, err := time.Parse(layout, strings.ToUpper(s))
		if err != nil {
			continue
		}
		if _, written, _ := strings.Cut(t.Format(layout), " "); strings.EqualFold(date, written) {
			return t, true
		}
	}
	return time.Time{}, false
}

// declaredAge reads the first member of the first Age line, as the most recent cache on the way wrote it. Anything but
// digits is no age (§5.1).
func declaredAge(h http.Header) time.Duration {
	first, _, _ := strings.Cut(h.Get("Age"), ",")
	age := int64(0)
	for _, c := range []byte(strings.Trim(first, " \t")) {
		if c < '0' || c > '9' {
			return 0
		}
		age = min(maxDelta, age*10+int64(c-'0'))
	}
	return time.Duration(age) * time.Second
}

// VaryAny reports whether Vary holds "*" (RFC 9110 §12.5.5).
func VaryAny(h http.Header) bool {
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if strings.Trim(name, " \t") == "*" {
				return true
			}
		}
	}
	return false
}

// maxDelta stands for any greater number of seconds (RFC 9111 §1.2.2).
const maxDelta = 1<<31 - 1
