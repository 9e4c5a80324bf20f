package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// The service and the proxy keep the file of --agreements as check and filter do.
func TestServeAndProxyKeepAgreements(t *testing.T) {
	tier.Gate(t)
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/robots.txt":
			io.WriteString(w, "page")
		case r.Host == "down.example":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		}
	})
	text := ""
	for _, site := range []string{"site", "down"} {
		text += "Site: http://" + site + ".example\nUntil: 2199-03-31\nReason: ticket 4711\nUser-agent: ExampleBot\n" +
			"Allow: /private/open\nDisallow: /promised\n"
	}
	flags := []string{"--private", "--agent=ExampleBot", "--agreements=" + written(t, text), to}
	v, proxy := startServe(t, serve.UsualLimits(), flags...), startProxy(t, flags...)
	for _, row := range []struct {
		url     string
		allowed bool
		because string // of JSON
		why     string // of a refusal
		page    string
	}{
		{"http://site.example/private/open", true, `"reason":"agreement","line":5,`, "", "Refused by line 2: Disallow: /private"},
		{"http://down.example/private/open", true, `"reason":"agreement","line":11,`, "", "Refused: robots.txt is unreachable"},
		{"http://site.example/promised", false, `"reason":"agreement","line":6,`, "line 6 of the agreements, until 2199-03-31T23:59:59Z: Disallow: /promised (ticket 4711)", "Allowed: no rule matches"},
		{"http://site.example/private", false, `"reason":"agreement","line":1,`, "line 1 of the agreements, until 2199-03-31T23:59:59Z: Disallow: / (ticket 4711)", "Refused by line 2: Disallow: /private"},
		{"http://other.example/private/open", false, `"reason":"rule","line":2,`, "line 2: Disallow: /private", "Refused by line 2: Disallow: /private"},
		{"http://down.example/", false, `"reason":"agreement","line":7,`, "line 7 of the agreements", "Refused: robots.txt is unreachable"},
	} {
		_, doc := v.page("GET", "?site="+row.url, "") // which quotes the file of the site
		if got := doc.first("span", "say"); !strings.HasPrefix(got, row.page) {
			t.Errorf("the page of %s: got %q, want %q", row.url, got, row.page)
		}
		answers := map[string]string{}
		_, answers["decide"] = v.do("GET", "/v1/decide?url="+row.url, "")
		_, answers["all"] = v.do("GET", "/v1/decide?as=all&url="+row.url, "")
		_, answers["stream"] = v.do("POST", "/v1/decide", row.url+"\n", "Content-Type: text/plain")
		_, answers["turn"] = v.do("POST", "/v1/turns", `{"url":"`+row.url+`","wait":"2s"}`, "Content-Type: application/json")
		for how, got := range answers {
			if !strings.Contains(got, row.because) || strings.Contains(got, `"allowed":true`) != row.allowed && how != "all" {
				t.Errorf("%s of %s: got %s, want allowed %v, %s", how, row.url, got, row.allowed, row.because)
			}
		}
		if strings.Contains(answers["turn"], `"turn":null`) == row.allowed {
			t.Errorf("%s: the turn is %s, want one: %v", row.url, answers["turn"], row.allowed)
		}
		res, got := v.do("GET", "/authz", "", "X-Original-URL: "+row.url, "User-Agent: ExampleBot/1.0")
		if res.StatusCode != map[bool]int{true: 200, false: 403}[row.allowed] || !strings.Contains(got, row.why) {
			t.Errorf("authz of %s: got %s, %s, want allowed %v, %q", row.url, res.Status, got, row.allowed, row.why)
		}
		res, got = proxy.do("GET", row.url)
		if row.allowed != (res.StatusCode == 200 && got == "page") || !strings.Contains(got, row.why) || strings.Contains(got, "robots.txt, line 6") {
			t.Errorf("proxy of %s: got %s, %s, want allowed %v, %q", row.url, res.Status, got, row.allowed, row.why)
		}
	}
}
