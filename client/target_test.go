package client_test

import (
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

	"github.com/robotsgate/robotsgate/client"
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

// What a page is decided on is what net/http sends, whatever bytes its path has. Google compares as written.
func TestThePathDecidedOnIsThatSent(t *testing.T) {
	for c := range 256 {
		for _, path := range []string{"/%s", "/abcdef%s", "/abcdefg%s", "/%sabcdefghijkl"} {
			u := &url.URL{Scheme: "http", Host: "a.example", Path: fmt.Sprintf(path, []byte{byte(c)})}
			if u.Path == "/." { // see TestATargetWithADotSegmentIsAnError
				continue
			}
			p := policy.Google.Parse([]byte("user-agent: *\ndisallow: /\nallow: /$\nallow: " + u.EscapedPath() + "$"))
			if d, err := client.DecideWith(p, "ExampleBot", u); err != nil || !d.Allowed {
				t.Errorf("%q: got %v, %v, want it allowed by its own rule", u.Path, d, err)
			}
		}
	}
}

// What servers resolve in different ways is not decided on: nginx, IIS, Tomcat and others find /private in these.
func TestATargetWithADotSegmentIsAnError(t *testing.T) {
	for target, refused := range map[string]bool{
		"/a/..//private/": true, "/.%2f/private/": true, "/a/..%2f%2fprivate/": true, "/a/%2e%2e%2f/private/": true,
		"/x/a%5c..%5c..%5cprivate/": true, "/a/..;/private/": true, "/a/..;x=1/private;v=1": true, "/%2e%2e/%2E./x": true,
		"/public%2f../private/x": true, "/a/.": true, "/..": true, "/./a": true, "/a%2F.%2Fb": true, "/a/.%2e?x": true,

		"/a/..%252fprivate": false, "/a/.../private": false, "/a?x=/../private": false, "/a?x/../y?z": true, "//private/": false,
		"/%2fprivate/": false, "/;x/private": false, "/.well-known/x": false, "/a.": false, "/a..b/": false, "/a%2eb": false,
		"/..a": false, "/.%2": false,
	} {
		u, err := url.Parse("http://a.example" + target)
		if err != nil { // net/http sends no such escape
			continue
		}
		base := &web{robots: "User-agent: *\nDisallow: /private"}
		rt := &client.Transport{Base: base}
		_, derr := rt.Decide(t.Context(), u)
		_, rerr := rt.RoundTrip(&http.Request{URL: u})
		for _, err := range []error{derr, rerr} {
			if told := errors.Is(err, client.ErrNotSent) && strings.Contains(err.Error(), "dot segment"); told != refused {
				t.Errorf("%s: got %v, want an error about dot segments: %t", target, err, refused)
			}
		}
		if refused && len(base.pages)+len(base.agents) > 0 {
			t.Errorf("%s: something was sent", target)
		}
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
			t.Errorf("%s: %d pages were sent, want none", row.name, len(base.pages))
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
		t.Fatalf("got %v, and %d pages, want one", err, len(elsewhere.pages))
	}
	resp.Body.Close()
}

// The function Decide says what a Transport does with the same file, errors included.
func TestDecideIsTheVerdictOfTheGate(t *testing.T) {
	const robots = "User-agent: *\nDisallow: /private\nDisallow: /*?a$\nAllow: /private/press\n"
	p := policy.Parse([]byte(robots))
	base := &web{robots: robots}
	rt := &client.Transport{Base: base, Token: "ExampleBot"}
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
		t.Errorf("Decide sent %d pages, want none", len(base.pages))
	}
	for token, u := range map[string]*url.URL{"a b": parse("http://a.example/"), "ExampleBot/1.0": parse("http://a.example/"), "ExampleBot": nil} {
		if d, err := client.DecideWith(p, token, u); err == nil || d != (client.Answer{}) {
			t.Errorf("%q, %v: got %v, %v, want an error and nothing else", token, u, d, err)
		}
	}
	if d, err := client.DecideWith(p, "ExampleBot", parse("http://a.example/"), "train_ai"); err == nil || !strings.Contains(err.Error(), `"train_ai"`) {
		t.Errorf("a misspelt use: got %v, %v, want an error that names it", d, err)
	}
	if d, err := client.DecideWith(policy.Unreachable(), "", parse("http://a.example/")); err != nil || d.Reason != policy.ReasonUnreachable {
		t.Errorf("got %v, %v, want unreachable", d, err)
	}
}
