package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// newMoved is a site with a page that leads to a forbidden one.
func newMoved() *origin {
	return &origin{robots: map[string]string{"a.example.com": "User-agent: *\nDisallow: /private\n"}}
}

// Each way to refuse is seen on plain connections and in TLS, over HTTP/1.1 and HTTP/2, for requests and tunnels. What
// is no refusal stays as it is.
func TestProxyRefusesAsItIsTold(t *testing.T) {
	tier.Gate(t)
	site := newMoved()
	sites := bothSites(t, site.ServeHTTP)
	flags, pool := testCA(t)
	for _, way := range []struct {
		args   []string
		status int // 0: no answer
		title  string
	}{
		{nil, 403, "Forbidden"},
		{[]string{"--refuse=451"}, 451, "Unavailable For Legal Reasons"},
		{[]string{"--refuse=410"}, 410, "Gone"},
		{[]string{"--refuse=close"}, 0, "EOF"},
	} {
		seen := startProxy(t, slices.Concat(way.args, flags, sites, []string{"--private"})...)
		blind := startProxy(t, slices.Concat(way.args, sites, []string{"--private", "--timeout=2s"})...)
		for _, c := range []struct {
			proxy  *relay
			target string
			http2  bool
			others int // the status, if it is no matter of --refuse
		}{
			{seen, "http://a.example.com/private", false, 0},
			{seen, "https://a.example.com/private", false, 0},
			{seen, "https://a.example.com/private", true, 0},
			{blind, "https://a.example.com/private", false, 0},
			{seen, "http://a.example.com/", false, 200},
			{seen, "https://a.example.com/", true, 200},
			{seen, "http://a.example.com:22/", false, 400},
		} {
			name := fmt.Sprint(way.args, c.target, c.http2)
			tr := c.proxy.client(pool)
			tr.ForceAttemptHTTP2 = c.http2
			status, said := ask(tr, c.target)
			want := way.status
			if c.others > 0 {
				want = c.others
			}
			if c.proxy == blind && want > 0 {
				status, want = 0, 0 // net/http tells of the answer to CONNECT what it says alone
			}
			if status != want || c.others == 0 && !strings.Contains(said, way.title) &&
				!(c.http2 && strings.Contains(said, "INTERNAL_ERROR")) {
				t.Errorf("%s: %d %s, want %d", name, status, said, want)
			}
			if want > 0 && c.others != 200 && !strings.Contains(said, "[robotsgate;error=http_request_") {
				t.Errorf("%s: no Proxy-Status: %s", name, said)
			}
			if want > 0 && c.others == 0 && !strings.Contains(said, fmt.Sprintf(`"status":%d`, want)) {
				t.Errorf("%s: got %s, want status %d", name, said, want)
			}
		}
		if log := site.log(); len(log) != 2 {
			t.Errorf("%v: the site was asked for %q, want two", way.args, log)
		}
	}
	if status, said := fails(t, "proxy", "--refuse=404"); status != shell.ExitUsage {
		t.Errorf("status %d: %s, want %d", status, said, shell.ExitUsage)
	}
}

// ask returns the status and all else that an answer says, or 0 and why there is none.
func ask(tr http.RoundTripper, target string) (status int, said string) {
	req, err := http.NewRequest("GET", target, nil)
	if err != nil {
		return 0, err.Error()
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, fmt.Sprint(res.Status, res.Header["Proxy-Status"], string(body))
}
