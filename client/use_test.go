package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

const preferences = `User-agent: *
Disallow: /private
Content-Usage: search=y
Content-Usage: /essays/ train-ai=n, search=y
Content-Signal: ai-input=no

User-agent: TwoBot
Allow: /

User-agent: ThreeBot
Allow: /
Content-Signal: ai-input=yes
`

func TestADisallowedUseIsNotSent(t *testing.T) {
	for _, row := range []struct {
		uses  []string
		token string
		path  string
		want  string // the end of the error, or empty if the request is sent
	}{
		{nil, "ExampleBot", "/essays/1", ""},
		{[]string{}, "ExampleBot", "/essays/1", ""},
		{[]string{"search"}, "ExampleBot", "/essays/1", ""},
		{[]string{"train-ai"}, "ExampleBot", "/news", ""},
		{[]string{"train-ai"}, "ExampleBot", "/essays/1", `robots.txt line 4, Content-Usage: "/essays/ train-ai=n, search=y", disallows the use "train-ai" for "ExampleBot"`},
		{[]string{"search", "train-ai"}, "ExampleBot", "/essays/1", `the use "train-ai" for "ExampleBot"`},
		{[]string{"ai-use"}, "ExampleBot", "/news", `robots.txt line 5, Content-Signal: "ai-input=no", disallows the use "ai-use" for "ExampleBot"`},
		{[]string{"ai-use"}, "TwoBot", "/news", `robots.txt line 5 (the group for *), Content-Signal: "ai-input=no", disallows the use "ai-use" for "TwoBot"`},
		{[]string{"ai-use"}, "ThreeBot", "/news", ""},
		{[]string{"train-ai"}, "TwoBot", "/essays/1", ""},
		{[]string{"ai-use"}, "ExampleBot", "/robots.txt", ""},
	} {
		var traced client.Answer
		var failure error
		base := &web{robots: preferences}
		rt := &client.Transport{Base: base, Token: row.token, Uses: row.uses,
			Trace: &client.Trace{Decided: func(_ context.Context, _ *url.URL, a client.Answer, _ time.Duration, err error) {
				traced, failure = a, err
			}}}
		u := parse("http://a.example" + row.path)
		body := &closeCount{Reader: strings.NewReader("body")}
		req := &http.Request{Method: "POST", URL: u, Body: body}
		resp, err := rt.RoundTrip(req)
		asked, failed := rt.Decide(t.Context(), u)
		for _, uses := range [][]string{nil, {"search"}, {"train-ai", "ai-use"}} { // WithUses replaces them all
			ctx := client.WithToken(client.WithUses(t.Context(), row.uses...), row.token)
			other := &client.Transport{Base: &web{robots: preferences}, Uses: uses}
			a, err2 := other.Decide(ctx, u)
			if err2 != nil || a.Decision != asked.Decision || a.Use != asked.Use {
				t.Errorf("%s with %q by context: got %+v, %v, want %+v", row.path, row.uses, a, err2, asked)
			}
			if _, err2 := other.RoundTrip(req.WithContext(ctx)); (err2 == nil) != (err == nil) {
				t.Errorf("%s with %q by context: got %v, want %v", row.path, row.uses, err2, err)
			}
		}
		with, err2 := client.DecideWith(policy.Parse([]byte(preferences)), row.token, u, row.uses...)
		if failed != nil || err2 != nil || with.Decision != asked.Decision || with.Use != asked.Use || with.Token != asked.Token {
			t.Errorf("%s: got %+v, %v by DecideWith, want what Decide says: %+v, %v", row.path, with, err2, asked, failed)
		}
		if row.want == "" {
			if err != nil || !asked.Allowed || failure != nil || !traced.Allowed {
				t.Errorf("%q of %s for %s: got %v, %v and %v, want it sent", row.uses, row.path, row.token, err, asked, traced)
			}
			continue
		}
		refusal, ok := err.(*client.DisallowedError)
		if !ok || resp != nil || !strings.HasSuffix(err.Error(), row.want) || len(base.pages) > 0 || body.closed == 0 {
			t.Errorf("%q of %s for %s: got %v, %d pages sent, body closed %d times, want %s",
				row.uses, row.path, row.token, err, len(base.pages), body.closed, row.want)
			continue
		}
		if refusal.URL != u || !strings.HasPrefix(refusal.By, "robots.txt line ") || refusal.Token != row.token ||
			refusal.Allowed || refusal.Reason != policy.ReasonUse || refusal.Received.IsZero() || !errors.Is(err, client.ErrNotSent) {
			t.Errorf("%s: got %+v, want ErrNotSent of %s for %s, with its line, use and time", row.path, refusal, u, row.token)
		}
		for who, a := range map[string]client.Answer{"Decide": asked, "DecideWith": with, "Trace": traced} {
			if a.Allowed || a.Reason != policy.ReasonUse || a.Use != refusal.Use || a.By != refusal.By {
				t.Errorf("%s of %s: got %+v, want %v", who, row.path, a, err)
			}
		}
	}
}

// Where the rules refuse, or could not be read, the answer is theirs. A person's request declares no use.
func TestUsesComeAfterTheRules(t *testing.T) {
	rt := &client.Transport{Base: &web{robots: preferences}, Token: "ExampleBot", Uses: []string{"ai-use"}}
	a, err := rt.Decide(t.Context(), parse("http://a.example/private"))
	if err != nil || a.Allowed || a.Reason != policy.ReasonRule {
		t.Errorf("got %v, %v, want the rule's refusal", a, err)
	}
	req := (&http.Request{URL: parse("http://a.example/news")}).WithContext(client.WithoutRobots(t.Context()))
	if _, err := rt.RoundTrip(req); err != nil {
		t.Errorf("WithoutRobots: got %v, want it sent", err)
	}
	down := &client.Transport{Uses: []string{"ai-use"}, Base: roundtrip.Func(func(*http.Request) (*http.Response, error) {
		return answer(503, "", ""), nil
	})}
	synctest.Test(t, func(t *testing.T) {
		a, err = down.Decide(t.Context(), &url.URL{Scheme: "http", Host: "b.example"})
		if err != nil || a.Allowed || a.Reason != policy.ReasonUnreachable {
			t.Errorf("got %v, %v, want unreachable", a, err)
		}
	})
}

// A request that waited for its turn is held to the preferences of that time.
func TestAUseThatIsDisallowedMeanwhileIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, sent := 0, 0
		rt := &client.Transport{
			Base: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				if req.URL.Path != "/robots.txt" {
					sent++
					return ok(req)
				}
				if reads++; reads == 1 {
					return answer(200, "", "User-agent: *\nAllow: /\n"), nil
				}
				return answer(200, "", "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\n"), nil
			}),
			Pacer: &client.Pacer{Delay: 90 * time.Second}, Uses: []string{"train-ai"},
			Cache: &cache.Cache{MinTTL: -1, MaxTTL: 5 * time.Second},
		}
		defer rt.Cache.Close()
		// The turn comes a delay after robots.txt was read, when that has expired, and is older than a minute.
		_, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/page")})
		refusal, _ := err.(*client.DisallowedError)
		if refusal == nil || refusal.Reason != policy.ReasonUse || sent != 0 || reads != 2 {
			t.Errorf("got %v with %d pages sent and robots.txt read %d times, want a refusal for the use, 0 and 2", err, sent, reads)
		}
	})
}

// P-36, P-37, P-43: of redirects, errors and a 304 there are no rules; of what is not the whole
// page those of the header; nothing that is read is changed.
func TestWatchReadsFinalPagesOnly(t *testing.T) {
	const text = `<meta name="robots" content="nofollow"><meta name="tdm-reservation" content="1">`
	for _, row := range []struct {
		name             string
		method           string
		status           int
		contentType      string
		coding           string
		want             string
		wrapped, partial bool
	}{
		{"a page", "GET", 200, "text/html", "", "noindex, nofollow", true, false},
		{"without a type", "GET", 203, "", "identity", "noindex, nofollow", true, false},
		{"no HTML", "GET", 200, "application/pdf", "", "noindex", true, false},
		{"gzipped", "GET", 200, "text/html", "gzip", "noindex", false, true},
		{"gzipped, in a second line", "GET", 200, "text/html", "identity|gzip", "noindex", false, true},
		{"another protocol", "GET", 101, "text/html", "", "all", false, false},
		{"a redirect", "GET", 301, "text/html", "", "all", false, false},
		{"not modified", "GET", 304, "text/html", "", "all", false, false},
		{"an error", "GET", 404, "text/html", "", "all", false, false},
		{"a failure", "GET", 503, "text/html", "", "all", false, false},
		{"a part of a page", "GET", 206, "text/html", "", "noindex", false, true},
		{"a part of no page", "GET", 206, "video/mp4", "", "noindex", false, false},
		{"no body", "HEAD", 200, "text/html", "", "noindex", false, true},
		{"an answer to a form", "POST", 201, "Text/HTML;charset=utf-8", "", "noindex, nofollow", true, false},
	} {
		body := io.NopCloser(strings.NewReader(text))
		resp := &http.Response{
			StatusCode: row.status, Body: body, Header: http.Header{"X-Robots-Tag": {"noindex", "otherbot: none"}},
			Request: &http.Request{Method: row.method},
		}
		if row.contentType != "" {
			resp.Header.Set("Content-Type", row.contentType)
		}
		if row.coding != "" {
			resp.Header["Content-Encoding"] = strings.Split(row.coding, "|")
		}
		page := client.PageRules(resp)
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != text {
			t.Errorf("%s: got the body %q, %v, want %q", row.name, got, err, text)
		}
		e := page.Rules().For(policy.RFC9309, "ExampleBot")
		if e.String() != row.want || (resp.Body != body) != row.wrapped || e.Incomplete != row.partial {
			t.Errorf("%s: got %v, wrapped: %t, incomplete: %t, want %s, %t, %t", row.name, e, resp.Body != body, e.Incomplete, row.want, row.wrapped, row.partial)
		}
		metas := 0
		page.Metas(func(string, string, int64) { metas++ })
		if want := strings.Contains(row.want, "nofollow"); (metas == 2) != want {
			t.Errorf("%s: got %d meta elements, want both: %t", row.name, metas, want)
		}
	}
}
