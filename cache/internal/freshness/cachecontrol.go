package freshness

import (
	"net/http"
	"strings"
	"time"

	"github.com/pquerna/cachecontrol/cacheobject"
)

// maxFieldBytes bounds the Cache-Control that is read: the parser's cost grows with the square of a hostile one, and
// net/http delivers megabytes.
const maxFieldBytes = 8 << 10

// readCacheControl reads as a private cache does: s-maxage, private and proxy-revalidate are for others. It combines
// all field lines (RFC 9110 §5.2). Each directive is parsed alone, because the parser makes mistakes with a whole
// field: an error makes it lose a no-store beside it, an unquoted field list swallows its neighbours, and the last of
// two max-age counts.
func readCacheControl(h http.Header) (s Statement) {
	const name = "Cache-Control"
	if all := strings.Join(h[name], ","); len(all) > maxFieldBytes {
		return Statement{Source: name, NoStore: strings.Contains(strings.ToLower(all), "no-store")}
	}
	maxAge, revalidate := cacheobject.DeltaSeconds(-1), cacheobject.DeltaSeconds(-1)
	// §4.2.1 wants the first of several, or stale. The smallest is never longer than either.
	least := func(d *cacheobject.DeltaSeconds, said cacheobject.DeltaSeconds) {
		if *d < 0 || said >= 0 && said < *d {
			*d = said
		}
	}
	for _, directive := range directives(h[name]) {
		d := parseDirective(directive)
		least(&maxAge, d.MaxAge)
		least(&revalidate, d.StaleWhileRevalidate)
		s.NoStore = s.NoStore || d.NoStore
		s.MustRevalidate = s.MustRevalidate || d.MustRevalidate
		delete(d.NoCache, "")                        // no-cache="" names none
		if d.NoCachePresent && len(d.NoCache) == 0 { // with field names it concerns only those (§5.2.2.4)
			s.Source, s.MustRevalidate = name, true
		}
	}
	s.WhileRevalidate = seconds(revalidate)
	switch {
	case s.NoStore:
		s.Source, s.MustRevalidate = name, true
	case maxAge >= 0 && s.Source == "":
		s.Source, s.Lifetime = name, seconds(maxAge)
	}
	return s
}

func seconds(d cacheobject.DeltaSeconds) time.Duration { return time.Duration(max(0, d)) * time.Second }

// parseDirective reads one directive. If the parser gives up, a directive that restricts counts as present, and a
// freshness lifetime as zero (§4.2.1: invalid freshness is stale). Everything else is ignored (§5.2.3).
func parseDirective(directive string) *cacheobject.ResponseCacheDirectives {
	d, err := cacheobject.ParseResponseCacheControl(directive)
	if err == nil {
		return d
	}
	d = &cacheobject.ResponseCacheDirectives{MaxAge: -1, SMaxAge: -1, StaleIfError: -1, StaleWhileRevalidate: -1}
	name, _, _ := strings.Cut(directive, "=")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "max-age":
		d.MaxAge = 0
	case "no-store":
		d.NoStore = true
	case "no-cache":
		d.NoCachePresent = true
	case "must-revalidate":
		d.MustRevalidate = true
	}
	return d
}

func directives(lines []string) (all []string) {
	for _, line := range lines {
		for line != "" {
			var d string
			d, line = cutDirective(line)
			if d = strings.Trim(d, " \t"); d != "" {
				all = append(all, d)
			}
		}
	}
	return all
}

// cutDirective cuts at the first comma outside quoted strings (RFC 9110 §5.6.4). A quote that is never closed quotes
// nothing: it must not hide a no-store behind it.
func cutDirective(s string) (directive, rest string) {
	quoted, hidden := false, -1
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"' && (quoted || i > 0 && s[i-1] == '='): // elsewhere it begins no string
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ',' && !quoted:
			return s[:i], s[i+1:]
		case s[i] == ',' && hidden < 0:
			hidden = i
		}
	}
	if quoted && hidden >= 0 {
		return s[:hidden], s[hidden+1:]
	}
	return s, ""
}
