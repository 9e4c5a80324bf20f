package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// adviceSite has rules, is down, or gives advice of its own.
func adviceSite(w http.ResponseWriter, r *http.Request) {
	switch name, _, _ := strings.Cut(r.Host, "."); {
	case r.URL.Path == "/robots.txt" && name == "down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/robots.txt":
		io.WriteString(w, "User-agent: *\nDisallow: /private\nContent-Usage: /essays train-ai=n\n")
	default:
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}
}

// With --advise the site is asked whatever robots.txt says, once, and the answer tells what would have refused. Without it
// nothing is sent, as ever.
func TestProxyAdvises(t *testing.T) {
	flags, pool := testCA(t)
	sites := append(bothSites(t, adviceSite), "--private", "--uses=train-ai")
	advises, watch := watchProxy(t, append(append(flags, sites...), "--advise", "--timeout=2s")...)
	refuses := startProxy(t, append(append(flags, sites...), "--timeout=2s")...)
	for _, c := range []struct {
		method, target, body string
		status               int    // without --advise
		advice               string // what it begins with; empty: there is none
	}{
		{"GET", "http://a.example.com/", "", 200, ""},
		{"GET", "http://a.example.com/private", "", 403, `"robots.txt, line 2: Disallow: /private"`},
		{"GET", "https://a.example.com/private/x", "", 403, `"robots.txt, line 2: Disallow: /private"`},
		{"POST", "http://a.example.com/private", strings.Repeat("x", 100_000), 403, `"robots.txt, line 2: Disallow: /private"`},
		{"POST", "https://a.example.com/private", "body", 403, `"robots.txt, line 2: Disallow: /private"`},
		{"GET", "http://a.example.com/essays", "", 403, `"train-ai is disallowed by robots.txt line 3, Content-Usage: \"/essays train-ai=n\""`},
		{"GET", "http://down.example.com/", "", 503, `"robots.txt is unreachable: `},
	} {
		for proxy, v := range map[string]*relay{"advises": advises, "refuses": refuses} {
			res, text := talk(t, v.client(pool), c.method, c.target, c.body)
			path := c.target[strings.Index(c.target, ".com")+len(".com"):]
			passed := text == c.method+" "+path+" "+c.body
			advice := res.Header.Get("Robotsgate-Advice")
			switch {
			case proxy == "refuses" && (res.StatusCode != c.status || passed != (c.status == 200) || advice != ""):
				t.Errorf("%s %s without --advise: got %s, advice %s, want %d and none: %.100q", c.method, c.target, res.Status, advice, c.status, text)
			case proxy == "advises" && (res.StatusCode != 200 || !passed || !strings.HasPrefix(advice, c.advice) || (advice == "") != (c.advice == "")):
				t.Errorf("%s %s: got %s, advice %s, want 200, %s: %.100q", c.method, c.target, res.Status, advice, c.advice, text)
			case proxy == "advises" && res.Header.Get("Proxy-Status") != "":
				t.Errorf("%s: it looks refused: %s", c.target, res.Header.Get("Proxy-Status"))
			}
		}
	}
	got := series(t, watch, "robots_proxy_answers_total")
	if got[`{kind="passed"}`] != 7 || got[`{kind="advised"}`] != 6 || got[`{kind="rule"}`] != 0 {
		t.Errorf("got %v, want 7 passed, 6 of them advised, and no rule", got)
	}
	for _, want := range []string{`level=WARN msg="--advise: what robots.txt forbids is sent"`,
		`level=INFO msg="would be refused" method=GET url=http://a.example.com/private because="robots.txt, line 2: Disallow: /private"`} {
		if log := advises.log.String(); !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

// What is no refusal by robots.txt stays one.
func TestProxyAdvisesAboutRobotsTxtAlone(t *testing.T) {
	sites := bothSites(t, adviceSite)
	open := startProxy(t, append(sites, "--advise", "--private", "--timeout=2s")...)
	public := startProxy(t, append(sites, "--advise", "--timeout=2s")...)
	for _, c := range []struct {
		proxy  *relay
		target string
		status int
	}{
		{open, "http://a.example.com:22/", 400}, {public, "http://a.example.com/", 403}, {public, "http://a.example.com/private", 403},
	} {
		if res, text := c.proxy.do("GET", c.target); res.StatusCode != c.status || res.Header.Get("Robotsgate-Advice") != "" {
			t.Errorf("%s: %s, want %d: %s", c.target, res.Status, c.status, text)
		}
	}
	if _, status, said := open.connectTo("a.example.com:443", ""); status != 403 {
		t.Errorf("a tunnel without a CA: %d %s, want 403", status, said)
	}
}

// What would be refused takes turns as well.
func TestProxyAdvisesAtAPace(t *testing.T) {
	tier.Gate(t)
	var mu sync.Mutex // guards at
	var at []time.Time
	v := startProxy(t, "--private", "--pace", "--advise", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if at = append(at, time.Now()); r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /\n")
		}
	}))
	v.do("GET", "http://s.example/a")
	v.do("GET", "http://s.example/b")
	if len(at) != 3 || at[2].Sub(at[1]) < 900*time.Millisecond {
		t.Errorf("requests at %v, want three, a second apart", at)
	}
}
