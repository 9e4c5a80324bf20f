package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
)

// sitemapSite has a site for each row: none waits for the turns of another.
var sitemapSite = map[string]string{
	"mapped.example/robots.txt": "User-agent: *\nDisallow: /cart/\nDisallow: /*?\n\nUser-agent: Googlebot\nDisallow: /g\n\n" +
		"User-agent: *\nCrawl-delay: 0.01\nSitemap: http://mapped.example/index.xml\nSitemap: http://mapped.example/gone.xml\n",
	"mapped.example/index.xml": "<sitemapindex><sitemap><loc>http://mapped.example/s.xml</loc></sitemap>" +
		"<sitemap><loc>http://mapped.example/cart/s.xml</loc></sitemap></sitemapindex>",
	"mapped.example/s.xml": "<urlset><url><loc>http://mapped.example/a?1</loc></url><url><loc>http://mapped.example/cart/1</loc></url>" +
		"<url><loc>http://mapped.example/cart/2</loc></url><url><loc>http://mapped.example/g</loc></url><url><loc>http://away.example/</loc></url></urlset>",
	"none.example/robots.txt":  "User-agent: *\nSitemap: /s.xml\n",
	"empty.example/robots.txt": "User-agent: *\nDisallow: /\nAllow: /s.txt\nSitemap: http://empty.example/s.txt\n",
	"empty.example/s.txt":      "<urlset/>",
	"away.example/robots.txt":  "User-agent: *\nDisallow: /\n",
	"other.example/robots.txt": "User-agent: *\nSitemap: http://away.example/s.txt\n",
	"hostile.example/robots.txt": "User-agent: *\nDisallow: /<b>x\nDisallow: /" + strings.Repeat("z", 1500) +
		"\nCrawl-delay: 0.01\nSitemap: http://hostile.example/<b>\u202e\nSitemap: http://hostile.example/s.txt\n",
	"hostile.example/s.txt": "http://hostile.example/<b>x\u202e\nhttp://hostile.example/" + strings.Repeat("z", 1900) + "\nend",
	"many.example/robots.txt": "User-agent: *\nCrawl-delay: 0.01\n" + numbered(60, "Disallow: /%d/\n") +
		"Allow: /s\n" + numbered(30, "Sitemap: http://many.example/s%d.txt\n"),
	"slow.example/robots.txt": "User-agent: *\nCrawl-delay: 9\n" + numbered(30, "Sitemap: http://slow.example/s%d.txt\n"),
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// What the page says of a site's sitemaps: each line that refuses with an example, and what could not be read.
func TestPageCountsWhatIsRefusedInSitemaps(t *testing.T) {
	var asked sync.Map
	v := startServe(t, serve.UsualLimits(), "--private", "--timeout=5s", "--agent=MyBot", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Host+r.URL.Path, true)
		text, ok := sitemapSite[r.Host+r.URL.Path]
		if r.Host == "many.example" && !ok {
			text, ok = numbered(60, "http://many.example/%d/\n"), true
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, text)
	}))
	const gone = "1 sitemap was not read to the end: http://mapped.example/gone.xml: status 404 Not Found"
	const closed = "1 sitemap was not read to the end: http://mapped.example/cart/s.xml: client: not sent for \"MyBot\": disallowed by line 2 of robots.txt: Disallow: /cart/ (user-agent: *)"
	for _, row := range []struct{ site, agent, heading, want, unread string }{
		{"mapped", "", "3 of 5 URLs read in the sitemaps are refused",
			"2 by line 2: Disallow: /cart/, such as http://mapped.example/cart/1|1 by line 3: Disallow: /*?, such as http://mapped.example/a?1|" +
				"1: no URL of this site, such as http://away.example/|" + closed + "|" + gone, ""},
		{"mapped", "Googlebot", "1 of 5 URLs read in the sitemaps is refused",
			"1 by line 6: Disallow: /g, such as http://mapped.example/g|1: no URL of this site, such as http://away.example/|" + closed + "|" + gone, ""},
		{"none", "", "", "", "The sitemaps were not read: robots.txt names none by a whole URL"},
		{"gone", "", "", "", "The sitemaps were not read: robots.txt names none by a whole URL"},
		{"empty", "", "0 of 0 URLs read in the sitemaps are refused", "", ""},
		{"other", "", "0 of 0 URLs read in the sitemaps are refused", // the robots.txt of the sitemap's own origin decides
			"1 sitemap was not read to the end: http://away.example/s.txt: client: not sent for \"MyBot\": disallowed by line 2 of robots.txt: Disallow: / (user-agent: *)", ""},
		{"hostile", "", "2 of 2 URLs read in the sitemaps are refused", "", ""},
		{"many", "", "1,200 of 1,200 URLs read in the sitemaps are refused", "", ""},
		{"slow", "", "0 of 0 URLs read in the sitemaps are refused", "", ""},
	} {
		t.Run(row.site+row.agent, func(t *testing.T) {
			t.Parallel() // each waits for its turn
			_, doc := v.page("GET", "?"+formOf("site", "http://"+row.site+".example/", "agent", row.agent, "sitemaps", "1"), "")
			heading, got := doc.counted()
			if heading != row.heading || doc.first("p", "problem") != row.unread {
				t.Errorf("got %q and %q, want %q and %q", heading, doc.first("p", "problem"), row.heading, row.unread)
			}
			text := strings.Join(got, "|")
			switch row.site {
			case "hostile":
				if len(got) != 4 || len(text) > 6000 || !strings.Contains(text, `/<b>x, such as http://hostile.example/<b>x\u202e`) || !strings.Contains(text, `the end: http://hostile.example/<b>\u202e: `) {
					t.Errorf("got %s", text)
				}
			case "many":
				const end = "200 by more lines than are shown|10 sitemaps were not read to the end, such as http://many.example/s20.txt: 20 sitemaps are the most that are read"
				_, more := asked.Load("many.example/s20.txt")
				if len(got) != 52 || !strings.HasPrefix(text, "20 by line 3: Disallow: /0/, such as http://many.example/0/|") || !strings.HasSuffix(text, end) || more {
					t.Errorf("got %s, and asked for one more is %v", text, more)
				}
			case "slow":
				if len(got) != 2 || !strings.Contains(text, "20 sitemaps were not read to the end, such as http://slow.example/s0.txt: client: not sent: no turn") {
					t.Errorf("got %s", text)
				}
			default:
				if text != row.want {
					t.Errorf("got\n%s\nwant\n%s", text, row.want)
				}
			}
			_, doc = v.page("GET", "?"+formOf("site", "http://"+row.site+".example/"), "")
			if offered, named := doc.button("sitemaps"), row.heading != ""; offered != named {
				t.Errorf("offered %v, want %v", offered, named)
			}
			if heading, _ := doc.counted(); heading != "" {
				t.Errorf("sitemaps were read, and not asked for: %s", heading)
			}
		})
	}
}

// counted is what the page says of sitemaps.
func (d document) counted() (heading string, items []string) {
	for _, section := range d.all("section", "") {
		if attr(section.Node, "aria-labelledby") != "counted" {
			continue
		}
		heading = section.first("h2", "")
		for _, li := range section.all("li", "") {
			items = append(items, li.text())
		}
	}
	return heading, items
}

// button reports whether there is one of a name.
func (d document) button(name string) bool {
	for _, b := range d.all("button", "") {
		if attr(b.Node, "name") == name {
			return true
		}
	}
	return false
}

// A reading of sitemaps takes the place of a stream, and ends when its time is up, with what was counted by then.
func TestPageReadsSitemapsWithinItsBounds(t *testing.T) {
	limits := serve.UsualLimits()
	limits.Streams = 1
	reads, went := make(chan bool), make(chan bool)
	v := startServe(t, limits, "--private", "--timeout=2s", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /a\nCrawl-delay: 0.01\nSitemap: http://endless.example/s.txt\n")
			return
		}
		io.WriteString(w, "http://endless.example/a\n")
		http.NewResponseController(w).Flush()
		reads <- true
		<-r.Context().Done()
		close(went)
	}))
	var doc document
	done := make(chan bool)
	go func() {
		defer close(done)
		_, doc = v.page("GET", "?"+formOf("site", "http://endless.example", "sitemaps", "1"), "")
	}()
	<-reads
	if _, other := v.page("GET", "?"+formOf("site", "http://endless.example", "sitemaps", "1"), ""); !strings.HasPrefix(other.first("p", "problem"), "The sitemaps were not read: ") {
		t.Errorf("a second reading: got %q", other.text())
	}
	<-done
	<-went
	heading, items := doc.counted()
	if text := strings.Join(items, "|"); heading != "1 of 1 URL read in the sitemaps is refused" || text != "1 by line 2: Disallow: /a, such as http://endless.example/a|Time was up: there may be more." {
		t.Errorf("got %q, %s", heading, text)
	}
}
