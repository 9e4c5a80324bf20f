package client

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// usesMisuse returns what is wrong with the declared uses, or nil. A misspelt one would
// never be disallowed.
func usesMisuse(uses []string) error {
	var labels []string
	for _, m := range usage.Table() {
		labels = append(labels, m.Label)
	}
	slices.Sort(labels)
	for _, use := range uses {
		if !slices.Contains(labels, use) {
			return fmt.Errorf("client: Uses has %q, which nothing can disallow: use %s",
				cut(use), strings.Join(slices.Compact(labels), ", "))
		}
	}
	return nil
}

// checkUses returns a *UseError if robots.txt disallows a declared use of the target, which
// its rules allow by d. Most files say nothing about use, and cost little here.
func (g *gate) checkUses(r *ruling, u *url.URL, target string, d *policy.Decision, res *fetch.Result) error {
	if len(g.uses) == 0 {
		return nil
	}
	said := usage.ParseRobots(res.Policy, r.token, target)
	if said == nil {
		return nil // as nearly always
	}
	for _, use := range g.uses {
		if what, by := usage.For(said, nil, use); what == usage.Disallow {
			allowed := ruling{token: r.token, Decision: *d, origin: r.origin, result: res}
			return &UseError{URL: u, Use: use, By: by, Answer: g.answer(&allowed)}
		}
	}
	return nil
}

// Watch looks for what the page in a response says about itself, in what the caller reads
// of resp.Body anyhow: it replaces that by the [page.Reader] that it returns. The rules of
// the X-Robots-Tag fields come first, those of meta elements as they are read:
//
//	body := client.Watch(resp)
//	io.Copy(file, resp.Body)
//	effect := body.Rules().For(policy.RFC9309, "ExampleBot")
//
// Set body.Meta before the body is read to see meta elements of other kinds, such as those
// for [usage.ParseMeta].
//
// Only a final 2xx answer is a page. Any other leaves resp as it is, and the Reader has no
// rules. A body that is still encoded, with gzip for example, is not read either: the rules
// are those of the header, and Incomplete.
func Watch(resp *http.Response) *page.Reader {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return new(page.Reader)
	}
	body := &page.Reader{
		Body: resp.Body, ContentType: resp.Header.Get("Content-Type"), Header: resp.Header.Values("X-Robots-Tag"),
	}
	if coding := resp.Header.Get("Content-Encoding"); coding == "" || strings.EqualFold(coding, "identity") {
		resp.Body = body
	}
	return body
}
