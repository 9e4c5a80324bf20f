package lint

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// home is the module, which is also its page.
const home = "github.com/robotsgate/robotsgate"

// WriteSARIF writes the reports as one run of the Static Analysis Results
// Interchange Format (SARIF 2.1.0), with the whole registry as its rules. Findings
// without a line name the file alone.
func WriteSARIF(w io.Writer, reports ...Report) error {
	run := sarifRun{Results: []sarifResult{}, ColumnKind: "unicodeCodePoints"}
	driver := &run.Tool.Driver
	driver.Name, driver.URI, driver.Version = "robotsgate lint", "https://"+home, version()
	for _, r := range rules() {
		driver.Rules = append(driver.Rules, sarifRule{
			ID: r.ID, Name: r.Name, Short: sarifText{r.Summary}, Help: sarifText{r.Advice}, HelpURI: r.URL(),
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

// sarif returns the finding as a result. Engines and suggestion become properties.
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
	if f.Replacement != "" && f.Line > 0 {
		r.Fixes = []sarifFix{f.sarifFix(at.Physical.Artifact)}
	}
	return r
}

// sarifFix replaces the whole line. A region of a line alone is the line without its end
// (§3.30.5 to §3.30.8).
func (f Finding) sarifFix(file sarifArtifact) sarifFix {
	replacement := sarifReplacement{Deleted: sarifRegion{Line: f.Line}, Inserted: sarifText{f.Replacement}}
	return sarifFix{
		Description: sarifText{f.Suggestion},
		Changes:     []sarifChange{{Artifact: file, Replacements: []sarifReplacement{replacement}}},
	}
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
				Name    string      `json:"name"`
				URI     string      `json:"informationUri"`
				Version string      `json:"version"`
				Rules   []sarifRule `json:"rules"`
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
		HelpURI       string          `json:"helpUri"`
		Configuration sarifLevel      `json:"defaultConfiguration"`
		Properties    sarifProperties `json:"properties"`
	}
	sarifResult struct { // §3.27
		RuleID     string          `json:"ruleId"`
		RuleIndex  *int            `json:"ruleIndex,omitempty"`
		Level      string          `json:"level"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations"`
		Fixes      []sarifFix      `json:"fixes,omitempty"`
		Properties sarifProperties `json:"properties"`
	}
	sarifLocation struct { // §3.28
		Physical struct {
			Artifact sarifArtifact `json:"artifactLocation"`
			Region   *sarifRegion  `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifArtifact struct { // §3.4
		URI string `json:"uri"`
	}
	sarifFix struct { // §3.55
		Description sarifText     `json:"description"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct { // §3.56
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct { // §3.57
		Deleted  sarifRegion `json:"deletedRegion"`
		Inserted sarifText   `json:"insertedContent"`
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
