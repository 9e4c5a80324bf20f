package lint

import (
	"encoding/json"
	"io"
	"strings"
)

// WriteJSON writes one JSON object for each report, on a line of its own. All names are
// always there; what does not apply is null. A file without findings has an empty array.
//
// An object has name, url (null for a file on disk) and findings. A finding has id, name,
// severity, line, column, message, engines, suggestion, replacement, example and more, as the fields
// of Finding.
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

// WriteRulesJSON writes one JSON object for each rule, on a line of its own, with id, name,
// severity, engines, summary, advice, example, help_url and unchecked.
func WriteRulesJSON(w io.Writer, rules ...Rule) error {
	e := newEncoder(w)
	for _, r := range rules {
		if err := e.Encode(struct {
			ID        string   `json:"id"`
			Name      string   `json:"name"`
			Severity  Severity `json:"severity"`
			Engines   Engines  `json:"engines"`
			Summary   string   `json:"summary"`
			Advice    string   `json:"advice"`
			Example   string   `json:"example"`
			URL       string   `json:"help_url"`
			Unchecked *string  `json:"unchecked"`
		}{r.ID, r.Name, r.Severity, r.Engines, r.Summary, r.Advice, r.Example, r.URL(), known(r.Unchecked)}); err != nil {
			return err
		}
	}
	return nil
}
