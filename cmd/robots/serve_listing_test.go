package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// Where the page was read, the answer says for each engine whether it may be listed.
func TestPageSaysWhetherItMayBeListed(t *testing.T) {
	tier.Gate(t)
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(r.Host, ".") // a site for each page: none waits for its turn
		switch {
		case r.URL.Path == "/robots.txt":
			io.WriteString(w, "User-agent: Bingbot\nDisallow: /\n\nUser-agent: *\nDisallow: /hidden\n")
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/meta", http.StatusFound)
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://meta.example/", http.StatusFound)
		case name == "header":
			w.Header().Set("X-Robots-Tag", "googlebot: noindex")
		case name == "hostile":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, `<meta name="robots" content="noindex, <script>alert(1)</script>">`+strings.Repeat("<img src=/a>", 1<<17))
		case name == "meta" || name == "moved":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, strings.Repeat("<img src=/a>", 20)+`<meta name="robots" content="noindex">`)
		case name == "error":
			w.Header().Set("X-Robots-Tag", "noindex")
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	const shut = "Bingbot may not fetch it (line 2: Disallow: /)"
	if _, doc := v.page("GET", "?"+formOf("site", "http://meta.example/"), ""); strings.Contains(doc.text(), "May the page be listed") {
		t.Error("a page that was not asked for was read")
	}
	for _, c := range []struct{ url, agent, want string }{ // behind "#" why the page is not read
		{"plain.example/", "MyBot", "MyBot may fetch and list it|Googlebot may fetch and list it|YandexBot may fetch and list it|" + shut + "; it may list the address alone"},
		{"header.example/", "*", `a crawler may fetch and list it|Googlebot may fetch it; it asks not to be listed: X-Robots-Tag line 1: "googlebot: noindex"|` +
			"YandexBot may fetch and list it|" + shut + "; it may list the address alone"},
		{"moved.example/moved", "Googlebot", `Googlebot may fetch it; it asks not to be listed: meta at byte 240: "noindex"|` +
			`Googlebot may fetch it; it asks not to be listed: meta at byte 240: "noindex"|YandexBot may fetch it; it asks not to be listed: meta at byte 240: "noindex"|` +
			shut + `, nor see that it asks not to be listed: meta at byte 240: "noindex"`},
		{"hostile.example/", "*", `a crawler may fetch it; it asks not to be listed: meta at byte 0: "noindex"|Googlebot may fetch it; it asks not to be listed: meta at byte 0: "noindex"|` +
			`YandexBot may fetch it; it asks not to be listed: meta at byte 0: "noindex"|` + shut + `, nor see that it asks not to be listed: meta at byte 0: "noindex"`},
		{"away.example/away", "*", ""}, {"error.example/", "*", "#answers 404 Not Found"}, {"plain.example/hidden", "*", "#disallowed by line 5"},
	} {
		t.Run(c.url, func(t *testing.T) {
			t.Parallel() // each waits for its turn
			_, doc := v.page("GET", "?"+formOf("site", "http://"+c.url, "agent", c.agent, "read", "1"), "")
			var got []string
			for _, section := range doc.all("section", "") {
				for _, li := range section.all("li", "") {
					if attr(section.Node, "aria-labelledby") == "listed" {
						got = append(got, li.text())
					}
				}
			}
			want, why, _ := strings.Cut(c.want, "#")
			if unread := doc.first("p", "problem"); (unread != "") != (why != "") || !strings.Contains(unread, why) {
				t.Errorf("%s: it does not say %q, but %q", c.url, why, unread)
			}
			if text := strings.Join(got, "|"); text != want {
				t.Errorf("%s for %s: got\n%s\nwant\n%s", c.url, c.agent, text, want)
			}
		})
	}
}
