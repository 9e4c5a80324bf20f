package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func crawled(t *testing.T, hosts ...site.Host) (string, *site.Web) {
	t.Helper()
	web := site.Serve(hosts...)
	t.Cleanup(web.Close)
	var out bytes.Buffer
	if err := crawl(t.Context(), &out, io.Discard, web, "http://"+hosts[0].Name+"/"); err != nil {
		t.Fatal(err)
	}
	return out.String(), web
}

func TestTheCrawlerShowsEveryKindOfAnswer(t *testing.T) {
	tier.Gate(t)
	out, web := crawled(t, hosts()...)
	for _, want := range []string{
		"http://rules.example/private/ ",
		"disallowed by line 5: Disallow: /private/",
		"allowed by line 6: Allow: /private/notice$",
		"robots.txt is unavailable",
		"robots.txt is unreachable (500, asked 3 times); again in ",
		"http://müller.example/geheim/1",
		"200, moved to cdn.example\n",
		" s apart, noindex\n",
		"8 sites in ",
		" s: 13 pages sent, 7 refused, 0 failed\n",
		"refused: 6 by a rule, 1 because robots.txt is unreachable\n",
		"robots.txt: read for 7 sites, with 11 requests\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not show %q:\n%s", want, out)
		}
	}
	for _, n := range web.Counts() {
		want := map[string]int{"down.example": 3, "recovers.example": 2}[n.Host]
		if want == 0 {
			want = 1
		}
		if n.Robots != want {
			t.Errorf("%s: robots.txt was fetched %d times, want %d", n.Host, n.Robots, want)
		}
		if n.Shows == "" || !strings.Contains(out, n.Shows) {
			t.Errorf("%s: the output does not say what it shows (%q)", n.Host, n.Shows)
		}
	}
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
}

func TestTheDistanceThatIsShownIsKept(t *testing.T) {
	tier.Gate(t)
	out, _ := crawled(t, hosts()...)
	for host, least := range map[string]float64{"slow": 0.3, "rules": 0.1, "missing": 0.02} {
		shown := regexp.MustCompile(`http://`+host+`\.example/\S* +\d+, (\S+) s apart`).FindAllStringSubmatch(out, -1)
		if len(shown) < 2 {
			t.Errorf("%s: %d distances are shown:\n%s", host, len(shown), out)
		}
		for _, s := range shown {
			if d, err := strconv.ParseFloat(s[1], 64); err != nil || d < least {
				t.Errorf("%s, want %v s at least: %q", host, least, s[0])
			}
		}
	}
}

func TestWhatFailedWasNotRefused(t *testing.T) {
	out, _ := crawled(t, site.Host{
		Name:  "a.example",
		Other: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	})
	if want := "0 pages sent, 0 refused, 1 failed\n"; !strings.Contains(out, want) {
		t.Errorf("want %q:\n%s", want, out)
	}
}

func TestAPageWithoutEndIsReadToAMegabyte(t *testing.T) {
	out, web := crawled(t, site.Host{
		Name:  "a.example",
		Pages: map[string]string{"/": site.Links("/near") + strings.Repeat(" ", 1<<20) + site.Links("/far")},
	})
	if !strings.Contains(out, "http://a.example/near") || strings.Contains(out, "http://a.example/far") {
		t.Errorf("want the link before the first megabyte, and not the one behind it:\n%s", out)
	}
	if n := web.Counts()[0]; n.Pages != 2 {
		t.Errorf("%d pages were asked for, want 2", n.Pages)
	}
}

// The slow site came first. The frontier gives out the other, and then nothing until the
// turn of the slow one.
func TestTheFrontierDoesNotWaitForASlowSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := &url.URL{Host: "slow.example"}, &url.URL{Host: "quick.example"}
		start := time.Now()
		f := newFrontier(slow)
		f.free[slow.Host] = start.Add(time.Minute)
		f.queue = append(f.queue, quick)
		for _, want := range []struct {
			u     *url.URL
			after time.Duration
		}{{quick, 0}, {slow, time.Minute}} {
			u, ok := f.next(t.Context())
			if !ok || u != want.u || time.Since(start) != want.after {
				t.Errorf("got %v, %t after %v, want %v after %v", u, ok, time.Since(start), want.u, want.after)
			}
		}
		f.done(nil)
		f.done(nil)
		if u, ok := f.next(t.Context()); ok {
			t.Errorf("got %v, want the end", u)
		}
	})
}

// A site may ask for a day of rest. The crawl ends when its time is over.
func TestTheFrontierEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := newFrontier(&url.URL{Host: "slow.example"})
		f.free["slow.example"] = start.Add(24 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if u, ok := f.next(ctx); ok || time.Since(start) != time.Minute {
			t.Errorf("got %v, %t after %v, want none after a minute", u, ok, time.Since(start))
		}
	})
}

// A browser finds each site under its name and a suffix, and stays there.
func TestServeShowsTheWebToABrowser(t *testing.T) {
	web := site.Serve(hosts()...)
	defer web.Close()
	h := inBrowser(web, ".localhost:80")
	for _, tt := range []struct{ url, location, body string }{
		{"http://localhost:80/", "", `<a href="http://down.example.localhost:80/robots.txt">`},
		{"http://rules.example.localhost:80/robots.txt", "", "Disallow: /private/\n"},
		{"http://rules.example.localhost:80/", "", `<a href="http://slow.example.localhost:80/">`},
		{"http://rules.example.localhost:80/", "", `<a href="http://xn--mller-kva.example.localhost:80/">`},
		{"http://moved.example.localhost:80/robots.txt", "http://cdn.example.localhost:80/moved/robots.txt", ""},
	} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, tt.url, nil))
		if got := answer.Header().Get("Location"); got != tt.location {
			t.Errorf("%s: Location is %q, want %q", tt.url, got, tt.location)
		}
		if got := answer.Body.String(); !strings.Contains(got, tt.body) {
			t.Errorf("%s: want %s:\n%s", tt.url, tt.body, got)
		}
	}
}
