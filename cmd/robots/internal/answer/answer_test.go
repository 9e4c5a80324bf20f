package answer

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func TestLifetimesAreExplained(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		header string // lines
		want   string
	}{
		{"nothing stated", 200, "", "24h0m0s, as the answer states none"},
		{"nothing stated with 403", 403, "", "1h0m0s, as the answer states none"},
		{"a day with 401", 401, "Cache-Control: max-age=86400", "24h0m0s, stated by Cache-Control; caches keep it for 1h0m0s"},
		{"max-age", 200, "Cache-Control: max-age=7200", "2h0m0s, stated by Cache-Control"},
		{"no-store", 200, "Cache-Control: no-store", "0s, stated by Cache-Control; caches keep it for 1m0s"},
		{"a week", 200, "Cache-Control: max-age=604800", "168h0m0s, stated by Cache-Control; caches keep it for 24h0m0s"},
		{"Expires", 200, "Expires: Sat, 21 Nov 2026 14:00:00 GMT\nDate: Sat, 21 Nov 2026 12:00:00 GMT", "2h0m0s, stated by Expires"},
		{"a status of the moment", 429, "Cache-Control: max-age=3600", "5m0s, as such a status passes"},
		{"Vary", 200, "Vary: *", "0s, for the answer varies by more than the request says; caches keep it for 1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := http.Header{}
			for l := range strings.Lines(c.header) {
				name, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
				header.Add(name, value)
			}
			received, _ := http.ParseTime("Sat, 21 Nov 2026 12:00:00 GMT")
			res := &fetch.Result{StatusCode: c.status, Header: header, Time: received}
			if got := ExplainLifetime(res, nil); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	redirected := &fetch.Result{StatusCode: 200, Time: time.Now(), RedirectHeaders: []http.Header{{"Cache-Control": {"max-age=600"}}}}
	if got, want := ExplainLifetime(redirected, nil), "10m0s, stated by a redirect on the way"; got != want {
		t.Errorf("redirected: got %q, want %q", got, want)
	}
}

// The text of each file holds the expectation: a line that is to be shown ends with
// "# shown", the deciding one with "# decides".
func TestExplainPicksTheLinesThatMatter(t *testing.T) {
	for _, c := range []struct {
		name, token, target string
		dialect             policy.Dialect
		file                string
	}{
		{"the rules that match", "ExampleBot", "/a/b", policy.RFC9309, `
User-agent: *   # shown
Disallow: /a    # shown
Disallow: /c
Allow: /a/b     # decides`},
		{"only the group of the crawler", "ExampleBot", "/a", policy.RFC9309, `
User-agent: *
Disallow: /a
User-agent: examplebot # shown
Disallow: /a           # decides`},
		{"groups that are combined", "ExampleBot", "/a/b", policy.RFC9309, `
User-agent: ExampleBot # shown
Disallow: /a           # shown

User-agent: *
Disallow: /

User-agent: Other      # shown
User-agent: ExampleBot # shown
Allow: /a/b            # decides`},
		{"other records between", "ExampleBot", "/a", policy.RFC9309, `
User-agent: ExampleBot # shown
Crawl-delay: 5
Sitemap: https://site.example/s.xml

User-agent: Other      # shown
Disallow: /a           # decides`},
		{"no rule that matches", "ExampleBot", "/c", policy.RFC9309, `
User-agent: ExampleBot # shown
Disallow: /a`},
		{"no group", "ExampleBot", "/a", policy.RFC9309, `
User-agent: Other
Disallow: /a`},
		{"wildcards", "ExampleBot", "/a/b.gif", policy.RFC9309, `
User-agent: * # shown
Disallow: /*.gif$ # decides
Disallow: /*.png$`},
		{"misspelt, by Google", "ExampleBot", "/a", policy.Google, `
useragent: * # shown
disalow: /a  # decides`},
		{"misspelt, by the RFC", "ExampleBot", "/a", policy.RFC9309, `
useragent: *
disalow: /a`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []FileLine
			for i, l := range strings.Split(c.file, "\n") {
				text, mark, _ := strings.Cut(l, "#")
				if mark != "" {
					want = append(want, FileLine{i + 1, strings.TrimSpace(text), mark == " decides"})
				}
			}
			r := &fetch.Result{Dialect: c.dialect, Policy: c.dialect.Parse([]byte(c.file)), Body: []byte(c.file)}
			d := r.Policy.Decide(c.token, c.target)
			if got := BoundBy(r, c.token).Explain(c.target, d); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			for i := range want {
				want[i].Decides = false
			}
			if got := BoundBy(r, c.token).Explain(c.target, policy.Decision{Reason: policy.ReasonUse}); d.Rule.Pattern != "" && !slices.Equal(got, want) {
				t.Errorf("a use that is disallowed: got %v, want %v", got, want)
			}
		})
	}
}
