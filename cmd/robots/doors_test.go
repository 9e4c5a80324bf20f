package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// doorFiles are read otherwise by each dialect, and have groups for some of a family.
var doorFiles = map[string]string{
	"all":    "User-agent: *\nDisallow: /private\nDisallow /tmp\nAllow: /private/x$\n",
	"google": "User-agent: *\nDisallow: /\nUser-agent: Googlebot\nDisallow: /private\nDisallow /tmp\n\nUser-agent: MyBot\nAllow: /\n",
	"many": "User-agent: googlebot-news\nDisallow: /news\nUser-agent: Googlebot\nCrawl-delay: 3\nDisallow: /private\n" +
		"User-agent: msnbot\nDisallow: /tmp\nUser-agent: Yandex\nDisallow: /private\n\nAllow: /private/x\n" +
		"User-agent: MyBot\nCrawl-delay: 0.5\nDisallow: /my\nUser-agent: *\nDisallow: /*?\n",
	"none": "",
}

// doorAgents are who is asked about, with the token and dialect that it comes to.
var doorAgents = []struct{ asked, is, dialect string }{
	{"*", "*", "rfc9309"}, {"MyBot", "MyBot", "rfc9309"}, {"MyBot/2.0 (+https://my.example/)", "MyBot", "rfc9309"},
	{"Other/1.0", "Other", "rfc9309"}, {"Googlebot", "Googlebot", "google"}, {"googlebot/2.1", "googlebot", "google"},
	{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot", "google"},
	{"Googlebot-Image", "Googlebot-Image", "google"}, {"Googlebot-News", "Googlebot-News", "google"},
	{"Googlebot-Video/1.0", "Googlebot-Video", "google"}, {"Storebot-Google", "Storebot-Google", "google"},
	{"Googlebot-Image,Googlebot", "Googlebot-Image, Googlebot", "google"}, {"Other, MyBot", "Other, MyBot", "rfc9309"},
	{"Other,Another", "Other, Another", "rfc9309"}, {"Applebot", "Applebot", "rfc9309"}, {"bingbot", "bingbot", "bing"},
	{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "bingbot", "bing"},
	{"YandexBot", "YandexBot", "yandex"}, {"YandexImages/3.0", "YandexImages", "yandex"}, {"GPTBot", "GPTBot", "rfc9309"},
}

var doorPaths = []string{
	"/", "/a", "/private", "/private/x", "/private/x/y", "/tmp", "/tmp/a", "/news", "/news/1?a", "/my", "/my/a?b", "/?q",
	"/x?private", "/privat", "/%70rivate", "/private%2Fx", "/PRIVATE", "/robots.txt", "/a;b", "/a//b", "/new%73", "/my%3F", "/~x",
	"/*", "/$",
}

// said is what all doors have to agree on.
func said(v answer.Verdict) string {
	return fmt.Sprintln(v.Allowed, v.Line, v.Agent, v.Dialect, v.DialectBy, v.Fallback)
}

func saidBy(t *testing.T, text []byte) (all []string) {
	t.Helper()
	for _, v := range verdicts(t, text) {
		all = append(all, said(v))
	}
	return all
}

// Each of 2,000 questions, a tenth of them in the first tier, has one answer, at whichever door.
func TestOneQuestionHasOneAnswer(t *testing.T) {
	site := func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ".")
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, doorFiles[host])
		}
	}
	to, paths := siteServer(t, site), doorPaths
	if !tier.AtGate() {
		paths = []string{"/private/x", "/tmp/a", "/news/1?a"}
	}
	v := startServe(t, serve.UsualLimits(), "--private", to)
	proxy := startProxy(t, "--private", "--agent-from-client", to)
	for host, file := range doorFiles {
		name := written(t, file)
		var urls []string
		for _, p := range paths {
			urls = append(urls, "http://"+host+".example"+p)
		}
		list := strings.Join(urls, "\n")
		for _, a := range doorAgents {
			agent, field := "--agent="+a.asked, "--user-agent="+a.asked
			want := saidBy(t, stdoutOf(t, "", slices.Concat([]string{"check", "--json", agent, to}, urls)...))
			doors := map[string][]string{
				"match":  saidBy(t, stdoutOf(t, list, "match", "--json", agent, "--robots="+name)),
				"filter": saidBy(t, listFiltered(t, list, agent, to)),
			}
			if !strings.Contains(a.is, ",") { // no crawler sends a list
				doors["check, by --user-agent"] = saidBy(t, stdoutOf(t, "", slices.Concat([]string{"check", "--json", field, to}, urls)...))
				doors["filter, by --user-agent"] = saidBy(t, listFiltered(t, list, field, to))
			}
			query := url.Values{"agent": {a.asked}}
			for _, u := range urls {
				query.Set("url", u)
				_, text := v.do("GET", "/v1/decide?"+query.Encode(), "")
				doors["/v1/decide"] = append(doors["/v1/decide"], saidBy(t, []byte(text))...)
			}
			query.Del("url")
			_, text := v.do("POST", "/v1/decide?"+query.Encode(), list, "Content-Type: text/plain")
			doors["a stream"] = saidBy(t, []byte(text))
			question, _ := json.Marshal(map[string]any{"robots": file, "urls": urls, "agent": a.asked})
			_, text = v.do("POST", "/v1/match", string(question), "Content-Type: application/json")
			doors["/v1/match"] = saidBy(t, []byte(text))
			var records bytes.Buffer
			for _, u := range urls {
				json.NewEncoder(&records).Encode(map[string]any{"robots": file, "url": u, "agent": a.asked})
			}
			doors["match --jsonl"] = saidBy(t, stdoutOf(t, records.String(), "match", "--jsonl"))
			for door, got := range doors {
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s at %s: got\n%q, want\n%q", a.asked, door, host, got, want)
				}
			}
			if is := fmt.Sprintf(" %s %s ", a.is, a.dialect); !strings.Contains(want[0], is) {
				t.Errorf("%s: %s, want%s", a.asked, want[0], is)
			}
			doorsForPeople(t, v, proxy, to, a.asked, urls, want)
		}
	}
}

// listFiltered is all that filter --json writes, in the order of the lines.
func listFiltered(t *testing.T, list string, args ...string) []byte {
	refused := filepath.Join(t.TempDir(), "refused")
	text := stdoutOf(t, list, append([]string{"filter", "--json", "--refused=" + refused}, args...)...)
	lines := slices.Collect(bytes.Lines(append(text, read(t, refused)...)))
	number := func(line []byte) int {
		var v answer.Verdict
		json.Unmarshal(line, &v)
		return v.Number
	}
	slices.SortFunc(lines, func(a, b []byte) int { return cmp.Compare(number(a), number(b)) })
	return bytes.Join(lines, nil)
}

// doorsForPeople are those that say less: the proxy, whose client gives its User-Agent, the page, and the two
// subcommands about one page.
func doorsForPeople(t *testing.T, v *serving, proxy *relay, to, agent string, urls, want []string) {
	t.Helper()
	field := "User-Agent: " + agent
	for i, u := range urls {
		allowed := strings.HasPrefix(want[i], "true")
		if res, _ := proxy.do("GET", u, field); !strings.Contains(agent, ",") && (res.StatusCode == 200) != allowed {
			t.Errorf("%s of %s through the proxy: %s, want %s", agent, u, res.Status, want[i])
		}
	}
	u, _ := url.Parse(urls[0])
	_, doc := v.page("GET", "?"+url.Values{"site": {u.Scheme + "://" + u.Host}, "agent": {agent}, "urls": {strings.Join(urls, "\n")}}.Encode(), "")
	var page []string
	for _, mark := range doc.all("tr", "mine")[0].all("td", "") {
		page = append(page, attr(mark.Node, "class"))
	}
	for i := range page {
		if (page[i] == "yes") != strings.HasPrefix(want[i], "true") {
			t.Errorf("%s of %s: the page says %q, want %s", agent, urls[i], page[i], want[i])
		}
	}
	for _, command := range []string{"page", "usage"} {
		var v answer.Verdict
		json.Unmarshal(stdoutOf(t, "", command, "--json", "--agent="+agent, to, urls[0]), &v)
		if got := said(v); got != want[0] {
			t.Errorf("%s of %s: %s says %s, want %s", agent, urls[0], command, got, want[0])
		}
	}
}
