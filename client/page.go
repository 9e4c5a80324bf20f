package client

import (
	"net/http"
	"strings"

	"github.com/robotsgate/robotsgate/policy/page"
)

// PageRules looks for what the page in a response says about itself, while the caller reads resp.Body: it replaces that
// with the Reader that it returns. The rules of the X-Robots-Tag fields come first, those of meta elements as they are
// read:
//
//	page := client.PageRules(resp)
//	io.Copy(file, resp.Body)
//	effect := page.Rules().For(policy.RFC9309, "ExampleBot")
//
// Only a final 2xx answer is a page. Any other leaves resp as it is, and there are no rules. A body that is still
// encoded, with gzip for example, is not read either, nor is a part of a page (206) or the answer to a HEAD: the rules
// are those of the header, and Incomplete if the page may have meta elements.
//
// Package usage combines what a page and robots.txt say about a use.
func PageRules(resp *http.Response) *page.Reader {
	p := new(page.Reader)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return p
	}
	p.Body = resp.Body
	p.ContentType = resp.Header.Get("Content-Type")
	p.Header = resp.Header.Values("X-Robots-Tag")
	coding := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	plain := coding == "" || strings.EqualFold(coding, "identity")
	head := resp.Request != nil && resp.Request.Method == http.MethodHead
	if plain && !head && resp.StatusCode != http.StatusPartialContent {
		resp.Body = p
	}
	return p
}
