package site

import (
	"net/url"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// ParseURL reads a URL whose site is to be asked. The error is a UsageError.
func ParseURL(text string) (*url.URL, error) { return ParseURLAs(policy.RFC9309, text) }

// ParseURLAs is parseURL for what a dialect reads.
func ParseURLAs(d policy.Dialect, text string) (*url.URL, error) {
	u, err := answer.ReadURL(d, text)
	if err != nil {
		return nil, shell.Usagef("%w", err)
	}
	return u, nil
}

// ParseSite is parseURL with the origin to ask. Its error tells the argument's place, i.
func ParseSite(i int, text string) (*url.URL, fetch.Origin, error) {
	return ParseSiteAs(policy.RFC9309, i, text)
}

// ParseSiteAs is parseSite for what a dialect reads.
func ParseSiteAs(d policy.Dialect, i int, text string) (*url.URL, fetch.Origin, error) {
	u, o, err := answer.ReadSite(d, text)
	if err != nil {
		return nil, o, shell.Usagef("argument %d: %w", i+1, err)
	}
	return u, o, nil
}
