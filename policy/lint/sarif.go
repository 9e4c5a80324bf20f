package lint

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// WriteSARIF writes the reports as one run of the Static Analysis Results
// Interchange Format (SARIF 2.1.0), with the whole registry as its rules. Findings
// without a line name the file alone.
func WriteSARIF(w io.Writer, reports ...Report) error {
	run := sarifRun{Results: []sarifResult{}, ColumnKind: "unicodeCodePoints"}
	run.Tool.Driver.Name = "robotsgate lint"
	for _, r := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: r.ID, Name: r.Name, Short: sarifText{r.Summary}, Help: sarifText{r.Advice},
			Configuration: sarifLevel{r.Severity.sarif()},
			Properties:    sarifProperties{Engines: r.Engines.Names(), Unchecked: r.Unchecked},
		})
	}
	for _, report := range reports {
		for _, f := range report.Findings {
			run.Results = append(run.Results, f.sarif(report.Name))
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

// sarif returns the level of SARIF §3.27.10.
func (s Severity) sarif() string {
	if s == Info {
		return "note"
	}
	return s.String()
}

// sarif returns the finding as a result. Engines and suggestion become properties: a fix in
// the sense of SARIF would have to be right for a machine to apply.
func (f Finding) sarif(name string) sarifResult {
	r := sarifResult{
		RuleID: f.ID, Level: f.Severity.sarif(), Message: sarifText{f.Message},
		Properties: sarifProperties{Engines: f.Engines.Names(), Suggestion: f.Suggestion},
	}
	if i, ok := ruleIndex(f.ID); ok {
		r.RuleIndex = &i
	}
	var at sarifLocation
	at.Physical.Artifact.URI = sarifURI(name)
	if f.Line > 0 {
		at.Physical.Region = &sarifRegion{f.Line, f.Column}
	}
	r.Locations = []sarifLocation{at}
	return r
}

// sarifURI returns the name of a file as a URI reference, and a URL unchanged.
func sarifURI(name string) string {
	if strings.Contains(name, "://") {
		return name
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).String()
}

// The parts of SARIF that are used, by their section in the specification.
type (
	sarifLog struct { // §3.13
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct { // §3.14
		Tool struct {
			Driver struct {
				Name  string      `json:"name"`
				Rules []sarifRule `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results    []sarifResult `json:"results"`
		ColumnKind string        `json:"columnKind"`
	}
	sarifRule struct { // §3.49
		ID            string          `json:"id"`
		Name          string          `json:"name"`
		Short         sarifText       `json:"shortDescription"`
		Help          sarifText       `json:"help"`
		Configuration sarifLevel      `json:"defaultConfiguration"`
		Properties    sarifProperties `json:"properties"`
	}
	sarifResult struct { // §3.27
		RuleID     string          `json:"ruleId"`
		RuleIndex  *int            `json:"ruleIndex,omitempty"`
		Level      string          `json:"level"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations"`
		Properties sarifProperties `json:"properties"`
	}
	sarifLocation struct { // §3.28
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct { // §3.30
		Line   int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifProperties struct { // §3.8
		Engines    []string `json:"engines"`
		Suggestion string   `json:"suggestion,omitempty"`
		Unchecked  string   `json:"unchecked,omitempty"`
	}
)
