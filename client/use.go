package client

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// labels are those that a use may have, sorted.
var labels = sync.OnceValue(func() (all []string) {
	for _, m := range usage.Table() {
		all = append(all, string(m.Label))
	}
	slices.Sort(all)
	return slices.Compact(all)
})

// usesMisuse returns what is wrong with the declared uses, or nil. A misspelt one would
// never be disallowed.
func usesMisuse(uses []string) error {
	for _, use := range uses {
		if !slices.Contains(labels(), use) {
			return fmt.Errorf("client: Uses has %q, which nothing can disallow: use %s",
				cut(use), strings.Join(labels(), ", "))
		}
	}
	return nil
}

// disallowedUse returns the first of the uses that a policy disallows for a target, and by what,
// or nil. Most files say nothing about use, and cost little here.
func disallowedUse(p *policy.Policy, token, target string, uses []string) (string, *usage.Statement) {
	said := usage.ParseRobots(p, token, target)
	if said == nil {
		return "", nil // as nearly always
	}
	for _, use := range uses {
		if what, by, err := usage.For(said, usage.Label(use)); err != nil || what == usage.Disallow {
			return use, &by
		}
	}
	return "", nil
}

// PageRules looks for what the page in a response says about itself, in what the caller reads
// of resp.Body anyhow: it replaces that by the [page.Reader] that it returns. The rules of
// the X-Robots-Tag fields come first, those of meta elements as they are read:
//
//	body := client.PageRules(resp)
//	io.Copy(file, resp.Body)
//	effect := body.Rules().For(policy.RFC9309, "ExampleBot")
//
// Set body.Meta before the body is read to see meta elements of other kinds, such as those
// for [usage.ParseMeta].
//
// Only a final 2xx answer is a page. Any other leaves resp as it is, and the Reader has no
// rules. A body that is still encoded, with gzip for example, is not read either, nor is a part
// of a page (206) or the answer to a HEAD: the rules are those of the header, and Incomplete
// if the page may have meta elements.
func PageRules(resp *http.Response) *page.Reader {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return new(page.Reader)
	}
	body := &page.Reader{
		Body: resp.Body, ContentType: resp.Header.Get("Content-Type"), Header: resp.Header.Values("X-Robots-Tag"),
	}
	coding := resp.Header.Get("Content-Encoding")
	plain := coding == "" || strings.EqualFold(coding, "identity")
	head := resp.Request != nil && resp.Request.Method == http.MethodHead
	if plain && !head && resp.StatusCode != http.StatusPartialContent {
		resp.Body = body
	}
	return body
}
