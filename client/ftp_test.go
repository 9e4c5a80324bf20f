package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/ftp"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// ftpWeb is a Base that reads ftp URLs. It notes what it sends but robots.txt.
func ftpWeb(robots string, sent *[]string) roundtrip.Func {
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/robots.txt" {
			return answer(200, "", robots), nil
		}
		*sent = append(*sent, req.URL.String())
		return answer(200, "", "page"), nil
	}
}

// An ftp page is decided on like any other. A path that FTP clients read in different ways is an error.
func TestFTPPages(t *testing.T) {
	const robots = "User-agent: *\nDisallow: /private/\nDisallow: /exact$\nAllow: /private/press$\n"
	for _, c := range []struct {
		url  string
		want string // what is sent; "" if it is refused, "error" if it cannot be decided on
	}{
		{"ftp://a.example/", "ftp://a.example/"},
		{"ftp://a.example", "ftp://a.example"},
		{"FTP://A.Example:21/x", "ftp://a.example/x"},
		{"ftp://a.example:2121/x", "ftp://a.example:2121/x"},
		{"ftp://a.example:80/x", "ftp://a.example:80/x"},
		{"ftp://user:secret@a.example/x", "ftp://user:secret@a.example/x"},
		{"ftp://a.example/private/press", "ftp://a.example/private/press"},
		{"ftp://a.example/private/x", ""},
		{"ftp://a.example/exact", ""},
		{"ftp://a.example/%2Fprivate/x", "error"},
		{"ftp://a.example/%2fprivate%2fx", "error"},
		{"ftp://a.example//private/x", "error"},
		{"ftp://a.example/public/../private/x", "error"},
		{"ftp://a.example/public/%2E%2E/private/x", "error"},
		{"ftp://a.example/private/press;type=i", "error"},
		{"ftp://a.example/x%0D%0ADELE%20y", "error"},
		{"ftp://a.example/x%0Ay", "error"},
		{"ftp://a.example/x%0dy", "error"},
		{"ftp://a.example/x%00", "error"},
		{"ftp://a.example/exact?", "error"},
		{"ftp://a.example/exact?x", "error"},
		{"ftp:a.example/x", "error"},
		{"ftp:///x", "error"},
	} {
		for _, dialect := range []policy.Dialect{policy.RFC9309, policy.Google} {
			var sent []string
			rt := &client.Transport{Base: ftpWeb(robots, &sent), Dialect: dialect, Sign: func(*http.Request) error {
				t.Errorf("%s: Sign was called, for what has no fields", c.url)
				return nil
			}}
			req := &http.Request{Method: http.MethodGet, URL: parse(c.url)}
			_, err := rt.RoundTrip(req)
			_, refused := err.(*client.DisallowedError)
			if err != nil && !errors.Is(err, client.ErrNotSent) {
				t.Errorf("%s, %s: got %v, want ErrNotSent", dialect, c.url, err)
			}
			switch {
			case c.want == "" && (!refused || sent != nil), c.want == "error" && (err == nil || refused || sent != nil):
				t.Errorf("%s, %s: sent %q, %v, want %q", dialect, c.url, sent, err, c.want)
			case c.want != "" && c.want != "error" && (err != nil || !slices.Equal(sent, []string{c.want})):
				t.Errorf("%s, %s: sent %q, %v, want %q", dialect, c.url, sent, err, c.want)
			}
			d, derr := rt.Decide(t.Context(), req.URL)
			if (derr != nil) != (c.want == "error") || d.Allowed != (err == nil) {
				t.Errorf("%s, %s: got %v, %v by Decide, want what RoundTrip says: %v", dialect, c.url, d, derr, err)
			}
			if c.want == "error" {
				continue
			}
			if p, err := rt.Lookup(t.Context(), req.URL); err != nil || p.Decide("x", "/private/").Allowed {
				t.Errorf("%s, %s: got %v, %v by Lookup, want a policy that disallows /private/", dialect, c.url, p, err)
			}
		}
	}
}

// robots.txt itself needs no permission, and what a person asks for none either.
func TestFTPPagesThatNeedNoPermission(t *testing.T) {
	var sent []string
	rt := &client.Transport{Base: ftpWeb("User-agent: *\nDisallow: /\n", &sent)}
	req := &http.Request{URL: parse("ftp://a.example/robots.txt")}
	if _, err := rt.RoundTrip(req); err != nil {
		t.Errorf("robots.txt: got %v, want it sent", err)
	}
	req = (&http.Request{URL: parse("ftp://a.example/x")}).WithContext(client.WithoutRobots(t.Context()))
	if _, err := rt.RoundTrip(req); err != nil || len(sent) != 1 {
		t.Errorf("without robots: got %v, sent %q, want one page", err, sent)
	}
}

// An ftp origin has a pace of its own.
func TestFTPPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		base := ftpWeb("User-agent: *\nCrawl-delay: 10\n", &sent)
		rt := &client.Transport{Base: base, Pacer: &client.Pacer{}}
		start := time.Now()
		for _, c := range []struct {
			url  string
			then time.Duration
		}{{"ftp://a.example/1", 10 * time.Second}, {"http://a.example/2", 20 * time.Second}, {"ftp://a.example:21/3", 20 * time.Second}, {"ftp://a.example/4", 30 * time.Second}} {
			res, err := rt.RoundTrip(&http.Request{URL: parse(c.url), Header: http.Header{}})
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if took := time.Since(start); took != c.then {
				t.Errorf("%s was sent after %v, want %v", c.url, took, c.then)
			}
		}
	})
}

func TestFTPErrorsSayWhatToDo(t *testing.T) {
	rt := &client.Transport{Base: ftpWeb("", new([]string))}
	for url, want := range map[string]string{"ftp://a.example/x?y": "%3F", "ftp://u:secret@a.example/%0Ax?y": "%0A"} {
		_, err := rt.Decide(t.Context(), parse(url))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error that says %q, without the password", url, err, want)
		}
	}
}

// An ftp that is not registered is a mistake of the program, and the error says what to do; with fetch/ftp the gate asks
// a server.
func TestFTPHasToBeRegistered(t *testing.T) {
	bare := &client.Transport{Base: new(http.Transport)}
	if _, err := bare.RoundTrip(request("GET", "ftp://127.0.0.1:1/x", nil)); !errors.Is(err, client.ErrNotSent) || !strings.Contains(err.Error(), "RegisterProtocol") {
		t.Errorf("got %v, want ErrNotSent that names RegisterProtocol", err)
	}
	dialled := ""
	dial := func(_ context.Context, _, addr string) (net.Conn, error) {
		dialled = addr
		return nil, errors.New("no FTP here")
	}
	base := new(http.Transport)
	base.RegisterProtocol("ftp", &ftp.Transport{DialContext: dial})
	gate := &client.Transport{Base: base, Fetcher: &fetch.Fetcher{Retries: -1}}
	_, err := gate.RoundTrip(request("GET", "ftp://a.example/x", nil))
	if refusal, ok := errors.AsType[*client.DisallowedError](err); !ok || refusal.Reason != policy.ReasonUnreachable || dialled != "a.example:21" {
		t.Errorf("got %v after a dial to %q, want robots.txt unreachable after one to a.example:21", err, dialled)
	}
}
