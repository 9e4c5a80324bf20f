// Package links finds the links of pages, for the crawlers among the examples.
package links

import (
	"io"
	"net/url"

	"golang.org/x/net/html"
)

// Link is where an element a of a page leads to.
type Link struct {
	URL *url.URL // absolute
	Rel string   // as it stands in the page: nofollow
}

// Of returns the links of the first megabyte of a page.
func Of(base *url.URL, page io.Reader) (all []Link) {
	for z := html.NewTokenizer(io.LimitReader(page, 1<<20)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return all
		case html.StartTagToken:
			var l Link
			t := z.Token()
			for _, a := range t.Attr {
				switch a.Key {
				case "href":
					l.URL, _ = base.Parse(a.Val)
				case "rel":
					l.Rel = a.Val
				}
			}
			if t.Data == "a" && l.URL != nil {
				all = append(all, l)
			}
		}
	}
}
