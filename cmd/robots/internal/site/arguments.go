package site

import (
	"net/url"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// ParseSite reads a URL of an argument, counted from 0, and the origin to ask. Its error tells the argument's place.
func ParseSite(d policy.Dialect, i int, text string) (*url.URL, fetch.Origin, error) {
	u, o, err := answer.ReadSite(d, text)
	if err != nil {
		err = shell.Usagef("argument %d: %w", i+1, err)
	}
	return u, o, err
}
