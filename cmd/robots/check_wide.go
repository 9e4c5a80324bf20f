package main

// robots check --crawlers and --hosts ask more than was typed.

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
)

// widen is what is asked for an argument: that, the whole site besides, or the same at its four hosts.
func (c *checker) widen(i int, arg string) (urls []string, err error) {
	u, _, err := site.ParseSite(c.Dialect, i, arg)
	switch {
	case err != nil:
		return nil, err
	case c.crawlers && !c.hosts && u.RequestURI() != "/":
		return []string{arg, u.ResolveReference(&url.URL{Path: "/"}).String()}, nil
	case !c.hosts:
		return []string{arg}, nil
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, ":") || !strings.Contains(host, ".") {
		return nil, shell.Usagef("argument %d: --hosts takes a name such as example.com, without a port", i+1)
	}
	for _, scheme := range []string{"http", "https"} {
		for _, name := range []string{host, "www." + host} {
			at := *u
			at.Scheme, at.Host = scheme, name
			urls = append(urls, at.String())
		}
	}
	return urls, nil
}
