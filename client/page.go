package client

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/client/internal/target"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Page is what a response says about the use of its content. The Reader has the page rules. What
// replaces its Meta must call that, or MayUse knows of no meta element that is not for crawlers.
type Page struct {
	page.Reader
	url  *url.URL
	said []usage.Statement // of the header, and of meta elements that are not for crawlers
}

// PageRules looks for what the page in a response says about itself, while the caller reads
// resp.Body: it replaces that with the Page that it returns. The rules of the X-Robots-Tag fields
// come first, those of meta elements as they are read:
//
//	page := client.PageRules(resp)
//	io.Copy(file, resp.Body)
//	effect := page.Rules().For(policy.RFC9309, "ExampleBot")
//
// Only a final 2xx answer is a page. Any other leaves resp as it is, and the Page has no
// rules. A body that is still encoded, with gzip for example, is not read either, nor is a part
// of a page (206) or the answer to a HEAD: the rules are those of the header, and Incomplete
// if the page may have meta elements.
func PageRules(resp *http.Response) *Page {
	p := new(Page)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return p
	}
	p.Body, p.ContentType, p.Header = resp.Body, resp.Header.Get("Content-Type"), resp.Header.Values("X-Robots-Tag")
	p.said = usage.ParseHeader(resp.Header)
	p.Meta = func(name, content string, offset int64) {
		p.said = append(p.said, usage.ParseMeta(name, content, offset)...)
	}
	head := false
	if resp.Request != nil {
		p.url, head = resp.Request.URL, resp.Request.Method == http.MethodHead
	}
	coding := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	plain := coding == "" || strings.EqualFold(coding, "identity")
	if plain && !head && resp.StatusCode != http.StatusPartialContent {
		resp.Body = p
	}
	return p
}

// MayUse returns what the site prefers about a use of the response, and the statement that says it.
// It combines what robots.txt says to the token, the header, and the part of the page that was read
// so far: read the page first. If they differ, "no" wins. The robots.txt is what Transport.Lookup
// returns for the URL of resp.Request, which redirects may have changed. What it says is what
// [DecideWith] makes of it, and so is the error, or robots.txt is unreachable: then the answer is no.
// So it is of a response that is no page, or has no Request.
func (p *Page) MayUse(use usage.Label, robots *policy.Policy, token string) (usage.Preference, usage.Statement, error) {
	a, err := DecideWith(robots, token, p.url, string(use))
	if err == nil && a.Reason == policy.ReasonUnreachable {
		err = errors.New("client: robots.txt is unreachable, so what it says about use is not known")
	}
	if err != nil {
		return usage.Disallow, usage.Statement{}, err
	}
	sent, _ := target.Of(nil, p.url)
	said := append(usage.ParseRules(p.Rules(), policy.RFC9309, token), p.said...)
	said = append(said, usage.ParseRobots(robots, token, sent)...)
	if a.By != nil { // perhaps of another form that servers make of the target
		said = append(said, *a.By)
	}
	return usage.For(said, use)
}
