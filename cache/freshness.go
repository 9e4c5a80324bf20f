package cache

import (
	"net/http"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

// readChain reads an answer and the redirects that led to it. The answer may be reused as long as each redirect that
// states a lifetime. One that states none does not count, or the default would apply to every redirected file.
func readChain(r *fetch.Result, received time.Time) freshness {
	f := readFreshness(r.Header, received)
	f.redirect, f.redirectStale = maxDelta*time.Second, maxDelta*time.Second
	for _, h := range trimRedirects(r.RedirectHeaders) { // as a Store will have them
		hop := readFreshness(h, received)
		if hop.source != "" {
			f.redirect = min(f.redirect, hop.lifetime)
			f.redirectStale = min(f.redirectStale, hop.lifetime+hop.whileRevalidate)
		}
		// What is stored of the answer includes where it came from (RFC 9111 §5.2.2.5).
		f.noStore = f.noStore || hop.noStore
		f.mustRevalidate = f.mustRevalidate || hop.mustRevalidate
	}
	return f
}

// readFreshness reads the header of an answer received at a time. The request time is not known, so the response delay
// of §4.2.3 counts as zero. Dates have whole seconds, so a fraction of received would make the answer seem older.
func readFreshness(h http.Header, received time.Time) freshness {
	received = received.Truncate(time.Second)
	f := readCacheControl(h)
	if expires := h["Expires"]; f.source == "" && len(expires) > 0 {
		f.source = "Expires" // §5.3: any value that is no date is a time in the past
		if t, ok := parseDate(expires[0]); ok {
			f.lifetime = min(t.Sub(dateOf(h, received)), maxDelta*time.Second)
		}
	}
	if varyAny(h) {
		f.source, f.lifetime, f.whileRevalidate = "Vary", 0, 0 // §4.1: never matches another request
	}
	age := max(0, declaredAge(h), received.Sub(dateOf(h, received))) // §4.2.3
	left := max(0, f.lifetime) - age                                 // cannot overflow
	if f.source != "" {
		f.whileRevalidate = max(0, f.whileRevalidate+min(0, left)) // RFC 5861 §3: the time after it became stale
	}
	f.lifetime = max(0, left)
	return f
}

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

// isRefusal reports whether r has a status of firewalls, whose verdicts come and go: it holds for an hour at most.
func isRefusal(r *fetch.Result) bool {
	return r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden
}

const (
	defaultMinTTL     = time.Minute
	defaultTTL        = 24 * time.Hour // RFC 9309 §2.4
	defaultRefusedTTL = time.Hour
	momentTTL         = 5 * time.Minute  // of the first status of the moment,
	maxMomentTTL      = time.Hour        // and of one after many
	firstRetry        = 30 * time.Second // after a failure
	maxRetryAfter     = 24 * time.Hour
)
