package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/robotsgate/robotsgate/policy"
)

// verdict is an answer about one URL, as --json writes it. Optional fields are left
// out where they say nothing.
type verdict struct {
	ID      json.RawMessage `json:"id,omitempty"`     // match --jsonl: that of the record
	Number  int             `json:"number,omitempty"` // line of the input, where there is one
	URL     string          `json:"url,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	Dialect string          `json:"dialect,omitempty"`
	Allowed bool            `json:"allowed"`
	Line    int             `json:"line"` // of the rule that decided, or of the empty one by which all is allowed; or 0
	Rule    string          `json:"rule,omitempty"`
	Group   string          `json:"group,omitempty"` // its product token, as the file writes it
	Reason  string          `json:"reason,omitempty"`
	Robots  *answer         `json:"robots,omitempty"` // check: where the rules come from
	Lines   []fileLine      `json:"lines,omitempty"`  // check --explain
	Error   string          `json:"error,omitempty"`  // why robots.txt could not be had, or what is wrong with the URL
}

func newVerdict(url string, d policy.Decision) verdict {
	v := verdict{URL: url}
	v.decided(d)
	return v
}

// decided fills v from d.
func (v *verdict) decided(d policy.Decision) {
	v.Allowed, v.Reason, v.Group = d.Allowed, reasonName(d.Reason), d.Token
	if d.Rule.Line > 0 {
		v.Line, v.Rule = d.Rule.Line, d.Rule.String()
	}
}

// status is the exit status that v stands for.
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
	switch r {
	case policy.ReasonNoRule:
		return "no-rule"
	case policy.ReasonRule:
		return "rule"
	case policy.ReasonUnavailable:
		return "unavailable"
	case policy.ReasonUnreachable:
		return "unreachable"
	default:
		return ""
	}
}

// output is what one batch of lines, or one command, has to say.
type output struct {
	bytes.Buffer        // for standard output, or another file of answers
	problems     []byte // for standard error, a line each
	status       int
}

func (o *output) worsen(status int) { o.status = max(o.status, status) }

// json writes v and a line end. Patterns and URLs are full of & and <, which are no
// danger here, so they stay as they are.
func (o *output) json(v any) {
	e := json.NewEncoder(o)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Only values of our own types come here, and all of them can be encoded.
		panic(fmt.Sprintf("robots: %T as JSON: %v", v, err))
	}
}

// malformed reports a line of the input that could not be answered.
func (o *output) malformed(number int, err error) {
	o.problems = fmt.Appendf(o.problems, "robots: line %d: %s\n", number, visible(err.Error()))
	o.worsen(exitUnknown)
}

// emit writes o where it belongs.
func (a *app) emit(o *output) error {
	a.worsen(o.status)
	if _, err := a.err.Write(o.problems); err != nil {
		return err
	}
	_, err := a.out.Write(o.Bytes())
	return err
}
