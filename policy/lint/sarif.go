package lint

import (
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// WriteSARIF writes the reports as one run of the Static Analysis Results
// Interchange Format (SARIF 2.1.0), with the whole registry as its rules. Findings
// without a line name the file alone.
func WriteSARIF(w io.Writer, reports ...Report) error {
	registry, results := []object{}, []object{}
	for _, r := range rules() {
		registry = append(registry, object{ // §3.49
			"id": r.ID, "name": r.Name, "shortDescription": object{"text": r.Summary}, "help": object{"text": r.Advice},
			"helpUri": r.URL(), "defaultConfiguration": object{"level": r.Severity.sarif()},
			"properties": said(object{"engines": r.Engines.Names(), "unchecked": r.Unchecked}),
		})
	}
	for _, report := range reports {
		for _, f := range report.Findings {
			results = append(results, f.sarif(report.Name))
		}
	}
	e := newEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct { // the version should come first (§3.13.2), and an object is in the order of its names
		Schema  string   `json:"$schema"`
		Version string   `json:"version"`
		Runs    []object `json:"runs"`
	}{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []object{{ // §3.14
		"tool": object{"driver": object{
			"name": "robotsgate lint", "informationUri": "https://" + home, "version": version(), "rules": registry,
		}},
		"results": results, "columnKind": "unicodeCodePoints",
	}}})
}

// said returns the object without the properties that say nothing.
func said(o object) object {
	maps.DeleteFunc(o, func(_ string, v any) bool { return v == "" || v == 0 })
	return o
}

// version returns the version of this module in the running program, "(devel)" if the go
// command recorded none.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	// Package lint may be in the main module, or in a program that requires it.
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == home && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}

// sarif returns the level of SARIF §3.27.10.
func (s Severity) sarif() string {
	if s == SeverityInfo {
		return "note"
	}
	return s.String()
}

// sarif returns the finding as a result (§3.27). Engines and suggestion become properties.
func (f Finding) sarif(name string) object {
	file := object{"uri": sarifURI(name)}
	place := object{"artifactLocation": file} // §3.28
	result := object{
		"ruleId": f.ID, "level": f.Severity.sarif(), "message": object{"text": f.Message},
		"locations":  []object{{"physicalLocation": place}},
		"properties": said(object{"engines": f.Engines.Names(), "suggestion": f.Suggestion}),
	}
	if i, ok := ruleIndex(f.ID); ok {
		result["ruleIndex"] = i
	}
	if f.Line > 0 {
		place["region"] = said(object{"startLine": f.Line, "startColumn": f.Column})
	}
	// A region of a line alone is the line without its end (§3.30.5 to §3.30.8).
	if f.Replacement != "" && f.Line > 0 {
		replacement := object{"deletedRegion": object{"startLine": f.Line}, "insertedContent": object{"text": f.Replacement}}
		result["fixes"] = []object{{ // §3.55
			"description":     object{"text": f.Suggestion},
			"artifactChanges": []object{{"artifactLocation": file, "replacements": []object{replacement}}},
		}}
	}
	return result
}

// sarifURI returns the name of a file as a URI reference, and a URL unchanged.
func sarifURI(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).String()
}
