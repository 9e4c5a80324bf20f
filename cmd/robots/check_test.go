package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// wideSite has four hosts with one file, and four of which one redirects, one has another file, and one no certificate.
func wideSite(w http.ResponseWriter, r *http.Request) {
	switch scheme := map[bool]string{false: "http", true: "https"}[r.TLS != nil]; scheme + "://" + r.Host {
	case "http://a.example.com":
		http.Redirect(w, r, "https://a.example.com/robots.txt", http.StatusMovedPermanently)
	case "https://a.example.com", "http://example.com", "http://www.example.com", "https://example.com", "https://www.example.com":
		io.WriteString(w, "User-agent: *\nDisallow: /private\n\nUser-agent: GPTBot\nDisallow: /\n\nUser-agent: Googlebot\nAllow: /private/x\n")
	case "http://www.a.example.com":
		io.WriteString(w, "User-agent: *\nDisallow: /\n")
	}
}

func TestCheckAsksMoreThanWasTyped(t *testing.T) {
	sites := bothSites(t, wideSite)
	for _, c := range []struct {
		name, args string
		status     int
		want       []string // lines in this order, others between
	}{
		{"hosts", "--hosts a.example.com/private", 2, []string{
			"refused  http://a.example.com/private", "  because        line 2: Disallow: /private", "  via            https://a.example.com/robots.txt",
			"refused  http://www.a.example.com/private", "  because        line 2: Disallow: /",
			"refused  https://a.example.com/private", "  because        line 2: Disallow: /private",
			"refused  https://www.a.example.com/private", "  because        robots.txt is unreachable: tls: failed to verify certificate: x509: certificate is valid for example.com, *.example.com, not www.a.example.com"}},
		{"hosts that are alike", "--hosts http://WWW.example.com/", 0, []string{
			"allowed  http://example.com/", "allowed  http://www.example.com/", "allowed  https://example.com/",
			"allowed  https://www.example.com/"}},
		{"crawlers", "--crawlers http://example.com/private/x", 1, []string{
			"http://example.com/private/x", "  search  Googlebot          allowed  line 8: Allow: /private/x",
			"  search  Googlebot-Image    allowed  line 8: Allow: /private/x", "  search  Bingbot            refused  line 2: Disallow: /private",
			"  search  Applebot           allowed  line 8: Allow: /private/x", "  ai      GPTBot             refused  line 5: Disallow: /",
			"          *                  refused  line 2: Disallow: /private",
			"http://example.com/", "  search  Bingbot            allowed  no rule matches", "  ai      GPTBot             refused  line 5: Disallow: /"}},
		{"crawlers of the whole site", "--crawlers http://example.com --explain", 1, []string{
			"http://example.com", "  ai      GPTBot             refused  line 5: Disallow: /", "  >      5  Disallow: /"}},
		{"crawlers at all hosts", "--crawlers --hosts example.com/private/x", 1, []string{
			"http://example.com/private/x", "http://www.example.com/private/x", "https://example.com/private/x",
			"https://www.example.com/private/x", "  ai      GPTBot             refused  line 5: Disallow: /"}},
		{"an engine whose rules are another's", "--crawlers -A Googlebot/2.1 http://example.com/private", 1, []string{
			"          *                  refused  line 2: Disallow: /private"}},
		{"a port", "--hosts http://a.example.com:8080/", 64, nil},
		{"an address", "--hosts http://127.0.0.1/", 64, nil},
		{"no www", "--hosts localhost", 64, nil},
		{"one crawler", "--crawlers --agent GPTBot a.example.com", 64, nil},
		{"one dialect", "--crawlers --as google a.example.com", 64, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			args := append([]string{"check"}, append(strings.Fields(c.args), sites...)...)
			status := run(t.Context(), args, shell.Streams{Out: &out, Err: t.Output()})
			rest, ok := "\n"+out.String(), true
			for _, line := range c.want {
				if _, rest, ok = strings.Cut(rest, "\n"+line+"\n"); !ok {
					t.Errorf("it lacks %q, in this order", line)
				}
				rest = "\n" + rest
			}
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if t.Failed() {
				t.Logf("%s", &out)
			}
		})
	}
}

// The file that all have is told by its digest; where there is none, there is no digest.
func TestCheckComparesFiles(t *testing.T) {
	sites := bothSites(t, wideSite)
	for host, want := range map[string]string{"a.example.com": "A B A -", "example.com": "A A A A", "www.example.com/x": "A A A A"} {
		text := stdoutOf(t, "", append([]string{"check", "--hosts", "--json", host}, sites...)...)
		checkSchema(t, "decision", 4, text)
		letters, got := map[string]string{"": "-"}, []string{}
		for line := range strings.Lines(string(text)) {
			_, after, _ := strings.Cut(line, `"sha256":"`)
			sum, _, _ := strings.Cut(after, `"`)
			if letters[sum] == "" {
				letters[sum] = string(rune('A' + len(letters) - 1))
			}
			got = append(got, letters[sum])
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// No site answers before all of them have been asked: one after the other would never end.
// The answers come in the order of the URLs all the same.
func TestCheckAsksSitesAtTheSameTime(t *testing.T) {
	var arrived sync.WaitGroup
	arrived.Add(3)
	to := siteServer(t, func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait()
	})
	args := []string{"check", to, "--timeout=10s",
		"http://c.example/1", "http://a.example/2", "http://b.example/3", "http://a.example/4"}
	var out bytes.Buffer
	if status := run(t.Context(), args, shell.Streams{Out: &out, Err: t.Output()}); status != shell.ExitOK {
		t.Errorf("status %d, want %d", status, shell.ExitOK)
	}
	var got []string
	for l := range strings.Lines(out.String()) {
		if url, is := strings.CutPrefix(l, "allowed  "); is {
			got = append(got, strings.TrimSpace(url))
		}
	}
	if want := strings.Join(args[3:], " "); strings.Join(got, " ") != want {
		t.Errorf("answers about %v, want %s", got, want)
	}
}

// A site is asked once, although what it says may not be kept and its URLs are further apart than check looks ahead.
func TestCheckAsksASiteOnce(t *testing.T) {
	var asked atomic.Int64
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "a.example" {
			asked.Add(1)
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotFound)
	})
	args := []string{"check", to, "--json", "http://a.example/1"}
	for i := range 2 * maxAsked {
		args = append(args, fmt.Sprintf("http://site%d.example/", i))
	}
	var out bytes.Buffer
	run(t.Context(), append(args, "http://a.example/2"), shell.Streams{Out: &out, Err: t.Output()})
	if once, lines := asked.Load(), bytes.Count(out.Bytes(), []byte("\n")); once != 1 || lines != 2*maxAsked+2 {
		t.Errorf("asked %d times, want once; %d answers, want %d", once, lines, 2*maxAsked+2)
	}
}
