package cache_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const day = 24 * time.Hour

var received = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) string { return received.Add(d).Format(http.TimeFormat) }

// freshnessFacts are RFC 9111 §4.2 and §5.2, and what the directive parser underneath
// gets wrong if it is given more than one directive, or believed when it gives up.
var freshnessFacts = []struct {
	name   string
	fields []string
	want   time.Duration
}{
	{"nothing stated", nil, day},
	{"max-age", []string{"Cache-Control", "max-age=60"}, time.Minute},
	{"max-age in capitals, with zeros", []string{"Cache-Control", "MAX-AGE=00060"}, time.Minute},
	{"max-age quoted", []string{"Cache-Control", `max-age="3600"`}, time.Hour},
	{"max-age beyond 31 bits", []string{"Cache-Control", "max-age=2147483648"}, 2147483647 * time.Second},
	{"max-age beyond 64 bits", []string{"Cache-Control", "max-age=99999999999999999999999"}, 2147483647 * time.Second},
	{"max-age twice: the smaller", []string{"Cache-Control", "max-age=1, max-age=3600"}, time.Second},
	{"max-age twice: the smaller, first or not", []string{"Cache-Control", "max-age=3600, max-age=1"}, time.Second},
	{"max-age on two lines", []string{"Cache-Control", "max-age=3600", "Cache-Control", "max-age=1"}, time.Second},
	{"no-store on the second line", []string{"Cache-Control", "max-age=3600", "Cache-Control", "no-store"}, 0},
	{"negative", []string{"Cache-Control", "max-age=-1"}, 0},
	{"with a sign", []string{"Cache-Control", "max-age=+60"}, 0},
	{"a fraction", []string{"Cache-Control", "max-age=3600.5"}, 0},
	{"a letter", []string{"Cache-Control", "max-age=3600a"}, 0},
	{"single quotes", []string{"Cache-Control", "max-age='3600'"}, 0},
	{"space after =", []string{"Cache-Control", "max-age= 3600"}, 0},
	{"space before =", []string{"Cache-Control", "max-age =3600"}, 0},
	{"no value", []string{"Cache-Control", "max-age"}, 0},
	{"an empty value", []string{"Cache-Control", "max-age="}, 0},
	{"a semicolon", []string{"Cache-Control", "max-age=60;no-store"}, 0},
	{"a missing comma", []string{"Cache-Control", "max-age=60 no-store"}, 0},

	{"no-cache", []string{"Cache-Control", "no-cache, max-age=60"}, 0},
	{"no-cache for a field only", []string{"Cache-Control", `no-cache="Set-Cookie", max-age=60`}, time.Minute},
	{"no-cache for an empty list of fields", []string{"Cache-Control", `no-cache="", max-age=60`}, 0},
	{"no-cache for a list of blanks", []string{"Cache-Control", `no-cache=" , ", max-age=60`}, 0},
	{"no-cache for a field, unquoted", []string{"Cache-Control", "no-cache=Set-Cookie,max-age=60"}, time.Minute},
	{"private with an unquoted field", []string{"Cache-Control", "private=a,no-store"}, 0},
	{"no-store beside a mistake", []string{"Cache-Control", "no-store, max-age="}, 0},
	{"no-store beside an open quote", []string{"Cache-Control", `no-store, foo="x`}, 0},
	{"no-store behind an open quote", []string{"Cache-Control", `foo="x, no-store`}, 0},
	{"no-store on the line after an open quote", []string{"Cache-Control", `foo="x`, "Cache-Control", "no-store"}, 0},
	{"no-store with an argument", []string{"Cache-Control", "no-store=1, max-age=60"}, 0},
	{"a known directive with an argument", []string{"Cache-Control", "public=1, immutable=1, must-revalidate=1, max-age=60"}, time.Minute},
	{"stale-if-error without a value", []string{"Cache-Control", "stale-if-error, stale-while-revalidate, max-age=60"}, time.Minute},
	{"directives inside a quoted string", []string{"Cache-Control", `foo="a, max-age=1, no-store", max-age=60`}, time.Minute},
	{"an escaped quote inside it", []string{"Cache-Control", `foo="a\", no-store", max-age=60`}, time.Minute},
	{"must-understand", []string{"Cache-Control", "must-understand, no-store, max-age=60"}, 0},
	{"private, for a private cache", []string{"Cache-Control", "private, s-maxage=1, max-age=60"}, time.Minute},
	{"Pragma", []string{"Pragma", "no-cache"}, day},
	{"8 KiB", []string{"Cache-Control", "max-age=60" + strings.Repeat(" ", 8000)}, time.Minute},
	{"more than 8 KiB", []string{"Cache-Control", "max-age=60" + strings.Repeat(" ", 8200)}, 0},

	{"Expires", []string{"Date", at(0), "Expires", at(time.Hour)}, time.Hour},
	{"Expires counts from Date", []string{"Date", at(-time.Hour), "Expires", at(time.Hour)}, time.Hour},
	{"Expires without Date", []string{"Expires", at(time.Hour)}, time.Hour},
	{"Expires below max-age", []string{"Date", at(0), "Expires", at(-time.Hour), "Cache-Control", "max-age=60"}, time.Minute},
	{"Expires in the past", []string{"Date", at(0), "Expires", at(-time.Hour)}, 0},
	{"Expires: 0", []string{"Date", at(0), "Expires", "0", "Last-Modified", at(-100 * day)}, 0},
	{"Expires: -1", []string{"Expires", "-1"}, 0},
	{"an empty Expires", []string{"Expires", ""}, 0},
	{"Expires in the year 1", []string{"Expires", "Mon, 01 Jan 0001 00:00:00 GMT"}, 0},
	{"Expires in the year 1, old Age", []string{"Expires", "Mon, 01 Jan 0001 00:00:00 GMT", "Age", "2147483647"}, 0},
	{"two Expires: the first", []string{"Date", at(0), "Expires", at(time.Minute), "Expires", at(time.Hour)}, time.Minute},
	{"Last-Modified gives no lifetime", []string{"Date", at(0), "Last-Modified", at(-10 * day)}, day},
	{"an invalid Last-Modified", []string{"Cache-Control", "max-age=60", "Last-Modified", "-1"}, time.Minute},

	{"Age", []string{"Cache-Control", "max-age=3600", "Age", "3000"}, 10 * time.Minute},
	{"Age above max-age", []string{"Cache-Control", "max-age=60", "Age", "100"}, 0},
	{"Age of 31 bits", []string{"Cache-Control", "max-age=60", "Age", "2147483648"}, 0},
	{"Age of 30 digits", []string{"Cache-Control", "max-age=2147483647", "Age", strings.Repeat("9", 30)}, 0},
	{"Age: the first member", []string{"Cache-Control", "max-age=60", "Age", "0, 7200"}, time.Minute},
	{"Age: the first line", []string{"Cache-Control", "max-age=60", "Age", "0", "Age", "7200"}, time.Minute},
	{"Age: no number", []string{"Cache-Control", "max-age=60", "Age", "7200.0"}, time.Minute},
	{"Age: negative", []string{"Cache-Control", "max-age=60", "Age", "-7200"}, time.Minute},
	{"Age with Expires", []string{"Date", at(0), "Expires", at(time.Hour), "Age", "7200"}, 0},
	{"Age where nothing is stated", []string{"Age", "7200"}, day},
	{"an old Date is an age", []string{"Cache-Control", "max-age=3600", "Date", at(-50 * time.Minute)}, 10 * time.Minute},
	{"a Date in the future is none", []string{"Cache-Control", "max-age=3600", "Date", at(time.Hour)}, time.Hour},
	{"an invalid Date is none", []string{"Cache-Control", "max-age=60", "Date", "yesterday"}, time.Minute},

	{"Vary on what never varies", []string{"Cache-Control", "max-age=60", "Vary", "Accept-Encoding"}, time.Minute},
	{"Vary: *", []string{"Cache-Control", "max-age=60", "Vary", "*"}, 0},
	{"Vary: * among others", []string{"Cache-Control", "max-age=60", "Vary", "Foo", "Vary", "Bar, *"}, 0},
}

// unbounded is a Cache whose Lifetime is what is stated.
func unbounded() *cache.Cache { return &cache.Cache{MinTTL: -1, MaxTTL: -1} }

func TestFreshnessLifetimeFollowsRFC9111(t *testing.T) {
	for _, tt := range freshnessFacts {
		// Date has whole seconds: what arrives later in the same one has no age.
		r := &fetch.Result{StatusCode: 200, Header: header(tt.fields...), Time: received.Add(800 * time.Millisecond)}
		if got, _ := unbounded().Lifetime(r); got != tt.want {
			t.Errorf("%s: %v, want %v\n%.200q", tt.name, got, tt.want, tt.fields)
		}
	}
}

// A directive that is added can make a lifetime shorter, never longer.
func FuzzFreshnessLifetime(f *testing.F) {
	for _, tt := range freshnessFacts {
		h := header(tt.fields...)
		f.Add(strings.Join(h["Cache-Control"], ","), h.Get("Expires"), h.Get("Age"), h.Get("Date"), h.Get("Vary"))
	}
	f.Fuzz(func(t *testing.T, cacheControl, expires, age, date, vary string) {
		h := http.Header{"Cache-Control": {cacheControl}, "Age": {age}, "Date": {date}, "Vary": {vary}}
		if expires != "" {
			h["Expires"] = []string{expires}
		}
		lifetime := func(more ...string) time.Duration {
			h["Cache-Control"] = append([]string{cacheControl}, more...)
			d, _ := unbounded().Lifetime(&fetch.Result{StatusCode: 200, Header: h, Time: received})
			return d
		}
		alone := lifetime()
		if alone < 0 {
			t.Errorf("%q: %v, want no negative one", h, alone)
		}
		if got := lifetime("no-store"); got != 0 {
			t.Errorf("%q: %v, want 0 by the other line", h, got)
		}
		if strings.Contains(strings.ToLower(cacheControl), "max-age") {
			if got := lifetime("max-age=60"); got > max(alone, time.Minute) {
				t.Errorf("%q: %v with a second max-age=60, want %v at most", h, got, max(alone, time.Minute))
			}
		}
	})
}

// RFC 9111 §4.2: case does not matter in a date, and every zone but GMT makes it invalid;
// §5.3: what is invalid is a time in the past.
func TestOnlyHTTPDatesCount(t *testing.T) {
	valid := []string{
		"Sun, 06 Nov 1994 09:49:37 GMT", "Sun, 06 Nov 1994 09:49:37 gMT", "sun, 06 nOV 1994 09:49:37 gmt",
		"Tue, 06 Nov 1994 09:49:37 GMT", // the name of the day says nothing
		"Sunday, 06-Nov-94 09:49:37 GMT", "Sun Nov  6 09:49:37 1994",
	}
	invalid := []string{
		"Sun, 06 Nov 1994 9:49:37 GMT", "Sunday, 06-Nov-94 9:49:37 GMT", "Sun Nov  6 9:49:37 1994", "Sun, 6 Nov 1994 09:49:37 GMT",
		"Sun, 06 Nov  1994 09:49:37 GMT", "Sun,  06 Nov 1994 09:49:37 GMT", "Sun, 06 Nov 1994  09:49:37 GMT",
		"Sun Nov 6 09:49:37 1994", "Sun Nov 06 09:49:37 1994", "Sun  Nov  6 09:49:37 1994",
		"Sunday, 06-Nov-94 09:49:37 EST", "Sun, 06 Nov 1994 09:49:37 EST", "Sun, 06 Nov 1994 09:49:37 UTC",
		"Sun, 06 Nov 1994 09:49:37 +0000", "Sun, 06 Nov 1994 09:49:37", "Sun, 06 Nov 1994 09:49:37.5 GMT",
		"Sun, 06 Nov 94 09:49:37 GMT", "Sun, 31 Feb 1995 09:49:37 GMT", "0", "", " ",
	}
	for i, date := range slices.Concat(valid, invalid) {
		expires, dated := time.Hour, time.Hour
		if i >= len(valid) {
			expires, dated = 0, 2*time.Hour // counted from receipt, where the Date is none
		}
		r := &fetch.Result{StatusCode: 200, Policy: policy.Parse(nil), Time: time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
			Header: http.Header{"Expires": {date}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}}}
		if got, _ := unbounded().Lifetime(r); got != expires {
			t.Errorf("Expires %q: %v, want %v", date, got, expires)
		}
		r.Header = http.Header{"Expires": {"Sun, 06 Nov 1994 10:49:37 GMT"}, "Date": {date}}
		if got, _ := unbounded().Lifetime(r); got != dated {
			t.Errorf("Date %q: %v, want %v", date, got, dated)
		}
	}
}

func TestLifetimeDependsOnTheStatusAndSaysWhatItComesFrom(t *testing.T) {
	redirected := func(status int, fields ...string) *fetch.Result {
		return &fetch.Result{StatusCode: status, RedirectHeaders: []http.Header{header(fields...)}}
	}
	for _, tt := range []struct {
		r      *fetch.Result
		want   time.Duration
		source string
	}{
		{nil, 0, ""},
		{&fetch.Result{StatusCode: 503, Header: header("Cache-Control", "max-age=60"), Err: errDown}, 0, ""},
		{&fetch.Result{StatusCode: 200}, day, ""},
		{&fetch.Result{StatusCode: 404}, day, ""},
		{&fetch.Result{StatusCode: 401}, time.Hour, ""},
		{&fetch.Result{StatusCode: 403}, time.Hour, ""},
		{&fetch.Result{StatusCode: 403, Header: header("Cache-Control", "max-age=60")}, time.Minute, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Age", "60")}, day, ""},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "must-revalidate")}, day, ""},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=86400")}, day, "Cache-Control"}, // as long as the default
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "no-store")}, 0, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", strings.Repeat("a", 8200))}, 0, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Expires", "0")}, 0, "Expires"},
		{&fetch.Result{StatusCode: 200, Header: header("Vary", "*")}, 0, "Vary"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=60", "Expires", "0")}, time.Minute, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=60", "Vary", "*")}, 0, "Vary"},
		{redirected(200, "Cache-Control", "max-age=60"), time.Minute, "redirect"},
		{redirected(403, "Expires", "0"), 0, "redirect"},
		{redirected(403, "Cache-Control", "max-age=4000"), time.Hour, ""},
		{&fetch.Result{StatusCode: 429, Header: header("Cache-Control", "max-age=60")}, 5 * time.Minute, "status"},
		{&fetch.Result{StatusCode: 429, RetryAfter: time.Minute}, time.Minute, "Retry-After"},
	} {
		if got, source := unbounded().Lifetime(tt.r); got != tt.want || source != tt.source {
			t.Errorf("%s: %v from %q, want %v from %q", brief(tt.r), got, source, tt.want, tt.source)
		}
	}
}

// A Cache tells what it does, before it is used and after.
func TestLifetimeIsWithinTheBounds(t *testing.T) {
	const field, long, short = "Cache-Control", "max-age=604800", "max-age=1"
	for _, tt := range []struct {
		c    *cache.Cache
		r    *fetch.Result
		want time.Duration
	}{
		{&cache.Cache{}, rules("/", field, long), day},
		{&cache.Cache{}, rules("/", field, short), time.Minute},
		{&cache.Cache{}, unavailable(401, field, long), time.Hour},
		{&cache.Cache{}, retryAfter(unavailable(429), time.Second), time.Minute},
		{&cache.Cache{}, down(), 0},
		{&cache.Cache{MaxTTL: time.Hour}, rules("/"), time.Hour},
		{&cache.Cache{MaxTTL: -1}, rules("/", field, long), 7 * day},
		{&cache.Cache{MaxTTL: -1}, unavailable(403, field, long), time.Hour},
		{&cache.Cache{MinTTL: 2 * day}, unavailable(403), 2 * day},
		{&cache.Cache{MinTTL: time.Hour, MaxTTL: time.Minute}, unavailable(429), time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			tt.c.WithoutSpread()
			s := &site{serve: always(tt.r)}
			r := *tt.r
			r.Time = time.Now()
			before, _ := tt.c.Lifetime(&r)
			_, until, err := tt.c.Get(t.Context(), origin(t, "https://a.example"), &cache.Source{Load: s.load})
			after, _ := tt.c.Lifetime(&r)
			if held := time.Until(until); before != tt.want || after != tt.want || err != nil || r.Err == nil && held != tt.want {
				t.Errorf("%s: %v, then %v, held for %v (%v), want %v", brief(tt.r), before, after, held, err, tt.want)
			}
			closeCache(t, tt.c)
		})
	}
}

// over is an answer that redirects with these headers led to.
func over(r *fetch.Result, redirects ...http.Header) *fetch.Result {
	r.RedirectHeaders = redirects
	for range redirects {
		r.Redirects = append(r.Redirects, "https://b.example/robots.txt")
	}
	return r
}

func cacheControl(v string) http.Header { return header("Cache-Control", v) }

// An answer is fresh as long as it and all redirects to it are, in memory, by Lifetime, and after a restart.
// What is dropped of a header for its length must not have been what made it stale.
func TestARedirectBoundsTheLifetime(t *testing.T) {
	aDay := rules("/private", "Cache-Control", "max-age=86400")
	silent := rules("/private")
	for name, tt := range map[string]struct {
		answer *fetch.Result
		hops   []http.Header
		want   time.Duration // below a minute: that, in a Cache
		stored bool
	}{
		"no redirect":              {aDay, nil, day, true},
		"one that states none":     {aDay, []http.Header{{}}, day, true},
		"shorter":                  {aDay, []http.Header{cacheControl("max-age=600")}, 10 * time.Minute, true},
		"longer":                   {aDay, []http.Header{cacheControl("max-age=8640000")}, day, true},
		"the least of three":       {aDay, []http.Header{cacheControl("max-age=7200"), cacheControl("max-age=3600"), {}}, time.Hour, true},
		"no-cache":                 {aDay, []http.Header{cacheControl("no-cache")}, 0, true},
		"no-store":                 {aDay, []http.Header{cacheControl("no-store"), cacheControl("max-age=60")}, 0, false},
		"Age":                      {aDay, []http.Header{header("Cache-Control", "max-age=600", "Age", "300")}, 5 * time.Minute, true},
		"Expires":                  {aDay, []http.Header{header("Expires", "0")}, 0, true},
		"Vary: *":                  {aDay, []http.Header{header("Vary", "*")}, 0, true},
		"no lifetime of the file":  {silent, []http.Header{cacheControl("max-age=3600")}, time.Hour, true},
		"nor a longer one":         {silent, []http.Header{cacheControl("max-age=864000")}, day, true},
		"more than such a header":  {aDay, []http.Header{cacheControl("max-age=86400, x=" + strings.Repeat("x", 4000))}, 0, true},
		"no-store in a long one":   {aDay, []http.Header{cacheControl("no-store, x=" + strings.Repeat("x", 4000))}, 0, false},
		"in a very long one":       {aDay, []http.Header{cacheControl("x=" + strings.Repeat("x", 9000) + ", No-Store")}, 0, false},
		"no-store, and long Vary":  {aDay, []http.Header{header("Cache-Control", "no-store", "Vary", strings.Repeat("x", 4000))}, 0, false},
		"and many of them":         {aDay, []http.Header{{"Cache-Control": {"no-store"}, "Vary": slices.Repeat([]string{"x"}, 33)}}, 0, false},
		"no-store after a quote":   {aDay, []http.Header{cacheControl(`max-age=3600", no-store, ext="`)}, 0, false},
		"a long Expires":           {rules("/private", "Expires", strings.Repeat("0", 9000)), nil, 0, true},
		"a long Age":               {rules("/private", "Cache-Control", "max-age=86400", "Age", strings.Repeat("0", 9000)+"86400"), nil, 0, true},
		"a long Vary":              {rules("/private", "Cache-Control", "max-age=86400", "Vary", "*, "+strings.Repeat("x", 9000)), nil, 0, true},
		"a long Cache-Control":     {rules("/private", "Cache-Control", "no-store, x="+strings.Repeat("x", 9000)), nil, 0, false},
		"stale-while-revalidate":   {rules("/private", "Cache-Control", "max-age=86400, stale-while-revalidate=9999"), []http.Header{cacheControl("max-age=600")}, 10 * time.Minute, true},
		"must-revalidate on a way": {rules("/private", "Cache-Control", "max-age=600, stale-while-revalidate=9999"), []http.Header{cacheControl("must-revalidate")}, 10 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := *tt.answer
				s := &site{serve: always(over(&r, tt.hops...))}
				dated := r
				dated.Time = time.Now()
				if got, _ := unbounded().Lifetime(&dated); got != tt.want {
					t.Errorf("Lifetime is %v, want %v", got, tt.want)
				}
				holds := max(tt.want, time.Minute)
				store := new(memStore)
				open := func() *cache.Cache { return (&cache.Cache{Store: store, Logger: quiet}).WithoutSpread() }
				c := open()
				get(t, c, s, "https://a.example")
				closeCache(t, c)
				if store.kept() > 0 != tt.stored {
					t.Errorf("%d values are stored, want any: %v", store.kept(), tt.stored)
				}
				if tt.stored { // a restart in time asks no origin
					time.Sleep(holds/5*4 - time.Second)
					c = open()
					if get(t, c, s, "https://a.example"); s.count() != 1 {
						t.Errorf("asked %d times within the lifetime, want once", s.count())
					}
					time.Sleep(holds/5 + 2*time.Second)
					closeCache(t, c)
					c = open()
					if get(t, c, s, "https://a.example"); s.count() != 2 {
						t.Errorf("asked %d times after the lifetime and a restart, want twice", s.count())
					}
					closeCache(t, c)
				}
				n := s.count()
				c = new(cache.Cache).WithoutSpread()
				get(t, c, s, "https://a.example")
				time.Sleep(holds + time.Second)
				start := time.Now()
				s.delay = time.Second // to tell a fetch that is waited for
				if get(t, c, s, "https://a.example"); s.count() != n+2 || time.Since(start) != time.Second {
					t.Errorf("after the lifetime: %d fetches, %v waited; want 2, 1s", s.count()-n, time.Since(start))
				}
				closeCache(t, c)
			})
		})
	}
}
