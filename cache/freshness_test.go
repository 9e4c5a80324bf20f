package cache_test

import (
	"context"
	"net/http"
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

func TestFreshnessLifetimeFollowsRFC9111(t *testing.T) {
	for _, tt := range freshnessFacts {
		// Date has whole seconds: what arrives later in the same one has no age.
		r := &fetch.Result{StatusCode: 200, Header: header(tt.fields...), Time: received.Add(800 * time.Millisecond)}
		if got, _ := cache.Lifetime(r); got != tt.want {
			t.Errorf("%s: %v, want %v\n%.200q", tt.name, got, tt.want, tt.fields)
		}
	}
}

func TestFreshnessLifetimeDependsOnTheStatus(t *testing.T) {
	for _, tt := range []struct {
		r    *fetch.Result
		want time.Duration
	}{
		{&fetch.Result{StatusCode: 404}, day},
		{&fetch.Result{StatusCode: 401}, time.Hour},
		{&fetch.Result{StatusCode: 403}, time.Hour},
		{&fetch.Result{StatusCode: 403, Header: header("Cache-Control", "max-age=60")}, time.Minute},
		{&fetch.Result{StatusCode: 503, Header: header("Cache-Control", "max-age=60"), Err: errDown}, 0},
		{nil, 0},
	} {
		if got, _ := cache.Lifetime(tt.r); got != tt.want {
			t.Errorf("%s: %v, want %v", brief(tt.r), got, tt.want)
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
			d, _ := cache.Lifetime(&fetch.Result{StatusCode: 200, Header: h, Time: received})
			return d
		}
		alone := lifetime()
		if alone < 0 {
			t.Errorf("negative: %v", alone)
		}
		if got := lifetime("no-store"); got != 0 {
			t.Errorf("%v although another line says no-store", got)
		}
		if strings.Contains(strings.ToLower(cacheControl), "max-age") {
			if got := lifetime("max-age=60"); got > max(alone, time.Minute) {
				t.Errorf("%v with a second max-age=60, %v without", got, alone)
			}
		}
	})
}

// RFC 9111 §4.2: case does not matter in a date, and every zone but GMT makes it invalid;
// §5.3: what is invalid is a time in the past.
func TestOnlyHTTPDatesCount(t *testing.T) {
	const hour = time.Hour
	for _, tt := range []struct {
		expires string
		want    time.Duration
	}{
		{"Sun, 06 Nov 1994 09:49:37 GMT", hour},
		{"Sun, 06 Nov 1994 09:49:37 gMT", hour},
		{"sun, 06 nOV 1994 09:49:37 gmt", hour},
		{"Tue, 06 Nov 1994 09:49:37 GMT", hour}, // the name of the day says nothing
		{"Sunday, 06-Nov-94 09:49:37 GMT", hour},
		{"Sun Nov  6 09:49:37 1994", hour},

		{"Sun, 06 Nov 1994 9:49:37 GMT", 0},
		{"Sunday, 06-Nov-94 9:49:37 GMT", 0},
		{"Sun Nov  6 9:49:37 1994", 0},
		{"Sun, 6 Nov 1994 09:49:37 GMT", 0},
		{"Sun, 06 Nov  1994 09:49:37 GMT", 0},
		{"Sun,  06 Nov 1994 09:49:37 GMT", 0},
		{"Sun, 06 Nov 1994  09:49:37 GMT", 0},
		{"Sun Nov 6 09:49:37 1994", 0},
		{"Sun Nov 06 09:49:37 1994", 0},
		{"Sun  Nov  6 09:49:37 1994", 0},
		{"Sunday, 06-Nov-94 09:49:37 EST", 0},
		{"Sun, 06 Nov 1994 09:49:37 EST", 0},
		{"Sun, 06 Nov 1994 09:49:37 UTC", 0},
		{"Sun, 06 Nov 1994 09:49:37 +0000", 0},
		{"Sun, 06 Nov 1994 09:49:37", 0},
		{"Sun, 06 Nov 1994 09:49:37.5 GMT", 0},
		{"Sun, 06 Nov 94 09:49:37 GMT", 0},
		{"Sun, 31 Feb 1995 09:49:37 GMT", 0},
		{"0", 0}, {"", 0}, {" ", 0},
	} {
		r := &fetch.Result{StatusCode: 200, Policy: policy.Parse(nil), Time: time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
			Header: http.Header{"Expires": {tt.expires}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}}}
		if got, _ := cache.Lifetime(r); got != tt.want {
			t.Errorf("Expires %q: %v, want %v", tt.expires, got, tt.want)
		}
		r.Header = http.Header{"Expires": {"Sun, 06 Nov 1994 10:49:37 GMT"}, "Date": {tt.expires}}
		want := 2 * hour // counted from receipt, where the Date is none
		if tt.want != 0 {
			want = hour
		}
		if got, _ := cache.Lifetime(r); got != want {
			t.Errorf("Date %q: %v, want %v", tt.expires, got, want)
		}
	}
}

func TestLifetimeSaysWhatItComesFrom(t *testing.T) {
	for _, tt := range []struct {
		r      *fetch.Result
		source string
	}{
		{nil, ""},
		{&fetch.Result{StatusCode: 503, Header: header("Cache-Control", "max-age=60"), Err: errDown}, ""},
		{&fetch.Result{StatusCode: 200}, ""},
		{&fetch.Result{StatusCode: 403}, ""},
		{&fetch.Result{StatusCode: 200, Header: header("Age", "60")}, ""},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "must-revalidate")}, ""},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=86400")}, "Cache-Control"}, // as long as the default
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=0")}, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "no-store")}, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Expires", "0")}, "Expires"},
		{&fetch.Result{StatusCode: 200, Header: header("Vary", "*")}, "Vary"},
		{&fetch.Result{StatusCode: 200, RedirectHeaders: []http.Header{header("Cache-Control", "max-age=60")}}, "redirect"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=60", "Expires", "0")}, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=60", "Vary", "*")}, "Vary"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", strings.Repeat("a", 8200))}, "Cache-Control"},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=60"),
			RedirectHeaders: []http.Header{header("Cache-Control", "max-age=90")}}, "Cache-Control"},
		{&fetch.Result{StatusCode: 403, RedirectHeaders: []http.Header{header("Expires", "0")}}, "redirect"},
		{&fetch.Result{StatusCode: 429, Header: header("Cache-Control", "max-age=60")}, "status"},
		{&fetch.Result{StatusCode: 429, RetryAfter: time.Minute}, "Retry-After"},
	} {
		if _, got := cache.Lifetime(tt.r); got != tt.source {
			t.Errorf("%s: from %q, want %q", brief(tt.r), got, tt.source)
		}
	}
}

func TestHowLongAnAnswerHoldsByDefault(t *testing.T) {
	for _, tt := range []struct {
		r    *fetch.Result
		want time.Duration
	}{
		{&fetch.Result{StatusCode: 200}, day},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=600")}, 10 * time.Minute},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "no-store")}, time.Minute},
		{&fetch.Result{StatusCode: 200, Header: header("Cache-Control", "max-age=864000")}, day},
		{&fetch.Result{StatusCode: 403}, time.Hour},
		{&fetch.Result{StatusCode: 429}, 5 * time.Minute},
		{&fetch.Result{StatusCode: 429, RetryAfter: time.Second}, time.Minute},
		{&fetch.Result{Err: errDown}, 30 * time.Second},
		{&fetch.Result{Err: errDown, StatusCode: 503, RetryAfter: time.Second}, 30 * time.Second},
		{&fetch.Result{Err: errDown, StatusCode: 503, RetryAfter: time.Hour}, time.Hour},
		{&fetch.Result{Err: errDown, StatusCode: 503, RetryAfter: 10 * day}, day},
	} {
		if tt.r.Policy = policy.Unreachable(); tt.r.Err == nil {
			tt.r.Policy = policy.Unavailable()
		}
		synctest.Test(t, func(t *testing.T) { // a Cache may take a tenth less, or a fifth if unreachable
			tt.r.Time = time.Now()
			var c cache.Cache
			src := &cache.Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) { return tt.r, nil }}
			_, until, err := c.Get(t.Context(), fetch.Origin{}, src)
			if got := time.Until(until); err != nil || got > tt.want*6/5 || got < tt.want*4/5 {
				t.Errorf("%s: holds for %v, want %v; %v", brief(tt.r), got, tt.want, err)
			}
		})
	}
}
