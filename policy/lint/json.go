package lint

import (
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// WriteJSON writes one JSON object for each report, on its own line. All names are
// always there; what does not apply is null. A file without findings has an empty array.
//
// An object has name, url (null for a file on disk) and findings. A finding has id, name, severity, line, column,
// message, engines, suggestion, replacement, example and more, as the fields of Finding.
func WriteJSON(w io.Writer, reports ...Report) error {
	e := newEncoder(w)
	for _, r := range reports {
		o := struct {
			Name     string        `json:"name"`
			URL      *string       `json:"url"`
			Findings []jsonFinding `json:"findings"`
		}{Name: r.Name, Findings: []jsonFinding{}}
		if strings.Contains(r.Name, "://") {
			o.URL = &r.Name
		}
		for _, f := range r.Findings {
			o.Findings = append(o.Findings, jsonFinding{f.ID, f.Name, f.Severity, known(f.Line), known(f.Column), f.Message,
				f.Engines, f.Suggestion, known(f.Replacement), known(f.Example), known(f.More)})
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func newEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

type jsonFinding struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Severity    Severity `json:"severity"`
	Line        *int     `json:"line"`
	Column      *int     `json:"column"`
	Message     string   `json:"message"`
	Engines     Engines  `json:"engines"`
	Suggestion  string   `json:"suggestion"`
	Replacement *string  `json:"replacement"`
	Example     *string  `json:"example"`
	More        *int     `json:"more"`
}

// known returns v, or nil for null if it is zero. A zero in JSON would be a line or a text to
// readers in other languages, who do not know what this package means by it.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// WriteRulesJSON writes one JSON object for each rule, on its own line, with id, name,
// severity, engines, summary, advice, example, help_url and unchecked.
func WriteRulesJSON(w io.Writer, rules ...Rule) error {
	e := newEncoder(w)
	for _, r := range rules {
		if err := e.Encode(struct {
			Rule
			URL       string  `json:"help_url"`
			Unchecked *string `json:"unchecked"`
		}{r, r.URL(), known(r.Unchecked)}); err != nil {
			return err
		}
	}
	return nil
}

// object is a JSON object.
type object = map[string]any

// WriteSARIF writes the reports as one run of the Static Analysis Results Interchange Format (SARIF 2.1.0), with the
// whole registry as its rules. Findings without a line name the file alone.
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

// version returns the version of this module in the running program, "(devel)" if the go command recorded none.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) { // package lint may be in the main module, or required
			if m.Path == home && m.Version != "" {
				return m.Version
			}
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
	if i := ruleIndex(f.ID); i >= 0 { // a Finding may be made by hand
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
