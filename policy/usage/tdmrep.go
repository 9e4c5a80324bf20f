package usage

import (
	"encoding/json"
	"errors"
)

// ParseTDMRep returns what a file /.well-known/tdmrep.json says about the use of a target,
// which is that of [policy.Group.Decide]. The first entry whose location matches counts. An
// entry or a property of the wrong type says nothing. The package does not fetch the file,
// which is one more request for each origin.
func ParseTDMRep(file []byte, target string) []Statement {
	l := list{in: inFile}
	var entries []struct {
		Location    string          `json:"location"`
		Reservation json.RawMessage `json:"tdm-reservation"`
		Policy      string          `json:"tdm-policy"`
	}
	if len(file) > maxFile {
		l.add(Statement{By: tdmRep, Problem: problemMore})
		return l.said
	}
	err := json.Unmarshal(file, &entries)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); err != nil && (!mistyped || entries == nil) {
		l.add(Statement{By: tdmRep, Problem: "not a list of TDMRep entries: " + err.Error()})
		return l.said
	}
	for i, e := range entries {
		if _, ok := matches(e.Location, target); !ok || e.Location == "" {
			continue
		}
		if e.Reservation != nil {
			l.tdm(Statement{Line: i + 1, Key: reservation, Value: string(e.Reservation), Text: string(e.Reservation)})
		}
		if e.Policy != "" {
			l.tdm(Statement{Line: i + 1, Key: tdmPolicy, Value: e.Policy, Text: e.Policy})
		}
		break
	}
	return l.said
}
