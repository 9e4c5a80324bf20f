package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// targetURL is a URL that net/http asks for with this target.
func targetURL(t *testing.T, target string) *url.URL {
	t.Helper()
	u, err := url.Parse("http://a.example" + target)
	if err != nil || u.RequestURI() != target {
		t.Fatalf("net/http sends %q for %q (%v)", u.RequestURI(), target, err)
	}
	return u
}

// What a page is decided on is what net/http sends, whatever bytes its path has. Google compares
// as written.
func TestThePathDecidedOnIsThatSent(t *testing.T) {
	for c := range 256 {
		for _, path := range []string{"/%s", "/abcdef%s", "/abcdefg%s", "/%sabcdefghijkl"} {
			u := &url.URL{Scheme: "http", Host: "a.example", Path: fmt.Sprintf(path, []byte{byte(c)})}
			p := policy.Google.Parse([]byte("user-agent: *\ndisallow: /\nallow: /$\nallow: " + u.EscapedPath() + "$"))
			if d, err := client.DecideWith(p, "ExampleBot", u); err != nil || !d.Allowed {
				t.Errorf("%q: got %v, %v, want it allowed by its own rule", u.Path, d, err)
			}
		}
	}
}

// The real servers are in integration_test; these are for those that are not there.
func TestDotSegmentsAreDecidedAsAnyServerResolvesThem(t *testing.T) {
	for _, row := range []struct {
		target  string
		allowed bool
		who     string // serves /private for it, where it is not allowed
	}{
		{"/a/..//private/", false, "nginx, which merges slashes"},
		{"/.%2f/private/", false, "nginx"},
		{"/a/..%2f%2fprivate/", false, "nginx"},
		{"/a/%2e%2e%2f/private/", false, "nginx"},
		{"/x/a%5cb/..%2f../private/", false, "nginx, to which a backslash is a letter"},
		{"/x/a%5c..%5c..%5cprivate/", false, "IIS, to which it is a slash"},
		{"/a//../../private/", false, "all, and those that keep an empty segment"},
		{"/a//../private/../../private", false, "those that merge"},
		{"/a/..;/private/", false, "Tomcat"},
		{"/a/..;x=1/private;v=1", false, "Tomcat"},
		{"/a;x/..;/pri;v/../private;v", false, "Tomcat"},
		{"/private/x/..;/", false, "all, before the dots"},
		{"/x/a%2f../..;%2fb/../private", false, "a proxy before Tomcat"},
		{"/%2e%2e/%2E./private", false, "all that go on at the root"},
		{"/x/y%2fz/../a%2f../../../private", false, "a server that resolves, unescapes and resolves again"},
		{"/a?x/../../private/?y", false, "lighttpd 1.4.69, which takes the last question mark for the first"},

		{"/a/../b/", true, ""},
		{"/a/./private", true, ""},
		{"/a/..%252fprivate", true, "none: servers unescape once"},
		{"/a/.../private", true, ""},
		{"/a?x=/../private", true, ""},
		{"//private/", true, ""}, // no dot segment: as written (RFC 9309 §2.2.2)
		{"/%2fprivate/", true, ""},
		{"/;x/private", true, ""},
	} {
		rt := &client.Transport{Base: &web{robots: "User-agent: *\nDisallow: /private"}}
		d, err := rt.Decide(t.Context(), targetURL(t, row.target))
		if err != nil || d.Allowed != row.allowed {
			t.Errorf("%s: got %v, %v, want allowed = %t (%s)", row.target, d, err, row.allowed, row.who)
		}
	}
}

func TestATargetOfTooManyFormsIsAnError(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: robots}}
	target := "/..%2fa;y//..%5c//a;y//a;y/;a//..;x/;b%5ca;x/%2fb/;%2e/..;x/;a//b/.//a%5cb//a;y/%2e%2e;x/../b%5c%2e%2e;x%5ca/;"
	target += target + strings.Repeat("b", 1000)
	if d, err := rt.Decide(t.Context(), targetURL(t, target)); err == nil || !strings.Contains(err.Error(), "dot segments") || d.Allowed {
		t.Errorf("got %v, %v, want an error about dot segments", d, err)
	}
}

func TestTargetsAreDecidedUpTo16KiB(t *testing.T) {
	const most = 16 << 10
	path := "/" + strings.Repeat("a", most-1)
	for _, row := range []struct {
		name, target string
		ok           bool
	}{
		{"path", path, true},
		{"longer path", path + "a", false},
		{"query", "/?" + path[:most-2], true},
		{"longer query", "/?" + path[:most-1], false},
		{"empty query", path[:most-1] + "?", true},
		{"longer with an empty query", path + "?", false},
		{"escapes", strings.Repeat("/%61", most/4), true},
		{"more escapes", strings.Repeat("/%61", most/4) + "/", false},
	} {
		base := &web{robots: robots}
		rt := &client.Transport{Base: base}
		u := targetURL(t, row.target)
		_, rerr := rt.RoundTrip(&http.Request{URL: u})
		_, derr := rt.Decide(t.Context(), u)
		for _, err := range []error{rerr, derr} {
			if row.ok != (err == nil) || err != nil && (!strings.Contains(err.Error(), "16384") || len(err.Error()) > 1000 || !strings.Contains(err.Error(), row.target[:50])) {
				t.Errorf("%s: got %v, want an answer: %t", row.name, err, row.ok)
			}
		}
		if !row.ok && len(base.pages) > 0 {
			t.Errorf("%s: sent", row.name)
		}
	}
}

// A file that makes decisions slow, and a redirect that makes them long.
func TestARedirectOfAMegabyteIsRefusedAtOnce(t *testing.T) {
	tier.Gate(t)
	var pages atomic.Int32
	file := "user-agent:*\n"
	for i := range 9_000 {
		file += fmt.Sprintf("disallow:/*%s\n", strings.NewReplacer("0", "a", "1", "b").Replace(fmt.Sprintf("%040b", uint64(i+1)*2654435761%(1<<40))))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			io.WriteString(w, file)
		case pages.Add(1) == 1:
			w.Header().Set("Location", "/x/%2e/"+strings.Repeat("ab", 500_000))
			w.WriteHeader(http.StatusFound)
		}
	}))
	defer s.Close()
	c := http.Client{Timeout: 20 * time.Second, Transport: &client.Transport{Base: s.Client().Transport}}
	_, err := c.Get(s.URL)
	if err == nil || !strings.Contains(err.Error(), "16384") || pages.Load() != 1 {
		t.Errorf("got %.1000v after %d pages, want an error about the length after one", errors.Unwrap(err), pages.Load())
	}
}

// endsAfter is a context that ends when it has been asked n times whether it has.
type endsAfter struct {
	context.Context
	n int
}

func (c *endsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestTheContextIsLookedAtBetweenTheDecisionsOfATarget(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: robots}, Cache: &cache.Cache{}}
	plain, dots := targetURL(t, "/x"), targetURL(t, "/x/..%2fy/..;/z")
	if _, err := rt.Decide(t.Context(), plain); err != nil { // and robots.txt is there
		t.Fatal(err)
	}
	enough := 0
	for ; ; enough++ {
		if _, err := rt.Decide(&endsAfter{t.Context(), enough}, plain); err == nil {
			break
		}
	}
	for more := range 3 {
		if d, err := rt.Decide(&endsAfter{t.Context(), enough + more}, dots); err != context.DeadlineExceeded {
			t.Errorf("%d: got %v, %v, want the context's error", more, d, err)
		}
	}
	if d, err := rt.Decide(t.Context(), dots); err != nil || !d.Allowed {
		t.Errorf("got %v, %v, want allowed", d, err)
	}
}

func TestWhatRobotsCannotBeAskedForIsAnError(t *testing.T) {
	for _, text := range []string{"ftp://a.example/x", "FTP://a.example/x", "ws://a.example/x", "mailto:a@a.example", "file:///x", "data:,x"} {
		base := &web{robots: robots}
		rt := &client.Transport{Base: base}
		u := parse(text)
		d, derr := rt.Decide(t.Context(), u)
		_, berr := rt.Decide(client.WithoutRobots(t.Context()), u)
		p, lerr := rt.Lookup(t.Context(), u)
		for name, err := range map[string]error{"Decide": derr, "Decide without robots": berr, "Lookup": lerr} {
			if err == nil || !strings.Contains(err.Error(), "http or https") || !strings.Contains(err.Error(), text[4:]) {
				t.Errorf("%s of %s: got %v, want an error that names it and the schemes", name, text, err)
			}
		}
		if d != (client.Answer{}) || p != nil {
			t.Errorf("%s: got %v, %v beside the error", text, d, p)
		}
		if _, err := rt.RoundTrip(&http.Request{URL: u}); err != nil || len(base.pages) != 1 {
			t.Errorf("%s: RoundTrip sent %d requests, %v, want one to Base", text, len(base.pages), err)
		}
	}
}

func TestAHeaderKeyThatIsNotCanonicalIsAnError(t *testing.T) {
	const file = "User-agent: *\nDisallow:\nUser-agent: secondbot\nDisallow: /"
	for _, row := range []struct {
		key   string
		names string // what the error has to name; "" if there is none
	}{
		{"user-agent", `"User-Agent"`}, {"USER-AGENT", `"User-Agent"`}, {"User-agent", `"User-Agent"`},
		{"host", "Request.Host"}, {"hOST", "Request.Host"},
		{"User-Agents", ""}, {"X-User-Agent", ""}, {"accept", ""}, {"Host", ""}, {"cost", ""},
	} {
		for _, header := range []http.Header{
			{row.key: {"secondbot/1.0"}},
			{row.key: {"secondbot/1.0"}, "User-Agent": {"firstbot/1.0"}},
			{row.key: {"secondbot/1.0"}, "Accept": {"*/*"}},
		} {
			base := &web{robots: file}
			body := &closeCount{Reader: strings.NewReader("payload")}
			rt := &client.Transport{Base: base}
			_, err := rt.RoundTrip(&http.Request{Method: http.MethodPost, URL: parse("http://a.example/x"), Header: header, Body: body})
			switch {
			case row.names == "":
				if err != nil {
					t.Errorf("%v: %v", header, err)
				}
			case err == nil || len(base.pages) > 0:
				t.Errorf("%v: sent", header)
			case !strings.Contains(err.Error(), `"`+row.key+`"`) || !strings.Contains(err.Error(), row.names):
				t.Errorf("%v: got %v, want an error that names the key and %s", header, err, row.names)
			case body.closed != 1:
				t.Errorf("%v: the body was closed %d times, want once", header, body.closed)
			}
		}
	}
}

// Over HTTP/2 the other spelling alone is sent: the site would see a crawler that it forbids.
func TestAHeaderKeyThatIsNotCanonicalIsAnErrorOverHTTP2(t *testing.T) {
	var seen atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: secondbot\nDisallow: /")
			return
		}
		seen.Store(r.Proto + " " + r.UserAgent())
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	rt := &client.Transport{Base: s.Client().Transport, UserAgent: "firstbot/1.0"}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["user-agent"] = []string{"secondbot/1.0"}
	resp, err := rt.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
		t.Errorf("sent as %q", seen.Load())
	}
}

// What Base says of RegisterProtocol: with its type hidden, robots.txt comes from where the pages do.
func TestARegisteredProtocolServesRobotsToo(t *testing.T) {
	elsewhere := &web{robots: "User-agent: *\nDisallow: /private"}
	transport := &http.Transport{}
	transport.RegisterProtocol("http", elsewhere)
	rt := &client.Transport{Base: struct{ http.RoundTripper }{transport}}
	_, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/private"), Header: http.Header{}})
	if refusal, ok := errors.AsType[*client.DisallowedError](err); !ok || refusal.Decision.Reason != policy.ReasonRule {
		t.Errorf("got %v, want a refusal by the rule", err)
	}
	resp, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/x"), Header: http.Header{}})
	if err != nil || len(elsewhere.pages) != 1 {
		t.Fatalf("got %v, and %d pages", err, len(elsewhere.pages))
	}
	resp.Body.Close()
}

func TestQueryWithHash(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /*?a$"}
	rt := &client.Transport{Base: base}
	if _, err := rt.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: "a.example", Path: "/", RawQuery: "a#b"}}); err == nil || len(base.pages) > 0 {
		t.Errorf("got %v, and %d requests were sent, want an error and none", err, len(base.pages))
	}
}

func TestEscapedSlashNextToDots(t *testing.T) {
	for _, raw := range []string{"/public/..%2fprivate/x", "/public/%2e%2e%2Fprivate/x", "/public%2f../private/x", "/public/x%2F..%2F..%2Fprivate/x"} {
		base := &web{robots: "User-agent: *\nDisallow: /private"}
		path, _ := url.PathUnescape(raw)
		u := &url.URL{Scheme: "http", Host: "a.example", Path: path, RawPath: raw}
		if _, err := (&client.Transport{Base: base}).RoundTrip(&http.Request{URL: u}); err == nil {
			t.Errorf("sent %q, which nginx answers as /private/x", u.RequestURI())
		}
	}
}

// The function Decide says what a Transport does with the same file, errors included.
func TestDecideIsTheVerdictOfTheGate(t *testing.T) {
	const robots = "User-agent: *\nDisallow: /private\nDisallow: /*?a$\nAllow: /private/press\n"
	p := policy.Parse([]byte(robots))
	base := &web{robots: robots}
	rt := &client.Transport{Base: base, Token: "ExampleBot", Fetcher: &fetch.Fetcher{FTP: true}}
	for _, text := range []string{
		"http://a.example", "http://a.example/", "http://a.example/private", "http://a.example/private/press/1",
		"http://a.example/public/../private", "http://a.example/public%2f..%2fprivate", "http://a.example/?a", "http://a.example/?",
		"http://a.example/robots.txt", "HTTP://A.example:80/private", "http://a.example/?" + strings.Repeat("x", 20<<10),
		"ftp://a.example/", "FTP://a.example/private/press;type=i", "ftp://a.example//public//..//private", "ftp://a.example/x;y=1/../private",
		"ftp://a.example/x%5C..%5Cprivate", "ftp://a.example/%2Fprivate", "ftp://a.example/?x", "ftp://a.example/%0Ax",
		"mailto:a@b.example", "http://a..example/", "/private", "http:private",
	} {
		u := parse(text)
		want, wantErr := rt.Decide(t.Context(), u)
		got, err := client.DecideWith(p, "ExampleBot", u)
		if got.Decision != want.Decision || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%.80s: got %v, %v; the Transport says %v, %v", text, got.Decision, err, want.Decision, wantErr)
		}
	}
	if len(base.pages) > 0 {
		t.Errorf("Decide sent %d pages", len(base.pages))
	}
	for token, u := range map[string]*url.URL{"a b": parse("http://a.example/"), "ExampleBot/1.0": parse("http://a.example/"), "ExampleBot": nil} {
		if d, err := client.DecideWith(p, token, u); err == nil || d != (client.Answer{}) {
			t.Errorf("%q, %v: got %v, %v, want an error and nothing else", token, u, d, err)
		}
	}
	if d, err := client.DecideWith(policy.Unreachable(), "", parse("http://a.example/")); err != nil || d.Reason != policy.ReasonUnreachable {
		t.Errorf("unreachable: got %v, %v", d, err)
	}
}
