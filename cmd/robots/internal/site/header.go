package site

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// headerFlag is --header: fields for one site each, such as a key by which a shop lets crawlers in. They go
// to that origin, with the request for its robots.txt and with those for its pages, and over no redirect to
// another. It is a hook that sees each request that is sent, and no field of a request, which net/http would
// take along.
type headerFlag map[fetch.Origin]http.Header

// Set takes a value of the flag, which may be given more than once.
func (h headerFlag) Set(text string) error {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return h.add(text)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := h.add(line); err != nil {
			return err
		}
	}
	return nil
}

// add takes "SITE NAME: VALUE". Errors show no value.
func (h headerFlag) add(text string) error {
	site, field, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, value, ok := strings.Cut(strings.TrimSpace(field), ":")
	value = strings.TrimSpace(value)
	_, o, err := answer.ReadSite(policy.RFC9309, site)
	name = http.CanonicalHeaderKey(name)
	switch {
	case !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
		return shell.Usagef(`write "SITE NAME: VALUE", such as "https://shop.example X-Key: abc", or @FILE with such lines`)
	case err != nil:
		return err
	case strings.Contains(site, "*"):
		return shell.Usagef("%s is no site: name each", answer.Quoted(site))
	// what was decided on, and what net/http writes itself
	case slices.Contains([]string{"User-Agent", "Host", "Content-Length", "Transfer-Encoding", "Connection"}, name):
		return shell.Usagef("the field %s cannot be set: leave it out", answer.Quoted(name))
	}
	if h[o] == nil {
		h[o] = http.Header{}
	}
	h[o].Add(name, value)
	return nil
}

// Hook returns what adds the fields to a request, and then signs it. signer may be nil; nil: there is nothing to do.
func (h headerFlag) Hook(signer *sign.Signer) func(*http.Request) error {
	if len(h) == 0 && signer == nil {
		return nil
	}
	return func(req *http.Request) error {
		o, err := fetch.OriginOfRequest(req)
		if err != nil {
			return err
		}
		for name, values := range h[o] {
			req.Header[name] = slices.Clone(values)
		}
		if signer == nil {
			return nil
		}
		return signer.Sign(req)
	}
}

// ParseSite reads a URL of an argument, counted from 0, and the origin to ask. Its error tells the argument's place.
func ParseSite(d policy.Dialect, i int, text string) (*url.URL, fetch.Origin, error) {
	u, o, err := answer.ReadSite(d, text)
	if err != nil {
		err = shell.Usagef("argument %d: %w", i+1, err)
	}
	return u, o, err
}
