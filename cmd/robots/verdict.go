package main

import (
	"encoding/json"
	"fmt"

	"github.com/robotsgate/robotsgate/policy"
)

// verdict is an answer about one URL, as --json writes it. Optional fields are left
// out where they say nothing.
type verdict struct {
	Number  int        `json:"number,omitempty"` // line of the input, where there is one
	URL     string     `json:"url,omitempty"`
	Agent   string     `json:"agent,omitempty"`
	Dialect string     `json:"dialect,omitempty"`
	Allowed bool       `json:"allowed"`
	Line    int        `json:"line"` // of the rule that decided, or of the empty one by which all is allowed; or 0
	Rule    string     `json:"rule,omitempty"`
	Group   string     `json:"group,omitempty"` // its product token, as the file writes it
	Reason  string     `json:"reason,omitempty"`
	Robots  *answer    `json:"robots,omitempty"` // check: where the rules come from
	Lines   []fileLine `json:"lines,omitempty"`  // check --explain
	Error   string     `json:"error,omitempty"`  // why robots.txt could not be had, or what is wrong with the URL

	Record json.RawMessage `json:"record,omitempty"` // filter: the line, where it was a JSON object
}

// newVerdict is d about a URL, as the user wrote it.
func newVerdict(url string, d policy.Decision) verdict {
	v := verdict{URL: url}
	v.decided(d)
	return v
}

// decided fills v from d.
func (v *verdict) decided(d policy.Decision) {
	v.Allowed, v.Reason, v.Group = d.Allowed, reasonName(d.Reason), d.Group
	if d.Rule.Line > 0 {
		v.Line, v.Rule = d.Rule.Line, d.Rule.String()
	}
}

// status is the exit status that v stands for. A refusal because robots.txt could not be
// had is "could not find out": the site has not said no.
func (v *verdict) status() int {
	switch {
	case v.Reason == "", v.Reason == reasonName(policy.ReasonUnreachable):
		return exitUnknown
	case v.Allowed:
		return exitOK
	default:
		return exitRefused
	}
}

// because says in one phrase, safe to print, what the verdict rests on.
func (v *verdict) because() string {
	switch {
	case v.Reason == reasonName(policy.ReasonUnreachable) && v.Error == "":
		return "robots.txt is unreachable"
	case v.Reason == reasonName(policy.ReasonUnreachable):
		return "robots.txt is unreachable: " + visible(v.Error)
	case v.Reason == "":
		return visible(v.Error)
	case v.Line > 0:
		return fmt.Sprintf("line %d: %s", v.Line, visible(v.Rule))
	case v.Reason == reasonName(policy.ReasonUnavailable):
		return "robots.txt is unavailable"
	default:
		return "no rule matches"
	}
}

// reasonName is how JSON names a reason; scripts may rely on it.
func reasonName(r policy.Reason) string {
	text, _ := r.MarshalText()
	return string(text)
}
