package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
)

// document is a page as a browser reads it.
type document struct{ *html.Node }

func (v *serving) page(method, query, body string) (*http.Response, document) {
	v.t.Helper()
	res, text := v.do(method, "/"+query, body, "Content-Type: application/x-www-form-urlencoded")
	if is := res.Header.Get("Content-Type"); is != "text/html; charset=utf-8" {
		v.t.Fatalf("%s: %s: %.200s", is, res.Status, text)
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	return res, document{doc}
}

// all returns the elements of a kind that have a class, if one is given.
func (d document) all(element, class string) (found []document) {
	for n := range d.Descendants() {
		if n.Type == html.ElementNode && n.Data == element &&
			(class == "" || strings.Contains(" "+attr(n, "class")+" ", " "+class+" ")) {
			found = append(found, document{n})
		}
	}
	return found
}

// first is the text of the first of all, if there is one.
func (d document) first(element, class string) string {
	for _, found := range d.all(element, class) {
		return found.text()
	}
	return ""
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is what is written in an element.
func (d document) text() string {
	var b strings.Builder
	for n := range d.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// says is how the page words a verdict.
func says(v *answer.Verdict) string {
	word := map[bool]string{true: "Allowed", false: "Refused"}[v.Allowed]
	if v.Line > 0 {
		return fmt.Sprintf("%s by %s", word, v.Because())
	}
	return fmt.Sprintf("%s: %s", word, v.Because())
}

// lineShown is a line as the page shows it: the first 2,000 bytes, as whole characters.
func lineShown(line string) string {
	line = strings.ReplaceAll(line, "\t", "    ")
	cut := min(len(line), 2000)
	for cut < len(line) && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return answer.Visible(line[:cut])
}

// Real files, pasted: each answer is that of /v1/match, and each line of the file is there once.
func TestPageQuotesRealFiles(t *testing.T) {
	files := vectors.Corpus(t)
	v := startServe(t, serve.UsualLimits())
	urls := []string{"/", "/search?q=a", "/wp-admin/admin-ajax.php", "/private/x", "/*", "https://example.com/a/b.php?x=1"}
	for _, name := range slices.Sorted(maps.Keys(files))[:30] {
		text := files[name]
		text = bytes.ToValidUTF8(text, []byte("?"))
		question, _ := json.Marshal(map[string]any{"robots": string(text), "urls": urls, "agent": "Googlebot"})
		_, want := v.do("POST", "/v1/match", string(question), "Content-Type: application/json")
		form := url.Values{"source": {"text"}, "robots": {string(text)}, "agent": {"Googlebot"}}
		form.Set("urls", strings.Join(urls, "\r\n"))
		_, doc := v.page("POST", "", form.Encode())
		answers, lines := doc.all("span", "say"), doc.lines()
		for i, record := range strings.Split(strings.TrimSpace(want), "\n") {
			var r answer.Verdict
			if err := json.Unmarshal([]byte(record), &r); err != nil || i >= len(answers) || answers[i].text() != says(&r) {
				t.Fatalf("%s: %d answers, want %s", name, len(answers), record)
			}
			if r.Line == 0 {
				continue
			}
			does := map[bool]string{true: "allows", false: "refuses"}[r.Allowed]
			if line := lines[r.Line]; !strings.Contains(line.text(), does) {
				t.Errorf("%s: line %d is marked %q, want %q", name, r.Line, line.text(), does)
			}
		}
		for i, l := range strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text)), "\n") {
			line, ok := lines[i+1]
			if !ok {
				line.Node = new(html.Node)
			}
			want := strings.TrimSpace(strings.TrimPrefix(lineShown(l), `\ufeff`))
			if got := line.first("code", ""); got != want {
				t.Errorf("%s: line %d is %q, want %q", name, i+1, got, want)
			}
		}
	}
}

// lines are those of the file, by number.
func (d document) lines() map[int]document {
	lines := map[int]document{}
	for _, l := range d.all("li", "") {
		if n, err := strconv.Atoi(strings.TrimPrefix(attr(l.Node, "id"), "L")); err == nil {
			lines[n] = l
		}
	}
	return lines
}

func TestPageProblems(t *testing.T) {
	v := startServe(t, serve.UsualLimits())
	for _, c := range []struct {
		method, query, body string
		status              int
		says                string
	}{
		{"GET", "", "", 200, ""},
		{"GET", "?source=text", "", 200, ""},
		{"GET", "?site=", "", 200, ""},
		{"GET", "?site=mailto:x", "", 422, "mailto:x"},
		{"GET", "?site=/private", "", 422, "names no site"},
		{"GET", "?site=example.com&agent=a%20b", "", 400, "holds a blank"},
		{"GET", "?site=example.com&as=altavista", "", 400, "altavista"},
		{"GET", "?site=example.com&as=all", "", 400, "as is the one for the file"},
		{"GET", "?site=example.com&urls=" + strings.Repeat("/%0A", 51), "", 400, "51 URLs"},
		{"GET", "?url=example.com", "", 400, "no parameter is called"},
		{"GET", "?site=a.example&site=b.example", "", 400, "2 times"},
		{"GET", "?source=tape", "", 400, "tape"},
		{"GET", "?site=%1b[31m%E2%80%AE", "", 422, `\x1b[31m\u202e`},
		{"POST", "", "robots=%zz", 400, "invalid URL escape"},
		{"POST", "", formOf("source", "text", "robots", strings.Repeat("x", 1<<20+1)), 413, "larger than"},
		{"POST", "", formOf("source", "text", "robots", "Disallow: /", "urls", "private"), 200, "neither a URL nor a path"},
		{"POST", "", formOf("source", "text", "robots", "x", "site", "y"), 200, "no rule matches"},
	} {
		res, doc := v.page(c.method, c.query, c.body)
		answer := ""
		for n := range doc.Descendants() {
			if attr(n, "id") == "answer" {
				answer = document{n}.text()
			}
		}
		if res.StatusCode != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s %.60s: %s, %q, want %d, %q", c.method, c.query, c.body, res.Status, answer, c.status, c.says)
		}
		csp := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy is %q", c.query, csp)
		}
	}
	for _, c := range []struct {
		path, field string
		status      int
	}{
		{"/", "Host: evil.example", 421}, {"/page/page.js", "Host: evil.example", 421}, {"/page/page.js", "X: y", 200},
		{"/page/page.css", "X: y", 200}, {"/page/page.html", "X: y", 404}, {"/page/", "X: y", 404},
	} {
		if res, _ := v.do("GET", c.path, "", c.field); res.StatusCode != c.status {
			t.Errorf("%s, %s: status %d, want %d", c.path, c.field, res.StatusCode, c.status)
		}
	}
	if res, _ := v.do("POST", "/", "{}", "Content-Type: application/json"); res.StatusCode != 415 {
		t.Errorf("JSON: status %d, want 415", res.StatusCode)
	}
}

// However long a file or its lines are, the page is not, and what decides is on it.
func TestPageOfLargeFilesIsBounded(t *testing.T) {
	v := startServe(t, serve.UsualLimits())
	urls := strings.Repeat("/a\n", maxPageURLs)
	files := map[string]string{
		"one line":    "User-agent: *\nDisallow: /a" + strings.Repeat("<", 490<<10),
		"one rule":    "User-agent: *\nDisallow: /" + strings.Repeat("*", 490<<10),
		"far down":    "User-agent: *\n" + strings.Repeat("\n", 100000) + "Disallow: /a\n",
		"controls":    strings.Repeat("\x01", 500<<10),
		"half a rune": strings.Repeat("€", 170<<10),
	}
	for name, text := range files {
		form := url.Values{"source": {"text"}, "robots": {text}, "urls": {urls}}
		start := time.Now()
		res, page := v.do("POST", "/", form.Encode(), "Content-Type: application/x-www-form-urlencoded")
		took := time.Since(start)
		t.Logf("%s: %v, %d bytes of page for %d of file", name, took.Round(time.Millisecond), len(page), len(text))
		if page = page[strings.Index(page, `<div id="answer">`):]; res.StatusCode != 200 || len(page) > 12<<20 {
			t.Errorf("%s: %s, %d bytes besides the form", name, res.Status, len(page))
		}
		if took > 20*time.Second {
			t.Errorf("%s: took %v, want 20s at most", name, took)
		}
		decides := strings.Contains(page, `<span class="n">100002</span><code>Disallow: /a`) && strings.Contains(page, "80,002 more lines are left out")
		if name == "far down" && !decides {
			t.Errorf("%s: the line that decides is not there", name)
		}
	}
}

// In an outage the page tells of both: that the site cannot be read, and what decisions rest on.
func TestPageTellsOfAnOutage(t *testing.T) {
	var down atomic.Bool
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	v.do("GET", "/v1/decide?url=http://a.example", "")
	down.Store(true)
	_, doc := v.page("GET", "?site=http://a.example", "")
	for _, want := range []string{
		"Refused: robots.txt is unreachable", "503 Service Unavailable, all is refused until it can be read",
		"ask again after 10m0s", "/v1/decide goes on with the copy of ",
	} {
		if !strings.Contains(doc.text(), want) {
			t.Errorf("the page does not say %q: %s", want, doc.text())
		}
	}
}

// rowOf is the row of a crawler in the table.
func (d document) rowOf(crawler string) document {
	for _, row := range d.all("tr", "") {
		for _, b := range row.all("button", "") {
			if b.text() == crawler {
				return row
			}
		}
	}
	return document{new(html.Node)}
}

// Who asks about a crawler is answered for it: by its own group, as its engine reads the file.
func TestPageAnswersForEachCrawler(t *testing.T) {
	const file = "User-agent: *\nDisallow: /private/\n\nUser-agent: Googlebot\nDisallow: /nogoogle/\nDisallow /g\n"
	const urls = "/private/x\n/nogoogle/a\n/g"
	v := startServe(t, serve.UsualLimits())
	for _, c := range []struct{ agent, as, says string }{
		{"Googlebot", "", "Allowed: no rule matches|Refused by line 5: Disallow: /nogoogle/|Refused by line 6: Disallow: /g"},
		{"googlebot", "rfc9309", "Allowed: no rule matches|Refused by line 5: Disallow: /nogoogle/|Allowed: no rule matches"},
		{"Googlebot-Image", "", "Allowed: no rule matches|Refused by line 5: Disallow: /nogoogle/|Refused by line 6: Disallow: /g"},
		{"Applebot", "", "Allowed: no rule matches|Refused by line 5: Disallow: /nogoogle/|Allowed: no rule matches"},
		{"Bingbot", "", "Refused by line 2: Disallow: /private/|Allowed: no rule matches|Allowed: no rule matches"},
		{"", "", "Refused by line 2: Disallow: /private/|Allowed: no rule matches|Allowed: no rule matches"},
		{"ExampleBot", "google", "Refused by line 2: Disallow: /private/|Allowed: no rule matches|Allowed: no rule matches"},
	} {
		_, doc := v.page("POST", "", formOf("source", "text", "robots", file, "urls", urls, "agent", c.agent, "as", c.as))
		var got []string
		for _, a := range doc.all("span", "say") {
			got = append(got, a.text())
		}
		if text := strings.Join(got, "|"); text != c.says {
			t.Errorf("%s as %q: %s, want %s", c.agent, c.as, text, c.says)
		}
		for crawler, want := range map[string]string{
			"Googlebot": "allowed|refused, line 5|refused, line 6", "Googlebot-News": "allowed|refused, line 5|refused, line 6",
			"Bingbot": "refused, line 2|allowed|allowed", "GPTBot": "refused, line 2|allowed|allowed",
		} {
			if c.as != "" && strings.EqualFold(crawler, c.agent) {
				continue // it is read otherwise
			}
			var cells []string
			for _, cell := range doc.rowOf(crawler).all("td", "") {
				cells = append(cells, strings.TrimSpace(strings.TrimLeft(cell.text(), "✓✕")))
			}
			if text := strings.Join(cells, "|"); text != want {
				t.Errorf("%s as %q: the row of %s is %q, want %q", c.agent, c.as, crawler, text, want)
			}
		}
	}
}

// Another site may lead here, but not have the service work.
func TestPageIsNotStartedByAnotherSite(t *testing.T) {
	var asked atomic.Int64
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	for site, want := range map[string]int64{"cross-site": 0, "same-site": 0, "none": 1, "same-origin": 1} {
		asked.Store(0)
		at := "http://" + site + ".example"
		res, text := v.do("GET", "/?site="+at, "", "Sec-Fetch-Site: "+site)
		if led := strings.Contains(text, "led here"); res.StatusCode != 200 || led != (want == 0) || asked.Load() != want {
			t.Errorf("%s: got %s, %d questions, want %d: %.500s", site, res.Status, asked.Load(), want, text)
		}
		if !strings.Contains(text, `value="`+at+`"`) {
			t.Errorf("%s: the question is not in the form", site)
		}
	}
}

// What the page says beside its verdicts.
func TestPageHelps(t *testing.T) {
	const file = "User-agent: *\r\nDisallow /tmp\r\nDisallow: /private/\r\nUser-agent: Googlebot-Video\r\nDisalow: /x\r\n"
	public := startServe(t, serve.UsualLimits())
	res, doc := public.page("GET", "?site=http://127.0.0.1:1/", "")
	if text := doc.text(); res.StatusCode != 422 || !strings.Contains(text, "--private") || strings.Contains(text, "Refused") {
		t.Errorf("a private address: got %s, %q, want 422 and --private", res.Status, text)
	}
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(file))
	}))
	_, doc = v.page("GET", "?site=http://a.example/private/x&agent=Googlebot", "")
	heading := doc.all("h3", "")
	if len(heading) != 1 || !strings.Contains(heading[0].text(), "http://a.example/private/x Refused by line 3") {
		t.Errorf("the heading names no URL: %q", doc.text())
	}
	if text := doc.text(); !strings.Contains(text, "for the standard (RFC 9309), Yandex, Bing") {
		t.Errorf("an error of some dialects does not name them: %q", text)
	}
	for _, d := range doc.all("div", "finding") {
		if folded := len(d.all("details", "")) > 0; folded != strings.Contains(attr(d.Node, "class"), "info") {
			t.Errorf("folded %v, want remarks alone: %q", folded, d.text())
		}
	}
	for _, question := range []string{
		formOf("site", "http://a.example", "edit", "1", "urls", "/tmp/x"), formOf("site", "http://a.example/tmp/x", "edit", "1"),
	} {
		_, doc = v.page("POST", "", question)
		var form []string
		for _, area := range doc.all("textarea", "") {
			form = append(form, strings.TrimSpace(area.text()))
		}
		if want := strings.TrimSpace(strings.ReplaceAll(file, "\r\n", "\n")); len(form) != 2 || form[0] != want || form[1] != "/tmp/x" {
			t.Errorf("%s: the form has %q, want %q and /tmp/x", question, form, want)
		}
	}
	v = startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.Write([]byte("DISALLOW: /long\n"))
	}))
	if _, doc = v.page("GET", "?site=http://broken.example", ""); strings.Contains(doc.text(), "the file is empty") {
		t.Errorf("a file that could not be read is an empty one: %q", doc.text())
	}
}
