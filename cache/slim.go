package cache

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/fetch"
)

// keptFields are the header fields that later decisions need: validators (RFC 9110
// §8.8), and what freshness is made of.
var keptFields = [...]string{"Etag", "Last-Modified", "Cache-Control", "Expires", "Date", "Age", "Vary"}

const (
	maxKept     = 8 << 10 // bytes of one field, and of all redirects; a longer one is dropped
	maxLines    = 32      // of one field, and redirects; more are dropped with the rest
	maxRedirect = 1 << 10 // bytes of what is kept of one redirect's header
	maxError    = 1 << 10 // bytes of an error's text
)

// slim copies what is kept of a result in memory. The origin decides how long header
// fields, redirects and certificates in errors are, so none may be kept as they came.
// Strings are copied because net/http makes all fields of a header from one buffer.
func slim(r *fetch.Result) *fetch.Result {
	s := *r
	s.Body = nil
	s.Header = slimHeader(r.Header)
	if s.Redirects = slimStrings(r.Redirects); s.Redirects == nil && len(r.Redirects) > 0 {
		// Validators are for the URL that the file came from, which is gone.
		s.Header.Del("ETag")
		s.Header.Del("Last-Modified")
	}
	s.RedirectHeaders = slimRedirects(r.RedirectHeaders)
	if r.Err != nil {
		text := r.Err.Error()
		s.Err = errors.New(strings.ToValidUTF8(strings.Clone(text[:min(len(text), maxError)]), ""))
	}
	return &s
}

// slimHeader returns nil for nothing, since an empty map takes as much as a full one.
func slimHeader(h http.Header) http.Header {
	var kept http.Header
	for _, name := range keptFields {
		lines := slimStrings(h[name])
		if len(lines) < len(h[name]) {
			lines = slimField(name, h)
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

// slimRedirects keeps what redirects say about their reuse, if they say anything. What takes
// more than such a header ever needs counts as stale, as a Cache-Control does that is too
// long to be read.
func slimRedirects(headers []http.Header) (kept []http.Header) {
	if len(headers) > maxLines {
		return []http.Header{{"Cache-Control": {"no-cache"}}}
	}
	for _, h := range headers {
		h = slimHeader(h)
		if h["Cache-Control"] == nil && h["Expires"] == nil && !varyAny(h) {
			continue // states no lifetime
		}
		size := int64(0)
		for _, lines := range h {
			size += stringsCost(lines)
		}
		if size > maxRedirect {
			h = http.Header{"Cache-Control": {"no-cache"}}
		}
		kept = append(kept, h)
	}
	return kept
}

// slimField returns what stands for a field that is too long to be kept: nothing that would
// make the answer hold for longer when its header is read again.
func slimField(name string, h http.Header) []string {
	switch name {
	case "Cache-Control":
		return []string{"no-cache"} // too long to be read, so it counts as stale
	case "Age":
		return []string{strconv.FormatInt(int64(declaredAge(h)/time.Second), 10)}
	case "Vary":
		if varyAny(h) {
			return []string{"*"}
		}
		return nil // that it names User-Agent is in the Result
	}
	first := slimStrings(h[name][:1]) // the only one that is read of the others
	if first == nil && name == "Expires" {
		return []string{"0"}
	}
	return first
}

// slimStrings copies all strings, or none if they are too long or too many together.
func slimStrings(all []string) []string {
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

const word = int64(unsafe.Sizeof(uintptr(0)))

// cost estimates the heap that an origin takes, within 20 %.
func cost(o place, s *state) int64 {
	const (
		node = 20 * word // in the map and the list, with their slack
		room = int64(unsafe.Sizeof(entry{})+unsafe.Sizeof(state{})) + node
	)
	n := room
	if o.agent != "" {
		n += 2*word + (int64(len(o.agent))+15)&^15
	}
	n += int64(len(o.Origin.String())-len("http://")+15) &^ 15
	for _, r := range [...]*fetch.Result{s.answer, s.failure, s.assumed} {
		if r == nil {
			continue
		}
		n += resultCost(r)
		if r != s.own() { // which is part of the entry
			n += int64(unsafe.Sizeof(*r))
		}
	}
	return n
}

// resultCost counts what the result keeps alive besides itself. Policies that say the
// same for all origins are shared, and have a Size of zero.
func resultCost(r *fetch.Result) int64 {
	n := int64(r.Policy.Size()) + headerCost(r.Header) + stringsCost(r.Redirects) + (int64(len(r.UserAgent))+15)&^15
	for _, h := range r.RedirectHeaders {
		n += word + headerCost(h)
	}
	if r.Err != nil {
		n += 4*word + int64(len(r.Err.Error()))
	}
	return n
}

func headerCost(h http.Header) (n int64) {
	if len(h) == 0 {
		return 0
	}
	n = 47 * word // a map of up to eight fields
	for _, lines := range h {
		n += stringsCost(lines)
	}
	return n
}

func stringsCost(all []string) (n int64) {
	for _, s := range all {
		n += 2*word + (int64(len(s))+15)&^15 // with what is lost to the size classes
	}
	return n
}
