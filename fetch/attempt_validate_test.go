package fetch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	tag  = `"v1"`
	date = "Wed, 01 Jan 2025 00:00:00 GMT"
)

// stored returns a Result as a cache would hand it in.
func stored(header ...string) *fetch.Result {
	return &fetch.Result{
		Policy: policy.Parse([]byte(file)), StatusCode: 200, Body: []byte(file),
		Header: response(200, "", header...).Header, Time: time.Now().Add(-time.Hour),
	}
}

func TestValidatorsAreSentWhereTheyBelong(t *testing.T) {
	with := func(change func(*fetch.Result)) *fetch.Result {
		r := stored("ETag", tag, "Last-Modified", date)
		change(r)
		return r
	}
	for _, c := range []struct {
		name         string
		prev         *fetch.Result
		match, since string
	}{
		{"nothing stored", nil, "", ""},
		{"both", with(func(*fetch.Result) {}), tag, date},
		{"date only", stored("Last-Modified", date), "", date},
		{"date in another form", stored("Last-Modified", "Wednesday, 01-Jan-25 00:00:00 GMT"), "", date},
		{"neither", stored(), "", ""},
		{"no tag", stored("ETag", "v1"), "", ""},
		{"a quotation mark alone", stored("ETag", `"`), "", ""},
		{"the empty tag", stored("ETag", `""`), `""`, ""},
		{"a tag in Latin-1", stored("ETag", "\"v\xe9\""), "\"v\xe9\"", ""},
		{"tag with a line end", stored("ETag", "\"v1\r\nCookie: x\""), "", ""},
		{"unavailable", with(func(r *fetch.Result) { r.StatusCode = 404 }), "", ""},
		{"unreachable", with(func(r *fetch.Result) { r.Err = http.ErrServerClosed }), "", ""},
		{"of another dialect", with(func(r *fetch.Result) { r.Dialect = policy.Google }), tag, date},
		{"from another URL", with(func(r *fetch.Result) { r.Redirects = []string{"http://b.test/r"} }), "", ""},
		{"the zero Result", &fetch.Result{}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
				if match, since := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since"); match != c.match || since != c.since {
					t.Errorf("sent %q and %q, want %q and %q", match, since, c.match, c.since)
				}
				return response(200, file), nil
			})}
			fetched(t, &f, "http://a.test", c.prev, "rules")
		})
	}
}

// A validator is the property of one URL: behind a redirect it is sent to that one only.
func TestValidatorsFollowTheirURLOverRedirects(t *testing.T) {
	prev := stored("ETag", tag)
	prev.Redirects = []string{"http://b.test/r"}
	sent := map[string]string{}
	f := fetch.Fetcher{Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		sent[r.URL.String()] = r.Header.Get("If-None-Match")
		switch r.URL.String() {
		case "http://a.test/robots.txt":
			return response(302, "", "Location", "/hop"), nil
		case "http://a.test/hop":
			return response(302, "", "Location", "http://b.test/r"), nil
		}
		return response(304, "", "ETag", tag), nil
	})}
	r := fetched(t, &f, "http://a.test", prev, "rules")
	if sent["http://a.test/robots.txt"] != "" || sent["http://a.test/hop"] != "" || sent["http://b.test/r"] != tag {
		t.Errorf("sent %q, want %q to http://b.test/r alone", sent, tag)
	}
	if r.Policy != prev.Policy || len(r.Redirects) != 2 {
		t.Errorf("got %v after %q, want the stored rules after two redirects", r, r.Redirects)
	}
}

func TestRFC9111_A304RenewsWhatIsStored(t *testing.T) {
	prev := stored("ETag", tag, "Age", "3000", "Date", date, "Cache-Control", "max-age=60", "X-Old", "kept", "Content-Type", "text/plain")
	prev.Truncated, prev.Dialect = true, policy.Google
	rt, _ := answers(response(304, "", "ETag", tag, "Cache-Control", "max-age=3600", "X-New", "added", "Content-Type", "text/html", "Set-Cookie", "a=b"))
	f := fetch.Fetcher{Transport: rt}
	before := time.Now()
	r := fetched(t, &f, "http://a.test", prev, "rules")
	if r == prev || r.Policy != prev.Policy || r.Dialect != prev.Dialect || r.StatusCode != 200 || string(r.Body) != file || !r.Truncated || r.Time.Before(before) {
		t.Errorf("got %v in %v, truncated %v, at %v, want %v with a new time", r, r.Dialect, r.Truncated, r.Time, prev)
	}
	for name, want := range map[string]string{
		"Etag": tag, "Age": "", "Date": "", "Cache-Control": "max-age=3600", "X-Old": "kept", "X-New": "added",
		"Content-Type": "text/plain", "Set-Cookie": "",
	} {
		if got := strings.Join(r.Header.Values(name), "|"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if prev.Header.Get("Age") != "3000" || prev.Header.Get("Cache-Control") != "max-age=60" {
		t.Error("the stored Result was changed")
	}
}

func TestRFC9111_A304OfAnotherCopyIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		field, stored, sent string
		requests            int
	}{
		{"ETag", tag, tag, 1},
		{"ETag", tag, "", 1},
		{"ETag", tag, `W/"v1"`, 1},
		{"ETag", `W/"v1"`, tag, 1},
		{"ETag", tag, `"v2"`, 2},
		{"Last-Modified", date, date, 1},
		{"Last-Modified", date, "", 1},
		{"Last-Modified", date, "Mon, 01 Jan 2024 00:00:00 GMT", 2}, // without an ETag it is the date that tells
	} {
		n := 0
		f := fetch.Fetcher{Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return response(304, "", c.field, c.sent), nil
			}
			if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
				t.Error("asked again with validators")
			}
			return response(200, "User-agent: *\nDisallow: /\n", c.field, c.sent), nil
		})}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), stored(c.field, c.stored))
		if err != nil || r.Err != nil || n != c.requests || (verdict(r) == "rules") != (n == 1) {
			t.Errorf("%v: got %s after %d requests (%v), want the stored rules if one suffices", c, verdict(r), n, err)
		}
	}
	// A 412 is about the validators (RFC 9110 §15.5.13), and gives no permission.
	for _, again := range []int{200, 412} {
		rt, n := answers(response(412, ""), response(again, file))
		f := fetch.Fetcher{Transport: rt}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), stored("ETag", tag))
		check(t, r, err, map[int]string{200: "rules", 412: "allow"}[again])
		if *n != 2 {
			t.Errorf("412, and then %d: %d requests, want 2", again, *n)
		}
	}
	// A server that goes on so is not asked for ever.
	rt, n := answers(response(304, "", "ETag", `"v2"`))
	f := fetch.Fetcher{Transport: rt}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), stored("ETag", tag))
	check(t, r, err, "disallow")
	if *n != 2 {
		t.Errorf("got %d requests, want 2", *n)
	}
}

// A server that adds a field with each 304 must not make the stored header grow for ever.
func TestTheHeaderDoesNotGrowWith304s(t *testing.T) {
	n, read := 0, 0
	f := fetch.Fetcher{Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		if n++; req.Header.Get("If-None-Match") == "" {
			read++
			return response(200, file, "ETag", tag), nil
		}
		return response(304, "", fmt.Sprintf("X-%d", n), strings.Repeat("x", 10_000)), nil
	})}
	for prev := stored("ETag", tag); n < 10; {
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), prev)
		check(t, r, err, "rules")
		prev = r
	}
	if read != 1 {
		t.Errorf("the file was read %d times, want once, before 64 KiB of header are kept", read)
	}
}

// A file that is put back with its older date is "not modified since" for a server that
// compares dates, as net/http's does.
func TestAFileThatIsRolledBackIsSeen(t *testing.T) {
	content, modified := file, time.Date(2025, 1, 2, 0, 0, 0, 0, time.UTC)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "robots.txt", modified, strings.NewReader(content))
	}))
	defer s.Close()
	var f fetch.Fetcher
	r, err := f.Fetch(t.Context(), originOf(t, s.URL), nil)
	check(t, r, err, "rules")
	content, modified = "User-agent: *\nDisallow: /\n", modified.AddDate(0, 0, -1)
	r, err = f.Fetch(t.Context(), originOf(t, s.URL), r)
	if err != nil || r.Err != nil || string(r.Body) != content {
		t.Errorf("got %q, %v, %v, want %q", r.Body, err, r.Err, content)
	}
}
