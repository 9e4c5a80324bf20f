package cache

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/cache/internal/freshness"
	"github.com/robotsgate/robotsgate/fetch"
)

// freshFields are the header fields that freshness depends on. Cache-Control is first: trimHeader may replace it later.
var freshFields = []string{"Cache-Control", "Expires", "Date", "Age", "Vary"}

// keptFields are all that later decisions need, freshness and validators (RFC 9110 §8.8), and the price of a 402.
var keptFields = slices.Concat(freshFields, []string{"Etag", "Last-Modified", "Crawler-Price"})

// bodyFields are kept with a Body, for programs that judge a file by them.
var bodyFields = slices.Concat(keptFields, []string{"Content-Type", "Retry-After"})

const (
	maxKept     = 8 << 10 // bytes of one field, and of all redirects; what is longer is dropped, see trimHeader
	maxLines    = 32      // lines of one field, and redirects; if there are more, all are dropped
	maxRedirect = 1 << 10 // bytes of what is kept of one redirect's header
)

// trim copies what memory keeps of a result. Fields and redirects are bounded, because the origin decides on their
// length. Strings and Body are copied: net/http makes a whole header from one buffer.
func (t *terms) trim(r *fetch.Result) *fetch.Result {
	s := *r
	if t.keepBody {
		s.Body, s.Header = bytes.Clone(r.Body), trimHeader(r.Header, bodyFields)
	} else {
		s.Body, s.Header = nil, trimHeader(r.Header, keptFields)
	}
	s.Redirects = trimStrings(r.Redirects)
	if s.Redirects == nil && len(r.Redirects) > 0 {
		// Validators are for the URL that the file came from, which is not kept.
		s.Header.Del("ETag")
		s.Header.Del("Last-Modified")
	}
	s.RedirectHeaders = trimRedirects(r.RedirectHeaders)
	return &s
}

// causeOf returns fetch.Failure.Cause.
func causeOf(err error) string {
	if f, ok := errors.AsType[*fetch.Failure](err); ok {
		return f.Cause
	}
	return ""
}

// trimHeader keeps some fields. It returns nil for none, since an empty map takes as much as a full one.
func trimHeader(h http.Header, names []string) http.Header {
	var kept http.Header
	for _, name := range names {
		lines := trimStrings(h[name])
		if len(lines) < len(h[name]) && slices.Contains(freshFields, name) {
			name, lines = "Cache-Control", strictest(h) // what is kept must not make the answer hold for longer
		}
		if len(lines) == 0 {
			continue
		}
		if kept == nil {
			kept = make(http.Header)
		}
		kept[name] = lines
	}
	return kept
}

// trimRedirects keeps what redirects say about their reuse, if they say anything. A header that is too long counts as
// stale, like a Cache-Control that is too long.
func trimRedirects(headers []http.Header) (kept []http.Header) {
	if len(headers) > maxLines {
		return []http.Header{{"Cache-Control": {"no-store"}}} // as one of them may say
	}
	for _, full := range headers {
		h := trimHeader(full, keptFields)
		if h["Cache-Control"] == nil && h["Expires"] == nil && !freshness.VaryAny(h) {
			continue // states no lifetime
		}
		size := int64(0)
		for _, lines := range h {
			size += textsCost(lines)
		}
		if size > maxRedirect {
			h = http.Header{"Cache-Control": strictest(full)}
		}
		kept = append(kept, h)
	}
	return kept
}

// strictest stands for a header that is too long to be kept.
func strictest(h http.Header) []string {
	if freshness.NoStore(h) {
		return []string{"no-store"}
	}
	return []string{"no-cache"}
}

// trimStrings copies all strings, or none if they are too long or too many together.
func trimStrings(all []string) []string {
	size := 0
	for _, s := range all {
		size += len(s) + 1
	}
	if len(all) == 0 || size > maxKept || len(all) > maxLines {
		return nil
	}
	kept := make([]string, len(all))
	for i, s := range all {
		kept[i] = strings.Clone(s)
	}
	return kept
}
