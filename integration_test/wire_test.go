package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// wireRules has something to say about most of what the odd URLs spell.
const wireRules = `User-agent: *
Disallow: /private
Disallow: /*?*secret
Disallow: /a%2Fb
Disallow: //
Disallow: /%7Euser
Disallow: /caf%C3%A9
Disallow: /*;v=1
Allow: /private/open
`

// wire is a server on pipes that reads request lines itself: what it records is what
// was sent, not what a library made of it.
type wire struct{ targets chan string }

func (w *wire) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go w.serve(far)
	return near, nil
}

func (w *wire) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	for field := line; err == nil && field != "\r\n"; {
		field, err = r.ReadString('\n')
	}
	if err != nil {
		return
	}
	// RFC 9112 §3: method SP request-target SP HTTP-version.
	target := strings.TrimSuffix(strings.TrimSuffix(line, "\r\n"), " HTTP/1.1")
	_, target, _ = strings.Cut(target, " ")
	body := ""
	if target == "/robots.txt" {
		body = wireRules
	} else {
		w.targets <- target
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// newWire returns a gate in front of a wire, and a function that asks for u and checks
// that what was received is what was decided on, and allowed by the rules; or that
// nothing was received.
func newWire(t testing.TB) (ask func(t testing.TB, u *url.URL) (sent bool)) {
	w := &wire{targets: make(chan string, 16)}
	base := &http.Transport{DialContext: w.dial, DisableKeepAlives: true}
	t.Cleanup(base.CloseIdleConnections)
	var decided policy.Decision
	rt := &client.Transport{
		Base: base, Token: "ExampleBot", Fetcher: &fetch.Fetcher{Transport: base, Retries: -1},
		Trace: &client.Trace{Decided: func(_ context.Context, _ *url.URL, a client.Answer, _ time.Duration, _ error) { decided = a.Decision }},
	}
	rules := policy.Parse([]byte(wireRules))
	return func(t testing.TB, u *url.URL) bool {
		t.Helper()
		decided = policy.Decision{}
		resp, err := rt.RoundTrip((&http.Request{URL: u, Header: http.Header{}}).WithContext(t.Context()))
		if err != nil {
			var refusal *client.DisallowedError
			if errors.As(err, &refusal) && refusal.Decision.Reason != policy.ReasonRule {
				t.Errorf("%q: %v, want rules to decide", u, err)
			}
			if len(w.targets) > 0 {
				t.Errorf("%q was refused (%v) and %q was sent", u, err, <-w.targets)
			}
			return false
		}
		resp.Body.Close()
		if u.Path == "/robots.txt" && u.RawQuery == "" && !u.ForceQuery {
			return true
		}
		got := <-w.targets
		if want := u.RequestURI(); got != want { // which is what was decided on, as Trace says
			t.Errorf("%q: sent %q, want %q", u, got, want)
		}
		if d := rules.Decide("ExampleBot", got); !d.Allowed || d != decided {
			t.Errorf("%q: sent %q, as %v, want %v", u, got, decided, d)
		}
		return true
	}
}

// oddURLs is every odd path with every odd query.
func oddURLs() (all []*url.URL) {
	paths := []url.URL{
		{}, {Path: "/"}, {Path: "//"}, {Path: "//private"}, {Path: "/private"}, {Path: "/private/open"}, {Path: "/Private"},
		{Path: "/public/../private"}, {Path: "/public/./x"}, {Path: "/.."}, {Path: "/../private"}, {Path: "/x/..%2fprivate"},
		{Path: "/public/../private", RawPath: "/public/%2e%2e/private"}, {Path: "/private", RawPath: "/%70rivate"},
		{Path: "/a/b"}, {Path: "/a/b", RawPath: "/a%2Fb"}, {Path: "/a/b", RawPath: "/a%2fb"}, {Path: "/a/b", RawPath: "/other"},
		{Path: "/~user"}, {Path: "/~user", RawPath: "/%7Euser"}, {Path: "/%7Euser"}, {Path: "/café"}, {Path: "/caf\xe9"},
		{Path: "/a b"}, {Path: "/a\tb"}, {Path: "/a\r\nX: y"}, {Path: "/\x00"}, {Path: "/\x7f"}, {Path: "/*"}, {Path: "*"}, {Path: "/$"},
		{Path: "/x;v=1"}, {Path: "/[x]"}, {Path: "/\\private"}, {Path: "private"}, {Path: "?private"}, {Path: "/robots.txt"}, {Path: "/robots.txt/"},
		{Path: "/" + strings.Repeat("long/", 500)}, {Opaque: "//a.example/private"}, {Opaque: "private"},
	}
	for _, p := range paths {
		for _, q := range []url.URL{{}, {ForceQuery: true}, {RawQuery: "x=secret"}, {RawQuery: "x y"}, {RawQuery: "é=%zz&*$"}, {Fragment: "secret", User: url.User("me")}} {
			u := p
			u.Scheme, u.Host = "http", "a.example"
			u.ForceQuery, u.RawQuery, u.Fragment, u.User = q.ForceQuery, q.RawQuery, q.Fragment, q.User
			all = append(all, &u)
		}
	}
	return all
}

func TestWhatIsSentIsWhatWasDecidedOn(t *testing.T) {
	ask, sent, all := newWire(t), 0, oddURLs()
	for _, u := range all {
		if ask(t, u) {
			sent++
		}
	}
	t.Logf("%d odd URLs: %d sent as decided, %d refused", len(all), sent, len(all)-sent)
	if sent < 50 || len(all)-sent < 50 {
		t.Error("the URLs no longer exercise both answers")
	}
}

func FuzzWhatIsSentIsWhatWasDecidedOn(f *testing.F) {
	for _, u := range oddURLs() {
		f.Add(u.Path, u.RawPath, u.RawQuery, u.ForceQuery)
	}
	ask := newWire(f)
	f.Fuzz(func(t *testing.T, path, rawPath, query string, force bool) {
		ask(t, &url.URL{Scheme: "http", Host: "a.example", Path: path, RawPath: rawPath, RawQuery: query, ForceQuery: force})
	})
}
