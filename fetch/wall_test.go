package fetch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func TestWallsAreToldAndObeyedIfAsked(t *testing.T) {
	const page = "\ufeff \r\n<!doctype html>\n<script>color: red</script>"
	for _, row := range []struct {
		status int
		body   string
		header []string
		wall   string // the end of it; empty: none
	}{
		{200, page, nil, "a page and no file of rules"},
		{200, page, []string{"Content-Type", "text/plain"}, "a page and no file of rules"},
		{200, page + "\nUser-Agent: Mozilla/5.0\nYour IP: 192.0.2.1\n", nil, "a page and no file of rules"}, // the visitor's
		{200, page + "\nYour browser: User-agent: Mozilla\n", nil, "a page and no file of rules"},
		{200, "<!-- ours -->\nUser-agent: *\nDisallow: /private/\n", nil, ""},
		{200, "<!-- ours -->\nUser-agent: ExampleBot/1.0\nDisallow:\n", nil, ""},
		{200, "<!-- ours -->\nUser-agent: ExampleBot\n\nUser-agent: *\nDisallow: /private/\n", nil, ""},
		{200, "<!-- ours -->\nUser-agent: ExampleBot\n\nUser-agent: other\nDisallow: /private/\n", nil, ""},
		{200, "", []string{"Content-Type", "text/html"}, ""},
		{200, "Sitemap: http://a.example/map.xml\n", []string{"Content-Type", "text/html"}, ""},
		{200, "User-agent: *\nDisallow: /private/\n", []string{"Cf-Mitigated", "challenge"}, "Cf-Mitigated: challenge"},
		{200, "User-agent: *\nDisallow: /private/\n", []string{"Cf-Mitigated", "other"}, ""},
		{202, "", []string{"X-Amzn-Waf-Action", "captcha"}, "X-Amzn-Waf-Action: captcha"},
		{202, "", []string{"X-Amzn-Waf-Action", "captcha", "Cf-Mitigated", "challenge"}, "Cf-Mitigated: challenge"}, // whichever comes first
		{401, page, nil, "status 401"},
		{403, "", nil, "status 403"},
		{403, page, []string{"X-Vercel-Mitigated", "deny"}, "X-Vercel-Mitigated: deny"},
		{404, page, nil, ""},
		{410, "", nil, ""},
		{429, page, nil, ""},
		{503, page, []string{"Cf-Mitigated", "challenge"}, ""}, // unreachable anyhow
	} {
		for _, obey := range []bool{false, true} {
			send, asked := answers(response(row.status, row.body, row.header...))
			f := fetch.Fetcher{Transport: send, ObeyWalls: obey, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.example"), nil)
			if err != nil || *asked != 1 {
				t.Fatalf("%v: %v, %d requests", row, err, *asked)
			}
			switch wall := r.Wall(); {
			case obey && row.wall != "":
				check(t, r, err, "disallow")
				if cause := fetch.CauseOf(r.Err); cause != "http_request_denied" {
					t.Errorf("%v: got cause %q, want http_request_denied", row, cause)
				}
				if r.Err == nil || wall != "" || !strings.Contains(fmt.Sprint(r.Err), row.wall) || r.StatusCode != row.status {
					t.Errorf("%v: got %v, wall %q, want an error that names the wall, and no wall", row, r.Err, wall)
				}
				if in := r.In(policy.Yandex); in.Err == nil || in.Policy.Decide("", "/").Allowed {
					t.Errorf("%v: open to another dialect: %v", row, in)
				}
			case (wall == "") != (row.wall == ""), !strings.HasSuffix(wall, row.wall), row.status < 500 && r.Err != nil:
				t.Errorf("%v: got %q, %v", row, wall, r.Err)
			}
			if in := r.In(policy.Yandex); r.StatusCode == 200 && in.Wall() != r.Wall() {
				t.Errorf("%v: got %q in Yandex, want %q", row, in.Wall(), r.Wall())
			}
			kept := *r
			if kept.Body = nil; kept.Wall() != r.Wall() {
				t.Errorf("%v: got %q without the body, want %q", row, kept.Wall(), r.Wall())
			}
		}
	}
}

// A redirect that leads nowhere may be the wall's.
func TestAWallAtTheEndOfRedirectsIsObeyed(t *testing.T) {
	send, _ := answers(response(302, "", "Location", "/robots.txt", "Cf-Mitigated", "challenge"))
	f := fetch.Fetcher{Transport: send, ObeyWalls: true}
	fetched(t, &f, "http://a.example", nil, "disallow")
}

// A 304 renews what was a page, though the page itself is gone.
func TestARenewedPageIsStillNoFileOfRules(t *testing.T) {
	send, _ := answers(response(200, "<html>", "Etag", `"a"`), response(304, "", "Etag", `"a"`))
	f := fetch.Fetcher{Transport: send}
	kept := *fetched(t, &f, "http://a.example", nil, "allow")
	kept.Body = nil
	if r := fetched(t, &f, "http://a.example", &kept, "allow"); r.Wall() == "" {
		t.Errorf("got %v and no wall", r)
	}
}

// What a wall answers is no robots.txt in any dialect: to Yandex, a 503 of the site's own would allow everything.
func TestAWallIsObeyedInEachDialect(t *testing.T) {
	for _, obey := range []bool{false, true} {
		send, _ := answers(response(503, "", "Cf-Mitigated", "challenge"))
		f := fetch.Fetcher{Transport: send, ObeyWalls: obey, Retries: -1}
		res := fetched(t, &f, "http://a.example", nil, "disallow")
		if got := res.In(policy.Yandex).Policy.Decide("ExampleBot", "/page").Allowed; got == obey {
			t.Errorf("ObeyWalls %v: Yandex's reading allows a page: %v", obey, got)
		}
	}
}
