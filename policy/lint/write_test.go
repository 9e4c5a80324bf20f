package lint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy/lint"
)

var reports = []lint.Report{
	{Name: "my site/robots.txt", Findings: lint.File([]byte("User-agent: *\nDisallow: /a /<b>\n"))},
	{Name: "https://example.com/robots.txt", Findings: lint.Answer{URL: "https://example.com/robots.txt", StatusCode: 403}.Findings()},
	{Name: "clean.txt"},
}

func TestTextIsOneLineForEachFindingAndItsSuggestionBelow(t *testing.T) {
	const want = `my site/robots.txt:2:13: error: "/a /<b>" holds a blank, so it is one path that hardly any URL begins with [RT004 multiple-paths] (all)
	Disallow: /a
	Disallow: /<b>
https://example.com/robots.txt: error: status 403 opens the whole site, as if there were no file (RFC 9309 §2.3.1.3) [RT414 status-trap] (all)
	answer 200 with the file, or 404 if nothing is to be closed
`
	var b bytes.Buffer
	if err := lint.WriteText(&b, reports...); err != nil || b.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, b.String(), want)
	}
}

func TestJSONIsOneObjectForEachReport(t *testing.T) {
	const want = `{"name":"my site/robots.txt","findings":[{"id":"RT004","name":"multiple-paths","severity":"error","line":2,"column":13,` +
		`"message":"\"/a /<b>\" holds a blank, so it is one path that hardly any URL begins with",` +
		`"engines":["rfc9309","google","yandex","bing","original"],"suggestion":"Disallow: /a\nDisallow: /<b>"}]}
{"name":"https://example.com/robots.txt","findings":[{"id":"RT414","name":"status-trap","severity":"error","line":0,"column":0,` +
		`"message":"status 403 opens the whole site, as if there were no file (RFC 9309 §2.3.1.3)",` +
		`"engines":["rfc9309","google","yandex","bing","original"],"suggestion":"answer 200 with the file, or 404 if nothing is to be closed"}]}
{"name":"clean.txt","findings":[]}
`
	var b bytes.Buffer
	if err := lint.WriteJSON(&b, reports...); err != nil || b.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, b.String(), want)
	}
}

func TestSARIFNamesRulesFilesAndPlaces(t *testing.T) {
	var b bytes.Buffer
	if err := lint.WriteSARIF(&b, reports...); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			ColumnKind string
			Tool       struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           *struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(log.Runs) != 1 || run.ColumnKind != "unicodeCodePoints" || len(run.Tool.Driver.Rules) != len(lint.Rules()) || len(run.Results) != 2 {
		t.Fatalf("got %+v", log)
	}
	for i, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Level != "error" || r.Message.Text == "" {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	first, second := run.Results[0].Locations[0].PhysicalLocation, run.Results[1].Locations[0].PhysicalLocation
	if first.ArtifactLocation.URI != "my%20site/robots.txt" || first.Region.StartLine != 2 || first.Region.StartColumn != 13 {
		t.Errorf("first result at %+v", first)
	}
	if second.ArtifactLocation.URI != "https://example.com/robots.txt" || second.Region != nil {
		t.Errorf("second result at %+v", second)
	}
}

// full accepts nothing, like a disk without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, write := range map[string]func() error{
		"text":  func() error { return lint.WriteText(full{}, reports...) },
		"JSON":  func() error { return lint.WriteJSON(full{}, reports...) },
		"SARIF": func() error { return lint.WriteSARIF(full{}, reports...) },
	} {
		if err := write(); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v, want %v", name, err, errFull)
		}
	}
}

func TestColumnsCountCharacters(t *testing.T) {
	for _, f := range lint.File([]byte("User-agent: *\nDisallow: /\u00E9\u00E9 x\n")) {
		if f.ID == "RT004" && f.Column != 14 {
			t.Errorf("got column %d, want 14", f.Column)
		}
	}
}

func TestWhatIsQuotedIsCutAndPrintable(t *testing.T) {
	found := only(lint.File([]byte("User-agent: *\nDisallow: a\x1b[31m"+strings.Repeat("\u00E9", 500))), "RT013")
	if len(found) != 1 || strings.Contains(found[0].Message, "\x1b") || !strings.Contains(found[0].Message, `"a\x1b[31m`) || len(found[0].Message) > 200 {
		t.Errorf("got %+v", found)
	}
}

func TestFindingsBeyondTheBoundAreCounted(t *testing.T) {
	found := only(lint.File([]byte("User-agent: *\n"+strings.Repeat("Noindex: /\n", lint.MaxPerRule+5))), "RT404")
	last := found[len(found)-1]
	if len(found) != lint.MaxPerRule+1 || last.More != 5 || last.Line != lint.MaxPerRule+2 || !strings.Contains(last.Message, "5 more") {
		t.Errorf("got %d findings, the last %+v", len(found), last)
	}
}

func TestEnginesHaveNames(t *testing.T) {
	for e, want := range map[lint.Engines]string{
		0: "", lint.All: "all", lint.Google | lint.Seznam: "google,seznam", lint.All | lint.RSL: "all,rsl", 1 << 15: "unknown",
	} {
		if got := e.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
