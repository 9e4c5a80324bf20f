package usage

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ParseTDMRep returns what a file /.well-known/tdmrep.json says about the use of a target, which is that of
// [policy.Group.Decide]. The first entry whose location matches counts. An entry or a property of the wrong type says
// nothing. The package does not fetch the file, which is one more request for each origin.
func ParseTDMRep(file []byte, target string) []Statement {
	l := list{in: InTDMRep}
	var entries []map[string]json.RawMessage // a struct would take names in any case, and the last of them
	if len(file) > maxFile {
		l.add(Statement{By: TDMRep, Problem: problemMore})
		return l.said
	}
	err := json.Unmarshal(bytes.TrimPrefix(file, []byte("\ufeff")), &entries) // as RFC 8259 §8.1 lets a parser
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); err != nil && (!mistyped || entries == nil) {
		l.add(Statement{By: TDMRep, Problem: "not a list of TDMRep entries: " + err.Error()})
		return l.said
	}
	locations := make([]string, len(entries))
	for i, e := range entries {
		json.Unmarshal(e["location"], &locations[i])
	}
	for i := range matching(locations, target) {
		address := ""
		json.Unmarshal(entries[i][tdmPolicy], &address)
		for _, p := range [...][2]string{{reservation, string(entries[i][reservation])}, {tdmPolicy, address}} {
			if p[1] != "" {
				l.tdm(Statement{Line: i + 1, Key: p[0], Value: p[1], Text: p[1]})
			}
		}
		break
	}
	return l.said
}
