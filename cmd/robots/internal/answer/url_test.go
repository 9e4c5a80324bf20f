package answer

import (
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// The rows are read by ReadURL, which check, fetch, filter and lint use, and by ReadTarget,
// which match uses: what match takes, the others take for the same or call a path.
func TestURLsAreReadByOneRule(t *testing.T) {
	for _, c := range []struct {
		text         string
		url          string // "": refused by ReadURL
		target       string // "": refused by ReadTarget
		wrong        string // with ReadURL
		wrongInMatch string // if it is another
	}{
		{"https://example.com/a?b#c", "https://example.com/a?b#c", "/a?b", "", ""},
		{"HTTP://EXAMPLE.com", "http://EXAMPLE.com", "/", "", ""},
		{" http://h/a\t", "http://h/a", "/a", "", ""},
		{"http://user:x@h/a", "http://user:x@h/a", "/a", "", ""},
		{"http://[::1]:80/a", "http://[::1]:80/a", "/a", "", ""},
		{"http://h//a", "http://h//a", "//a", "", ""},
		{"http://h?q#/b", "http://h?q#/b", "/?q", "", ""},

		// match takes paths too, and these may be some without their slash.
		{"example.com/a", "https://example.com/a", "", "", "example.com/a or /example.com/a"},
		{"example.com", "https://example.com", "", "", "example.com or /example.com"},
		{"example.com?q", "https://example.com?q", "", "", "example.com?q or /example.com?q"},
		{"example.com:8080/a", "https://example.com:8080/a", "", "", "example.com:8080/a or /example.com:8080/a"},
		{"example.com/?a=http://c/d", "https://example.com/?a=http://c/d", "", "", "example.com/?a=http://c/d or /example.com/?a=http://c/d"},
		{"name.github.io/a", "https://name.github.io/a", "", "", "name.github.io/a or /name.github.io/a"},
		{"localhost:80/a", "https://localhost:80/a", "", "", "localhost:80/a or /localhost:80/a"},
		{"127.0.0.1/a", "https://127.0.0.1/a", "", "", "127.0.0.1/a or /127.0.0.1/a"},
		{"[::1]/a", "https://[::1]/a", "", "", "[::1]/a or /[::1]/a"},
		{"setup.py", "https://setup.py", "", "", "setup.py or /setup.py"},
		{"run.sh", "https://run.sh", "", "", "run.sh or /run.sh"},

		{"/a?b=http://c/d", "", "/a?b=http://c/d", "is a path and names no site", ""},
		{"/", "", "/", "is a path and names no site", ""},
		{"/100%", "", "/100%", "is a path and names no site", ""},
		{"http://h/100%", "", "/100%", `invalid URL escape "%"`, ""},

		{"", "", "", `"" is no URL`, ""},
		{" ", "", "", `"" is no URL`, ""},
		{"private/2", "", "", "write https://private/2", "write https://private/2 or /private/2"},
		{"page.html", "", "", "write https://page.html", "write https://page.html or /page.html"},
		{"intranet:80/a", "", "", "write https://intranet:80/a", "or /intranet:80/a"},
		{"com", "", "", "write https://com", ""},
		{"?q", "", "", "is no http or https URL", ""},
		{"#a", "", "", "is no http or https URL", ""},
		{"foo bar", "", "", `"foo bar" is no http or https URL`, ""},
		{"mailto:a@b", "", "", "is no http or https URL", ""},
		{"user:x@example.com", "", "", "is no http or https URL", ""},
		{"javascript:alert(1)", "", "", "is no http or https URL", ""},
		{"HTTP:/shop.test/cart", "", "", "write http://shop.test/cart", ""},
		{"../a", "", "", "is no http or https URL", ""},
		{`https:\\example.com\a`, "", "", "is no http or https URL", ""},
		{"//a/b", "https://a/b", "/b", "", ""},
		{"///a", "", "", "names no host", ""},
		{"ftp://a/b", "", "", "about http and https only; the dialect google reads it over ftp, too", ""},
		{"gopher://a/b", "", "", "about http and https only", ""},
		{"://a/b", "", "", "about http and https only", ""},
		{"http://", "", "", "names no host", ""},
		{"http:///a", "", "", "names no host", ""},
		{"http://[bad", "", "", "missing ']' in host", ""},
		{"http://h:99999/", "", "", "is no URL that could be asked for", ""},
		{"http://127.1/", "", "", "is no URL that could be asked for", ""},
		{"http://h;p/x", "", "", "has a semicolon in its host", ""},
		{"h.com;p/x", "", "", "is no http or https URL", ""},
		{"http://h/a b", "", "", "holds a blank or control character: write it as %20", ""},
		{"/a\x00", "", "", "write it as %00", ""},
	} {
		u, _, err := ReadSite(policy.RFC9309, c.text)
		switch {
		case err == nil && u.String() != c.url:
			t.Errorf("readSite(%q) = %q, want %q", c.text, u, c.url)
		case !wrong(err, c.wrong, c.url == ""):
			t.Errorf("readSite(%q) = %v, %v, want %q, %q", c.text, u, err, c.url, c.wrong)
		}
		if c.wrongInMatch == "" {
			c.wrongInMatch = c.wrong
		} else if c.url != "" { // a record of --jsonl is read as by readURL
			if target, err := ReadTarget(policy.RFC9309, c.text, true); err != nil || target != TargetOf(c.url) {
				t.Errorf("in a record, readTarget(%q) = %q, %v, want %q", c.text, target, err, TargetOf(c.url))
			}
		}
		target, err := ReadTarget(policy.RFC9309, c.text, false)
		if target != c.target || !wrong(err, c.wrongInMatch, c.target == "") {
			t.Errorf("readTarget(%q) = %q, %v, want %q, %q", c.text, target, err, c.target, c.wrongInMatch)
		}
	}
}

// wrong reports whether err is there if it should be, and then says what.
func wrong(err error, what string, should bool) bool {
	return (err != nil) == should && (err == nil || strings.Contains(err.Error(), what))
}

// A path that is read is compared as it was written, and what check would ask about match
// answers in a record too. Outside of records it answers the same or nothing.
func FuzzReadTarget(f *testing.F) {
	for _, seed := range []string{
		"", "http://h/a?b#c", "//h/a", "a?b", "/a;b", "http://h;a", "example.com/a", "private/2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ReadTarget(policy.RFC9309, text, true)
		if err == nil && (!strings.HasPrefix(target, "/") || strings.ContainsFunc(target, Blank)) {
			t.Errorf("readTarget(%q) = %q, want a slash first, and no blank", text, target)
		}
		if trimmed := strings.TrimSpace(text); err == nil && strings.HasPrefix(trimmed, "/") && !strings.HasPrefix(trimmed, "//") {
			if want, _, _ := strings.Cut(trimmed, "#"); target != want {
				t.Errorf("readTarget(%q) = %q, want %q", text, target, want)
			}
		}
		if _, _, refused := ReadSite(policy.RFC9309, text); refused == nil && err != nil {
			t.Errorf("%q: readSite takes it, readTarget does not: %v", text, err)
		}
		if strict, wrong := ReadTarget(policy.RFC9309, text, false); wrong == nil && strict != target {
			t.Errorf("readTarget(%q) = %q, in a record %q", text, strict, target)
		}
	})
}

// A line is written as it is: its next reader must find the URL that was asked about.
func TestTheURLOfAnObject(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":1,"url":"http://a/","meta":{"url":"http://b/"}}`: "http://a/",
		`{"url":"http://a/","URL":"http://b/"}`:                 "http://a/",
		`{"URL":"http://b/","url":"http://a/"}`:                 "http://a/",
		`{"k":"url","\u0075rl":"http://a/"}`:                    "http://a/",
		`{"URL":"http://b/"}`:                                   "",
		`{"url":"http://a/","url":"http://b/"}`:                 "",
		`{"url":"http://a/","\u0075rl":"http://b/"}`:            "",
		`{"url":["http://a/"]}`:                                 "",
		`{"url":"http://a/"}{`:                                  "",
		`{"url":"http://a/\ud83d\ude00\\ud800\n"}`:              "http://a/%F0%9F%98%80%5Cud800",
		`{"url":"http://a/\ufffd","b":"\ud800"}`:                "http://a/%EF%BF%BD",
		`{"url":"http://a/\ud800"}`:                             "",
	} {
		l := ReadListed(policy.RFC9309, 1, line)
		if (l.Err == nil) != (want != "") || l.Err == nil && l.URL.String() != want {
			t.Errorf("%s: %v, %v; want %q", line, l.URL, l.Err, want)
		}
	}
}

// A line that is malformed is given back, too: who asked must know which one it was.
func TestAnObjectIsGivenBack(t *testing.T) {
	k := &Asker{Agent: "*"}
	for line, want := range map[string]struct{ url, record string }{
		`{"id":7,"url":"http://a/b"}`:         {"http://a/b", `{"id":7,"url":"http://a/b"}`},
		`{"url":"example.com"}`:               {"example.com", `{"url":"example.com"}`},
		`{"url":"foo","id":7}`:                {"foo", `{"url":"foo","id":7}`},
		`{"id":7}`:                            {"", `{"id":7}`},
		`{}`:                                  {"", `{}`},
		`{"url":5}`:                           {"", `{"url":5}`},
		"{\"url\":\"http://a/\xff\",\"i\":1}": {"http://a/\uFFFD", "{\"url\":\"http://a/\uFFFD\",\"i\":1}"},
		`{"url":"http://a/","t":"\udc00\ud83d\ude00\ud83d"}`: {"http://a/", `{"url":"http://a/","t":"\udc00\ud83d\ude00\ud83d"}`},
		`{"url":`: {`{"url":`, ""},
		`{} {`:    {`{} {`, ""},
		`foo`:     {"foo", ""},
	} {
		l := ReadListed(k.Dialect, 1, line)
		l.Result = &fetch.Result{Policy: policy.Unavailable()}
		if v := k.Verdict(&l, k.Decide(&l)); v.URL != want.url || string(v.Record) != want.record {
			t.Errorf("%s: the url is %q and the record %s, want %q and %s", line, v.URL, v.Record, want.url, want.record)
		}
	}
}
