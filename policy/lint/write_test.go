package lint_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy/lint"
)

const twoPaths = "User-agent: *\nDisallow: /a /<b>\n"

var reports = []lint.Report{
	{Name: "my site/robots.txt", Findings: lint.File([]byte(twoPaths)), Text: []byte(twoPaths)},
	{Name: "https://example.com/robots.txt", Findings: lint.Answer{URL: "https://example.com/robots.txt", StatusCode: 403}.Findings()},
	{Name: "clean.txt"},
}

func TestTextIsAParagraphForEachFinding(t *testing.T) {
	const want = `my site/robots.txt:2:13: error: "/a /<b>" holds a blank, so it is one path that hardly any URL begins with [RT004 multiple-paths] (all)
    2 | Disallow: /a /<b>
      |             ^
      ? Disallow: /a
      ? Disallow: /<b>
  fix: write one path per line, and a blank inside a path as %20
https://example.com/robots.txt: error: status 403 opens the whole site, as if there were no file (RFC 9309 §2.3.1.3) [RT414 status-trap] (all)
  fix: answer 200 with the file, or 404 if nothing is to be closed
2 errors in 2 of 3 files
`
	if got := written(t, lint.Style{}, reports...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func written(t *testing.T, style lint.Style, reports ...lint.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := lint.WriteText(&b, style, reports...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// of returns the report on one file.
func of(text string) lint.Report {
	return lint.Report{Name: "r.txt", Findings: lint.File([]byte(text)), Text: []byte(text)}
}

func TestTextIsWrappedAtBlanks(t *testing.T) {
	const want = `r.txt:2:13: error: "/a /b" holds a blank, so it is
    one path that hardly any URL begins with
    [RT004 multiple-paths] (all)
    2 | Disallow: /a /b
      |             ^
      ? Disallow: /a
      ? Disallow: /b
  fix: write one path per line, and a blank inside
       a path as %20
1 error
`
	if got := written(t, lint.Style{Width: 50}, of("User-agent: *\nDisallow: /a /b\n")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheCaretIsUnderThePlace(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct{ name, line, shown, caret string }{
		{"plain", "Disallow: /a /b", "Disallow: /a /b", "            ^"},
		{"tabs are one column", "Disallow:\t/a\t/b", "Disallow: /a /b", "            ^"},
		{"escape sequences are not passed on", "Disallow: /\x1b[31ma /b", "Disallow: /\uFFFD[31ma /b", "                 ^"},
		{"characters of two columns", "Disallow: /\u4E2D\u6587 /b", "Disallow: /\u4E2D\u6587 /b", "           \u3000\u3000^"},
		{"bytes that are not UTF-8", "Disallow: /\xE9\xE9 /b", "Disallow: /\uFFFD\uFFFD /b", "             ^"},
		{"what is too long is cut on both sides", "Disallow: /" + long + " /" + long,
			"…" + long[:20] + " /" + long[:18] + "…", strings.Repeat(" ", 21) + "^"},
	} {
		got := written(t, lint.Style{Width: 52}, of("User-agent: *\n"+c.line+"\n"))
		if want := "    2 | " + c.shown + "\n      | " + c.caret + "\n"; !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant in it\n%s", c.name, got, want)
		}
	}
}

// Without its colours, coloured text is the plain text.
func TestColoursAddNothingElse(t *testing.T) {
	r := of("User-agent: *\nDisallow: /a /b\nDisalow: /c*\n")
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, width := range []int{0, 40, 80} {
		plain, coloured := written(t, lint.Style{Width: width}, r), written(t, lint.Style{Width: width, Color: true}, r)
		if got := colour.ReplaceAllString(coloured, ""); got != plain || got == coloured {
			t.Errorf("width %d: got\n%s\nwant\n%s", width, got, plain)
		}
	}
	if strings.Contains(written(t, lint.Style{}, r), "\x1b") {
		t.Error("got colours that were not asked for")
	}
}

func TestJSONIsOneObjectForEachReport(t *testing.T) {
	const want = `{"name":"my site/robots.txt","url":null,"findings":[{"id":"RT004","name":"multiple-paths","severity":"error","line":2,"column":13,` +
		`"message":"\"/a /<b>\" holds a blank, so it is one path that hardly any URL begins with",` +
		`"engines":["rfc9309","google","yandex","bing","original"],` +
		`"suggestion":"write one path per line, and a blank inside a path as %20","replacement":null,"example":"Disallow: /a\nDisallow: /<b>","more":null}]}
{"name":"https://example.com/robots.txt","url":"https://example.com/robots.txt","findings":[` +
		`{"id":"RT414","name":"status-trap","severity":"error","line":null,"column":null,` +
		`"message":"status 403 opens the whole site, as if there were no file (RFC 9309 §2.3.1.3)",` +
		`"engines":["rfc9309","google","yandex","bing","original"],` +
		`"suggestion":"answer 200 with the file, or 404 if nothing is to be closed","replacement":null,"example":null,"more":null}]}
{"name":"clean.txt","url":null,"findings":[]}
`
	var b bytes.Buffer
	if err := lint.WriteJSON(&b, reports...); err != nil || b.String() != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, b.String(), want)
	}
}

// full accepts nothing, like a disk without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, write := range map[string]func() error{
		"text":  func() error { return lint.WriteText(full{}, lint.Style{}, reports...) },
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
		t.Errorf("got %+v, want one, short, with its escape shown", found)
	}
}

func TestFindingsBeyondTheBoundAreCounted(t *testing.T) {
	found := only(lint.File([]byte("User-agent: *\n"+strings.Repeat("Noindex: /\n", lint.MaxPerRule+5))), "RT404")
	last := found[len(found)-1]
	if len(found) != lint.MaxPerRule+1 || last.More != 5 || last.Line != lint.MaxPerRule+2 || !strings.Contains(last.Message, "5 more") {
		t.Errorf("got %d findings, the last %+v, want %d, and 5 more", len(found), last, lint.MaxPerRule+1)
	}
}

func TestEnginesHaveNames(t *testing.T) {
	for e, want := range map[lint.Engines]string{
		"": "", "all": "rfc9309 google yandex bing original", "google,seznam": "google seznam", "all,rsl": "rfc9309 google yandex bing original rsl",
	} {
		if got := strings.Join(e.Names(), " "); got != want {
			t.Errorf("%s: got %q, want %q", e, got, want)
		}
	}
	const known = " rfc9309 google yandex bing original apple amazon seznam crawler-commons aipref content-signals rsl "
	for _, r := range lint.Rules() {
		for _, name := range r.Engines.Names() {
			if !strings.Contains(known, " "+name+" ") {
				t.Errorf("%s: %s is no engine", r.ID, name)
			}
		}
	}
}
