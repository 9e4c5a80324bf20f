package answer

import (
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// Linted is the report about a file that was read, by whatever name.
func Linted(name string, text []byte) lint.Report {
	return lint.Report{Name: name, Findings: append(lint.Name(name), lint.File(text)...), Text: text}
}

// Served is res as package lint judges it.
func Served(o fetch.Origin, res *fetch.Result) lint.Answer {
	return lint.Answer{
		URL:         o.RobotsURL().String(),
		StatusCode:  res.StatusCode,
		ContentType: res.Header.Get("Content-Type"),
		RetryAfter:  res.Header.Get("Retry-After"),
		Redirects:   res.Redirects,
		Body:        res.Body,
		Truncated:   res.Truncated,
	}
}
