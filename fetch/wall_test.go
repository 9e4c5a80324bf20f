package fetch_test

import (
	"fmt"
	"net/http"
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
		{200, page + "\nUser-Agent: Mozilla/5.0\nYour IP: 192.0.2.1\n", nil, "a page and no file of rules"}, // the visitor's
		{200, page + "\nYour browser: User-agent: Mozilla\n", nil, "a page and no file of rules"},
		{200, page + "\n<style>\n#id {\n}\n</style>", nil, "a page and no file of rules"}, // CSS has no comments
		{200, "<!-- ours -->\nUser-agent: *\nDisallow: /private/\n", nil, ""},
		{200, "<!-- ours -->\nUser-agent: ExampleBot/1.0\nDisallow:\n", nil, ""},
		{200, "<!-- ours -->\nUser-agent: ExampleBot\n\nUser-agent: *\nDisallow: /private/\n", nil, ""},
		{200, "<!-- ours -->\nUser-agent: ExampleBot\n\nUser-agent: other\nDisallow: /private/\n", nil, ""},
		{200, "", []string{"Content-Type", "text/html"}, ""},
		{200, "\r\n \n", nil, ""},
		{200, "# nothing here\n", nil, ""},
		{200, "Crawl-delay: 5\n", nil, ""},
		{200, "Disallow: /private\n", nil, ""},
		{200, "user agent : *\nDissallow: /private\n", nil, ""},
		{200, "Disallaw: /private\n", nil, ""},
		{200, "Site-map: http://a.example/sitemap.xml\n", nil, ""},
		{200, "Sitemap: http://a.example/map.xml\n", []string{"Content-Type", "text/html"}, ""},
		{200, gzipped(file), nil, "no line of a robots.txt"},
		{200, "\x1f\x8b\x08\x00\n#\x00\xb1\n", nil, "no line of a robots.txt"}, // no comment, but chance
		{200, `{"message": "not found"}`, nil, "no line of a robots.txt"},
		{200, "Error: too many requests\n", nil, "no line of a robots.txt"},
		{200, "ok", nil, "no line of a robots.txt"},
		{200, "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", nil, "no line of a robots.txt"},
		{200, wide(file, false), nil, "no line of a robots.txt"},
		{200, "\xff\xfe" + wide(file, false), nil, ""}, // with its mark, UTF-16 is read
		{204, "", nil, ""},
		{200, "User-agent: *\nDisallow: /private/\n", []string{"Cf-Mitigated", "challenge"}, "Cf-Mitigated: challenge"},
		{202, "", []string{"X-Amzn-Waf-Action", "captcha"}, "X-Amzn-Waf-Action: captcha"},
		{202, "", []string{"X-Amzn-Waf-Action", "captcha", "Cf-Mitigated", "challenge"}, "Cf-Mitigated: challenge"}, // whichever comes first
		{401, page, nil, "status 401"},
		{403, "", nil, "status 403"},
		{403, page, []string{"X-Vercel-Mitigated", "deny"}, "X-Vercel-Mitigated: deny"},
		{404, page, nil, ""},
		{429, page, nil, ""},
		{503, page, []string{"Cf-Mitigated", "challenge"}, ""}, // unreachable anyhow
		{302, "", []string{"Location", "/robots.txt", "Cf-Mitigated", "challenge"}, "Cf-Mitigated: challenge"},
		{302, "", []string{"Location", "/robots.txt", "Set-Cookie", "a=b"}, "a redirect loop with a cookie"},
		{302, "", []string{"Location", "/robots.txt"}, ""},
	} {
		for _, obey := range []bool{false, true} {
			send, asked := answers(response(row.status, row.body, row.header...))
			f := fetch.Fetcher{Transport: send, ObeyWalls: obey, Retries: -1}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.example"), nil)
			if err != nil || *asked != 1 {
				t.Fatalf("%v: got %v, %d requests, want one", row, err, *asked)
			}
			if obey && row.wall != "" {
				check(t, r, err, "disallow")
				if cause(r) != "http_request_denied" || r.Wall || !strings.Contains(fmt.Sprint(r.Err), row.wall) || r.StatusCode != row.status {
					t.Errorf("%v: got %v, cause %q, wall %v, want an error that names the wall, and no wall", row, r, cause(r), r.Wall)
				}
				if in := r.In(policy.Yandex); in.Err == nil || in.Policy.Decide("", "/").Allowed {
					t.Errorf("%v: got %v in Yandex, want it unreachable too", row, in)
				}
				continue
			}
			if r.Wall != (row.wall != "") || row.status < 500 && r.Err != nil {
				t.Errorf("%v: got wall %v, %v, want wall %v", row, r.Wall, r.Err, row.wall != "")
			}
			if in := r.In(policy.Yandex); row.status == 200 && in.Wall != r.Wall {
				t.Errorf("%v: got wall %v in Yandex, want %v", row, in.Wall, r.Wall)
			}
		}
	}
}

// A cookie at any hop of a loop counts.
func TestALoopWithACookieIsAWall(t *testing.T) {
	for _, at := range []int{0, 1, 2} {
		var all []*http.Response
		for i, location := range []string{"/a", "/b", "/robots.txt"} {
			all = append(all, response(302, "", "Location", location))
			if i == at {
				all[i].Header.Set("Set-Cookie", "a=b")
			}
		}
		send, _ := answers(all...)
		f := fetch.Fetcher{Transport: send, Retries: -1}
		if r := fetched(t, &f, "http://a.example", nil, "allow"); !r.Wall {
			t.Errorf("a cookie at hop %d: got no wall, want one", at)
		}
	}
}

// A 304 renews what was a page, though the page itself is gone.
func TestARenewedPageIsStillNoFileOfRules(t *testing.T) {
	send, _ := answers(response(200, "<html>", "Etag", `"a"`), response(304, "", "Etag", `"a"`))
	f := fetch.Fetcher{Transport: send}
	kept := *fetched(t, &f, "http://a.example", nil, "allow")
	kept.Body = nil
	if r := fetched(t, &f, "http://a.example", &kept, "allow"); !r.Wall {
		t.Errorf("got %v and no wall, want one", r)
	}
}

// What a wall answers is no robots.txt in any dialect: to Yandex, a 503 of the site's own would allow everything.
func TestAWallIsObeyedInEachDialect(t *testing.T) {
	for _, obey := range []bool{false, true} {
		send, _ := answers(response(503, "", "Cf-Mitigated", "challenge"))
		f := fetch.Fetcher{Transport: send, ObeyWalls: obey, Retries: -1}
		res := fetched(t, &f, "http://a.example", nil, "disallow")
		if got := res.In(policy.Yandex).Policy.Decide("ExampleBot", "/page").Allowed; got == obey {
			t.Errorf("ObeyWalls %v: got a page allowed in Yandex: %v, want %v", obey, got, !obey)
		}
	}
}
