package answer

import "github.com/robotsgate/robotsgate/policy/usage"

// Statement is a usage.Statement in JSON.
type Statement struct {
	Mechanism string  `json:"mechanism"`
	In        string  `json:"in"`
	Line      *int    `json:"line"`
	Offset    *int64  `json:"offset"`
	Key       *string `json:"key"`
	Value     *string `json:"value"`
	Engine    *string `json:"engine"`
	Inherited bool    `json:"inherited"`
	Text      string  `json:"text"`
	Problem   *string `json:"problem"`
}

func NewStatement(s usage.Statement) *Statement {
	r := &Statement{
		Mechanism: string(s.By), In: string(s.In), Line: OrNull(s.Line), Key: OrNull(s.Key), Value: OrNull(s.Value),
		Inherited: s.Inherited, Text: s.Text, Problem: OrNull(s.Problem),
	}
	if s.By == usage.PageRule {
		r.Engine = OrNull(s.Engine.String())
	}
	if s.In == usage.InMeta {
		r.Offset = &s.Offset
	}
	return r
}
