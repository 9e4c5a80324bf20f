package fetch_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
)

// siteOf lists URLs and the origin each belongs to. An empty origin means that the URL
// has none: OriginOf or, before it, url.Parse refuses.
var siteOf = []struct{ name, url, origin string }{
	// Google's table of ranges of validity, restated for http.
	{"root", "http://example.com/", "http://example.com"},
	{"another scheme", "https://example.com/", "https://example.com"},
	{"a subdomain", "http://other.example.com/", "http://other.example.com"},
	{"IDN", "http://www.müller.eu/", "http://www.xn--mller-kva.eu"},
	{"ftp with its port", "ftp://example.com:21/", "ftp://example.com"},
	{"IPv4", "http://212.96.82.21/", "http://212.96.82.21"},
	{"http with its port", "http://example.com:80/", "http://example.com"},
	{"another port", "http://example.com:8181/", "http://example.com:8181"},
	{"https with its port", "https://example.com:443/", "https://example.com"},
	// Ports of the other scheme. Spellings of one name.
	{"IDN decomposed", "http://www.mu\u0308ller.eu/", "http://www.xn--mller-kva.eu"},
	{"A-label fullwidth", "http://\uff38\uff2e\uff0d\uff0dmller-kva.eu/", "http://xn--mller-kva.eu"},
	{"upper case", "HTTP://EXAMPLE.COM/", "http://example.com"},
	{"port with zeros", "http://example.com:080/", "http://example.com"},
	{"empty port", "http://example.com:/", "http://example.com"},
	{"port 0", "http://example.com:0/", ""},
	{"port too large", "http://example.com:65536/", ""},
	{"userinfo", "http://user:pw@example.com/", "http://example.com"},
	{"trailing dot", "http://example.com./", "http://example.com"},
	{"two trailing dots", "http://example.com../", ""},
	{"empty label", "http://a..b/", ""},
	{"leading dot", "http://.example.com/", ""},
	// Names that the web uses and IDNA's lookup profile refuses.
	{"underscore", "http://ex_ample.com/", "http://ex_ample.com"},
	{"leading hyphen", "http://-a.example.com/", "http://-a.example.com"},
	{"IDN with underscore", "http://exämple_x.com/", "http://xn--exmple_x-1za.com"},
	{"last label begins with a digit", "http://example.3com/", "http://example.3com"},
	{"one label", "http://localhost/", "http://localhost"},
	{"sub-delims", "http://a!$&'()*+,;=b.example/", "http://a!$&'()*+,;=b.example"},
	{"escaped letter", "http://ex%61mple.com/", ""},
	{"sharp s", "http://straße.de/", "http://xn--strae-oqa.de"},
	{"soft hyphen", "http://exa\u00admple.com/", "http://example.com"},
	{"only a soft hyphen", "http://\u00ad/", ""},
	// Addresses.
	{"IPv6", "http://[2001:DB8::1]/", "http://[2001:db8::1]"},
	{"IPv6, another port", "https://[2001:db8::1]:8443/", "https://[2001:db8::1]:8443"},
	{"IPv4-mapped in hexadecimal", "http://[::ffff:c000:201]/", "http://[::ffff:192.0.2.1]"},
	{"IPv4", "http://192.0.2.1/", "http://192.0.2.1"},
	{"zone", "http://[FE80::1%25eth0]/", "http://[fe80::1%eth0]"},
	{"zone of 244", "http://[fe80::%25" + strings.Repeat("a", 244) + "]/", "http://[fe80::%" + strings.Repeat("a", 244) + "]"},
	{"zone of 245", "http://[fe80::%25" + strings.Repeat("a", 245) + "]/", ""},
	{"zone with a space", "http://[fe80::1%25a%20b]/", ""},
	{"IPv4 with trailing dot", "http://192.0.2.1./", "http://192.0.2.1"},
	{"IPv4 short", "http://127.1/", ""},
	{"IPv4 hexadecimal", "http://0x7f.0.0.1/", ""},
	{"IPv4 octal", "http://0177.0.0.1/", ""},
	{"IPv4 fullwidth", "http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1"},
	{"IPv4 in brackets", "http://[192.0.2.1]/", ""},
	{"IPv6 without brackets", "http://::1/", ""},
	// What cannot be looked up.
	{"A-label that does not decode", "http://xn--a.example.com/", "http://xn--a.example.com"},
	{"fullwidth solidus", "http://ä\uff0fb.com/", ""},
	{"fullwidth colon", "http://ä\uff1a80.com/", ""},
	{"fullwidth at-sign", "http://ä\uff20b.com/", ""},
	{"joiner between letters", "http://a\u200db.example/", ""},
	{"not UTF-8", "http://%FF%FE.com/", ""},
	{"label of 64", "http://" + strings.Repeat("a", 64) + ".com/", ""},
	{"name of 254", "http://" + strings.Repeat("a.", 126) + "aa/", ""},
	{"name of many code points", "http://" + strings.Repeat("ä", 5000) + "/", ""},
	// What is no origin.
	{"no host", "http:///x", ""},
	{"opaque", "http:example.com/x", ""},
	{"no scheme", "//host/x", ""},
	{"another scheme", "gopher://example.com/", ""},
}

func TestOriginOf(t *testing.T) {
	for _, c := range siteOf {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.url)
			if err != nil {
				if c.origin != "" {
					t.Fatalf("url.Parse(%q): %v", c.url, err)
				}
				return
			}
			o, err := fetch.OriginOf(u)
			if (err == nil) != (c.origin != "") || o.String() != c.origin {
				t.Errorf("OriginOf(%q) = %q, %v, want %q", c.url, o, err, c.origin)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), "fetch: ") || len(err.Error()) > 1024) {
				t.Errorf("OriginOf(%q): got error %.80q of %d bytes, want 1 KiB at most that begins with \"fetch: \"", c.url, err, len(err.Error()))
			}
		})
	}
}

func TestAHandMadeURLHasAnOriginOrAnError(t *testing.T) {
	for _, c := range []struct {
		name string
		url  *url.URL
		want string
	}{
		{"nil", nil, ""},
		{"scheme in upper case", &url.URL{Scheme: "HTTP", Host: "example.com"}, "http://example.com"},
		{"opaque beside a host", &url.URL{Scheme: "http", Host: "a.test", Opaque: "//b.test/x"}, ""},
		{"host with a path", &url.URL{Scheme: "http", Host: "a.test/x"}, ""},
		{"host with userinfo", &url.URL{Scheme: "http", Host: "u@a.test"}, ""},
		{"host with a line end", &url.URL{Scheme: "http", Host: "a.test\r\nX: y"}, ""},
		{"port with a sign", &url.URL{Scheme: "http", Host: "a.test:+80"}, ""},
		{"port not a number", &url.URL{Scheme: "http", Host: "a.test:http"}, ""},
		{"IPv6 without brackets", &url.URL{Scheme: "http", Host: "::1"}, ""},
		{"text after the bracket", &url.URL{Scheme: "http", Host: "[::1]x"}, ""},
		{"IPv4 in brackets", &url.URL{Scheme: "http", Host: "[192.0.2.1]"}, ""},
		{"unclosed bracket", &url.URL{Scheme: "http", Host: "[::1"}, ""},
	} {
		o, err := fetch.OriginOf(c.url)
		if (err == nil) != (c.want != "") || o.String() != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, o, err, c.want)
		}
	}
}

func TestAnOriginErrorNamesTheURLWithoutItsPassword(t *testing.T) {
	u, err := url.Parse("http://me:secret@a..b/x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = fetch.OriginOf(u)
	if err == nil || !strings.Contains(err.Error(), "a..b/x") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error that names a..b/x and no password", err)
	}
}

func TestOriginOfRequest(t *testing.T) {
	for _, c := range []struct{ name, url, host, origin, robots, sent string }{
		{"no Host field", "http://a.test/x", "", "http://a.test", "http://a.test/robots.txt", "a.test"},
		{"the same", "http://a.test/x", "a.test", "http://a.test", "http://a.test/robots.txt", "a.test"},
		{"another spelling", "http://a.test/x", "A.test.:80", "http://a.test", "http://a.test/robots.txt", "a.test"},
		{"another name", "http://127.0.0.1:8080/x", "A.Test", "http://a.test via 127.0.0.1:8080", "http://127.0.0.1:8080/robots.txt", "a.test"},
		{"another port", "http://a.test/x", "a.test:81", "http://a.test:81 via a.test", "http://a.test/robots.txt", "a.test:81"},
		{"zone", "http://[fe80::1%25eth0]:81/x", "", "http://[fe80::1%eth0]:81", "http://[fe80::1%25eth0]:81/robots.txt", "[fe80::1]:81"},
		{"zone under another name", "http://[fe80::1%25eth0]/x", "a.test", "http://a.test via [fe80::1%eth0]", "http://[fe80::1%25eth0]/robots.txt", "a.test"},
		{"a name under a zone", "http://a.test/x", "[fe80::1%eth0]:81", "http://[fe80::1%eth0]:81 via a.test", "http://a.test/robots.txt", "[fe80::1]:81"},
		{"a zone under another", "http://[fe80::1%25eth0]/x", "[fe80::1%eth1]", "http://[fe80::1%eth1] via [fe80::1%eth0]", "http://[fe80::1%25eth0]/robots.txt", "[fe80::1]"},
		{"no name", "http://a.test/x", "a..b", "", "", ""},
		{"a path", "http://a.test/x", "b.test/y", "", "", ""},
		{"URL without origin", "http:///x", "b.test", "", "", ""},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		o, err := fetch.OriginOfRequest(&http.Request{URL: u, Host: c.host})
		if (err == nil) != (c.origin != "") || o.String() != c.origin {
			t.Errorf("%s: got %q, %v, want %q", c.name, o, err, c.origin)
			continue
		}
		if err == nil && (o.RobotsURL().String() != c.robots || o.HostField() != c.sent) {
			t.Errorf("%s: robots.txt at %s under the name %q, want %s, %q", c.name, o.RobotsURL(), o.HostField(), c.robots, c.sent)
		}
	}
	if _, err := fetch.OriginOfRequest(&http.Request{Host: "a.test"}); err == nil {
		t.Error("a request without URL has an origin")
	}
}

// FuzzOriginOf: an origin is in canonical form, so that the origin of the URL that is
// asked for its robots.txt is the same, both as a value and after the way over its text.
func FuzzOriginOf(f *testing.F) {
	for _, c := range siteOf {
		f.Add(c.url)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		o, err := fetch.OriginOf(u)
		if err != nil {
			return
		}
		if again, err := fetch.OriginOf(o.RobotsURL()); err != nil || again != o {
			t.Errorf("%q: got %q of its robots.txt, %v, want %q", raw, again, err, o)
		}
		if again, err := unmarshal(o.String()); err != nil || again != o {
			t.Errorf("%q: got %q from its text, %v, want %q", raw, again, err, o)
		}
		if strings.ContainsAny(o.HostField(), "%@/?# ") || o.HostField() != strings.ToLower(o.HostField()) {
			t.Errorf("%q: got Host field %q, want a host in lower case, and a port", raw, o.HostField())
		}
		r := &http.Request{URL: u, Host: o.HostField()}
		if strings.ContainsRune(o.String(), '%') {
			return // the zone is not part of a Host field
		}
		if same, err := fetch.OriginOfRequest(r); err != nil || same != o {
			t.Errorf("%q: got %q of a request for it, %v, want %q", raw, same, err, o)
		}
	})
}

func TestAnOriginIsReadFromItsText(t *testing.T) {
	for _, c := range []struct{ text, want string }{ // want "": an error
		{"https://example.com", "https://example.com"},
		{"https://example.com:8443", "https://example.com:8443"},
		{"HTTP://WWW.Müller.eu.:80", "http://www.xn--mller-kva.eu"},
		{"ftp://example.com", "ftp://example.com"},
		{"http://[fe80::1%eth0]:81", "http://[fe80::1%eth0]:81"},
		{"http://a.test via 127.0.0.1:8080", "http://a.test via 127.0.0.1:8080"},
		{"http://[fe80::1%eth1] via [fe80::1%eth0]", "http://[fe80::1%eth1] via [fe80::1%eth0]"},
		{"http://a.test via A.TEST:80", "http://a.test"},
		{"example.com", ""},
		{"gopher://example.com", ""},
		{"https://example.com/", ""},
		{"https://example.com/robots.txt", ""},
		{"https://example.com?x", ""},
		{"https://u:p@example.com", ""},
		{"http://127.1", ""},
		{"http://", ""},
		{"http://a.test via ", ""},
		{"http:// via a.test", ""},
		{"http://a.test via b.test via c.test", ""},
		{" ", ""},
	} {
		o, err := unmarshal(c.text)
		if (err == nil) != (c.want != "") || o.String() != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.text, o, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "fetch: ") {
			t.Errorf("%q: got error %q, want \"fetch: \" in front", c.text, err)
		}
	}
}

func unmarshal(text string) (o fetch.Origin, err error) {
	err = o.UnmarshalText([]byte(text))
	return o, err
}

func originOf(t testing.TB, raw string) (o fetch.Origin) {
	t.Helper()
	u, err := url.Parse(raw)
	if err == nil {
		o, err = fetch.OriginOf(u)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
