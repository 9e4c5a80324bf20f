package lint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy/lint"
)

// A shape is what the schema of SARIF 2.1.0 says of one object: its required properties and
// the optional ones that are used here, each with a check of its value. In the schema, too,
// no object but a property bag may have any other property.
type shape struct{ required, optional map[string]func(any) error }

// properties are the members of a JSON object, with a check of each.
type properties = map[string]func(any) error

func (s shape) check(v any) error {
	o, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%T is no object", v)
	}
	for name := range s.required {
		if _, ok := o[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		check := s.required[name]
		if check == nil {
			check = s.optional[name]
		}
		if check == nil {
			return fmt.Errorf("%s does not belong here", name)
		}
		if err := check(o[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func listOf(element func(any) error, least int) func(any) error {
	return func(v any) error {
		all, ok := v.([]any)
		if !ok || len(all) < least {
			return fmt.Errorf("%T with %d elements is no list of %d", v, len(all), least)
		}
		for i, e := range all {
			if err := element(e); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	}
}

func matching(pattern string) func(any) error {
	return func(v any) error {
		if s, ok := v.(string); !ok || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(s) {
			return fmt.Errorf("%#v is no string like %s", v, pattern)
		}
		return nil
	}
}

func number(least float64) func(any) error {
	return func(v any) error {
		if n, ok := v.(float64); !ok || n < least || n != float64(int(n)) {
			return fmt.Errorf("%#v is no integer from %v", v, least)
		}
		return nil
	}
}

func uri(absolute bool) func(any) error {
	return func(v any) error {
		s, _ := v.(string)
		u, err := url.Parse(s)
		if err != nil || s == "" || absolute && !u.IsAbs() {
			return fmt.Errorf("%#v is no URI", v)
		}
		return nil
	}
}

func anything(any) error { return nil }

// The objects of the schema, by section of the specification.
var (
	text        = matching(`(?s).+`)
	message     = shape{properties{"text": text}, nil}.check                                            // §3.11
	artifact    = shape{properties{"uri": uri(false)}, nil}.check                                       // §3.4
	region      = shape{properties{"startLine": number(1)}, properties{"startColumn": number(1)}}.check // §3.30
	level       = matching("none|note|warning|error")                                                   // §3.27.10
	bag         = anything                                                                              // §3.8
	replacement = shape{properties{"deletedRegion": region}, properties{"insertedContent": message}}.check
	change      = shape{properties{"artifactLocation": artifact, "replacements": listOf(replacement, 1)}, nil}.check
	fix         = shape{properties{"artifactChanges": listOf(change, 1)}, properties{"description": message}}.check
	physical    = shape{properties{"artifactLocation": artifact}, properties{"region": region}}.check
	location    = shape{nil, properties{"physicalLocation": physical}}.check
	result      = shape{properties{"message": message}, properties{"ruleId": matching(`RT\d{3}`), "ruleIndex": number(0),
		"level": level, "locations": listOf(location, 1), "fixes": listOf(fix, 1), "properties": bag}}.check
	rule = shape{properties{"id": matching(`RT\d{3}`)}, properties{"name": text, "shortDescription": message, "help": message,
		"helpUri": uri(true), "defaultConfiguration": shape{nil, properties{"level": level}}.check, "properties": bag}}.check
	driver = shape{properties{"name": text}, properties{"informationUri": uri(true), "version": text, "rules": listOf(rule, 1)}}.check
	run    = shape{properties{"tool": shape{properties{"driver": driver}, nil}.check},
		properties{"results": listOf(result, 0), "columnKind": matching("utf16CodeUnits|unicodeCodePoints")}}.check
	sarifLog = shape{properties{"version": matching(`2\.1\.0`), "runs": listOf(run, 1)}, properties{"$schema": uri(true)}}.check
)

func TestSARIFHasThePublishedShape(t *testing.T) {
	for name, reports := range map[string][]lint.Report{"findings": reports, "none": {}} {
		var b bytes.Buffer
		var log any
		if err := lint.WriteSARIF(&b, reports...); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Bytes(), &log); err != nil {
			t.Fatal(err)
		}
		if err := sarifLog(log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSARIFNamesRulesFilesPlacesAndFixes(t *testing.T) {
	var b bytes.Buffer
	if err := lint.WriteSARIF(&b, reports...); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct {
					Rules []struct{ ID, HelpURI string }
				}
			}
			Results []json.RawMessage
		}
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	driver := log.Runs[0].Tool.Driver
	for i, r := range lint.Rules() {
		if driver.Rules[i].ID != r.ID || driver.Rules[i].HelpURI != r.URL() {
			t.Errorf("rule %d: got %+v, want %s", i, driver.Rules[i], r.ID)
		}
	}
	const place = `"locations":[{"physicalLocation":{"artifactLocation":{"uri":"my%20site/robots.txt"},"region":{"startColumn":13,"startLine":2}}}]`
	const whole = `"locations":[{"physicalLocation":{"artifactLocation":{"uri":"https://example.com/robots.txt"}}}]`
	for i, want := range [][]string{
		{`"ruleId":"RT004"`, `"ruleIndex":3}`, `"level":"error"`, place},
		{`"ruleId":"RT414"`, `"level":"error"`, whole},
	} {
		var got bytes.Buffer
		if err := json.Compact(&got, log.Runs[0].Results[i]); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(got.String(), part) {
				t.Errorf("result %d: got\n%s\nwant in it\n%s", i, got.String(), part)
			}
		}
	}
}

func TestSARIFHasTheReplacementThatChangesNothing(t *testing.T) {
	text := []byte("User-agent: *\nDISALLOW: /a\nDisalow: /b\n")
	var b bytes.Buffer
	if err := lint.WriteSARIF(&b, lint.Report{Name: "robots.txt", Findings: lint.File(text), Text: text}); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	const want = `"replacements":[{"deletedRegion":{"startLine":2},"insertedContent":{"text":"Disallow: /a"}}]`
	if got := compact.String(); !strings.Contains(got, want) || strings.Count(got, `"fixes"`) != 1 {
		t.Errorf("got\n%s\nwant one fix\n%s", got, want)
	}
}
