package serve

// What a page shows besides its text, for the page's question "may this be rendered?": a search engine that may fetch a
// page, but not its scripts, sees an empty one. It is the only page of a site that the service reads, and it goes
// through the gate: robots.txt decides for the crawler of --agent, and turns are kept. Nothing in it is fetched: its
// images, scripts and styles are only asked about.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	rules "github.com/robotsgate/robotsgate/policy/page"
)

// The bounds of a page that is read for what it shows. The tokenizer holds an element whole, and one element may be all
// of a page.
const (
	maxParts     = 1 << 20   // bytes of it
	maxPartsHold = 256 << 10 // of one element
)

// partsOf are the URLs of the images, scripts and styles of a page, maxPageURLs at most, each once. The page
// is read as the service itself may. The error says why there are no more. A reading takes the place of a
// stream, which bounds how many there are. said is called with what the page, behind redirects, says to crawlers.
func (v *Service) partsOf(ctx context.Context, page *url.URL, said func(*url.URL, rules.Rules)) (parts []string, err error) {
	if !v.streams.Take() {
		return nil, web.Busy()
	}
	defer v.streams.Free()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", v.gate.Fetcher.UserAgent) // the site sees one visitor, here and for robots.txt
	res, err := (&http.Client{Transport: v.gate.Transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	base := res.Request.URL // behind redirects, each of which the gate has let pass
	read, body := client.PageRules(res), io.LimitReader(res.Body, maxParts)
	defer func() {
		if io.Copy(io.Discard, body); res.StatusCode/100 == 2 { // else it is no page
			said(res.Request.URL, read.Rules())
		}
	}()
	z := html.NewTokenizer(body)
	z.SetMaxBuf(maxPartsHold)
	for len(parts) < maxPageURLs {
		switch z.Next() {
		case html.ErrorToken: // the end, or a reading that broke off: what is known by then is asked about
			if err = z.Err(); errors.Is(err, io.EOF) {
				err = nil
			}
			return parts, err
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			ref := partOf(t)
			u, err := base.Parse(ref)
			if ref == "" || err != nil || u.Scheme != "http" && u.Scheme != "https" {
				continue
			}
			if t.Data == "base" {
				base = u
				continue
			}
			u.Fragment, u.RawFragment = "", ""
			if part := u.String(); part != page.String() && !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	return parts, nil
}

// partOf is what an element shows, runs or is drawn by; for base, what the others start from. Of links only style sheets
// are such.
func partOf(t html.Token) string {
	from := map[string]string{"img": "src", "script": "src", "link": "href", "base": "href"}[t.Data]
	var ref, rel string
	for _, a := range t.Attr {
		switch a.Key {
		case "rel":
			rel = a.Val
		case from:
			ref = strings.TrimSpace(a.Val)
		}
	}
	if t.Data == "link" && !slices.Contains(strings.Fields(strings.ToLower(rel)), "stylesheet") {
		return ""
	}
	return ref
}
