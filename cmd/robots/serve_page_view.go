package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// The bounds of what the page shows of a file. What decides is shown wherever it stands.
const (
	chunkLines   = 100 // that a browser lays out at a time
	maxPageLines = 20000
	maxPageLine  = 2000 // bytes of a line
	maxExcerpt   = 8    // lines that an answer rests on, besides the one that decides
	maxNumbers   = 10   // of URLs, beside a line
)

// pageView is what the template of the page shows. Text that others wrote is visible in it,
// except in the form.
type pageView struct {
	Form     pageForm
	Agent    string // unless the form names one
	Dialects []string
	Problem  *serve.Problem
	Answer   *pageAnswer
}

// Title is that of the document.
func (v *pageView) Title() string {
	switch {
	case v.Problem != nil:
		return "Not answered"
	case v.Answer != nil:
		return v.Answer.Summary()
	}
	return "Which line of robots.txt decides?"
}

// pageAnswer is the answer to one form.
type pageAnswer struct {
	asked    *pageForm
	Link     string // empty: the question is too long for one
	Agent    string
	Dialect  string
	Group    string // that binds the crawler; empty: none does
	URLs     []*pageURL
	Came     *pageCame     // nil: the file was pasted
	Severity []string      // how many findings there are of each, the worst first
	OfAll    []pageMistake // of the file or its answer as a whole
	ByLine   []pageMistake
	File     *pageFile // nil: there is none
}

// pageURL is the answer about one URL.
type pageURL struct {
	Number    int
	URL       string
	Error     string // the question was not understood
	Elsewhere string // link to the question about another site
	Answer    *pageVerdict
	Excerpt   []pageExcerpt
	More      int // lines that the excerpt leaves out
	Dialects  []pageVerdict
	Differ    bool // the dialects do
	Alone     bool // there is no other question
}

// Against names the dialects whose verdict is another one.
func (u *pageURL) Against() string {
	var names []string
	for _, d := range u.Dialects {
		if d.Allowed != u.Answer.Allowed {
			names = append(names, d.Dialect)
		}
	}
	switch {
	case names == nil:
		return ""
	case u.Answer.Allowed:
		return "refused as " + strings.Join(names, ", ")
	default:
		return "allowed as " + strings.Join(names, ", ")
	}
}

// pageVerdict is a verdict of one dialect.
type pageVerdict struct {
	Dialect string
	Allowed bool
	Line    int
	Rule    string
	Because string
}

// Word is the verdict in a word.
func (v *pageVerdict) Word() string {
	if v.Allowed {
		return "Allowed"
	}
	return "Refused"
}

// pageExcerpt is a line that an answer rests on.
type pageExcerpt struct {
	Number  int
	Text    string
	Decides bool
	Agent   bool // it names the crawler
}

// pageMistake is a finding of package lint.
type pageMistake struct {
	lint.Finding
	About string // address of the rule's explanation
}

// pageFile is a file by lines.
type pageFile struct {
	Chunks []*pageChunk
	Lines  int
	Bytes  int
	Unread bool // there is more than crawlers read
}

// pageChunk is some lines of a file, or that some are left out.
type pageChunk struct {
	First, Last int
	Lines       []pageLine // none: they are left out
}

// pageLine is one line of a file.
type pageLine struct {
	Number        int
	Text, Comment string
	Cut           int   // bytes at the end that are not shown
	Bound         bool  // it belongs to the crawler's group
	Agent         bool  // and names the crawler
	First         bool  // and is the first to do so
	Allowed       bool  // what it decides
	Decides       []int // URLs; 0 is the only one
	Loses         []int
	MoreDecide    int // beyond maxNumbers
	MoreLose      int
	Findings      []pageMistake
}

// Summary is the answer in a line.
func (a *pageAnswer) Summary() string {
	if len(a.URLs) == 1 {
		u := a.URLs[0]
		switch {
		case u.Answer == nil:
			return "Not understood"
		case u.Answer.Line > 0:
			return fmt.Sprintf("%s by line %d", u.Answer.Word(), u.Answer.Line)
		}
		return u.Answer.Word() + ": " + u.Answer.Because
	}
	var allowed, refused, unknown int
	for _, u := range a.URLs {
		switch {
		case u.Answer == nil:
			unknown++
		case u.Answer.Allowed:
			allowed++
		default:
			refused++
		}
	}
	text := fmt.Sprintf("%d of %d refused", refused, len(a.URLs))
	if refused == 0 {
		text = fmt.Sprintf("%d of %d allowed", allowed, len(a.URLs))
	}
	if unknown > 0 {
		text += fmt.Sprintf(", %d not understood", unknown)
	}
	return text
}

// ask puts a question to all readings, and keeps the answers.
func (a *pageAnswer) ask(number int, text string, readings []reading, ask func(reading) (*verdict, error)) {
	u := &pageURL{Number: number, URL: visible(text)}
	a.URLs = append(a.URLs, u)
	for _, r := range readings {
		v, err := ask(r)
		if err != nil {
			u.Error = visible(err.Error())
			if other, is := errors.AsType[elsewhere](err); is {
				u.Elsewhere = (&pageForm{Site: string(other), Agent: a.asked.Agent, As: a.asked.As}).link()
			}
			return
		}
		answer := pageVerdict{
			Dialect: dialectName(r.dialect), Allowed: v.Allowed, Line: v.Line,
			Rule: visible(v.Rule), Because: v.because(),
		}
		u.Dialects = append(u.Dialects, answer)
		if answer.Dialect == a.Dialect {
			u.Answer, u.URL, a.Group = &answer, visible(v.URL), visible(v.Group)
			u.excerpt(v.Lines)
		}
	}
	for _, d := range u.Dialects {
		if first := u.Dialects[0]; d.Allowed != first.Allowed || d.Because != first.Because {
			u.Differ = true
		}
	}
}

// excerpt keeps the lines that the answer rests on.
func (u *pageURL) excerpt(lines []fileLine) {
	for _, l := range lines {
		u.Excerpt = append(u.Excerpt, pageExcerpt{Number: l.Number, Text: l.Text, Decides: l.Decides})
	}
}

// lint keeps findings.
func (a *pageAnswer) lint(findings []lint.Finding) {
	about := map[string]string{}
	for _, r := range lint.Rules() {
		about[r.ID] = r.URL()
	}
	counts := map[lint.Severity]int{}
	for _, f := range findings {
		f.Message, f.Suggestion = visible(f.Message), visible(f.Suggestion)
		replacement := strings.Split(f.Replacement, "\n")
		for i, l := range replacement {
			replacement[i], _ = shorten(l)
		}
		f.Replacement = strings.Join(replacement, "\n")
		counts[f.Severity]++
		if m := (pageMistake{f, about[f.ID]}); f.Line == 0 {
			a.OfAll = append(a.OfAll, m)
		} else {
			a.ByLine = append(a.ByLine, m)
		}
	}
	slices.SortStableFunc(a.ByLine, func(f, g pageMistake) int { return cmp.Compare(f.Line, g.Line) })
	for s, what := range []string{lint.SeverityError: "error", lint.SeverityWarning: "warning", lint.SeverityInfo: "remark"} {
		if n := counts[lint.Severity(s)]; n > 0 {
			a.Severity = append([]string{plural(n, what)}, a.Severity...)
		}
	}
}

// shorten is text as it is shown, and how many bytes of it are not.
func shorten(text string) (string, int) {
	text = strings.ReplaceAll(text, "\t", "    ")
	cut := min(len(text), maxPageLine)
	for cut > 0 && cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return visible(text[:cut]), len(text) - cut
}

// show keeps the file as r reads it for a crawler. It comes after the questions, whose lines
// are marked in it.
func (a *pageAnswer) show(r reading, token string) {
	if r.result.Body == nil {
		a.finish(nil)
		return
	}
	lines := make([]pageLine, 0, 64)
	for l := range lint.Lines(r.dialect, r.result.Body) {
		lines = append(lines, newPageLine(l))
	}
	if n := len(lines); n > 0 && lines[n-1].Text == "" && lines[n-1].Comment == "" {
		lines = lines[:n-1] // what follows the last line end
	}
	first := true
	for l, rule := range r.bound(token) {
		at := &lines[l.Number-1]
		at.Bound, at.Agent = true, rule == nil
		at.First = rule == nil && first
		first = first && rule != nil
	}
	for _, f := range a.ByLine {
		if f.Line <= len(lines) {
			lines[f.Line-1].Findings = append(lines[f.Line-1].Findings, f)
		}
	}
	a.finish(lines)
	a.File = &pageFile{
		Chunks: chunked(lines), Lines: len(lines), Bytes: len(r.result.Body),
		Unread: len(r.result.Body) > fetch.MaxBytes,
	}
}

// finish marks the lines of the excerpts, which are cut then.
func (a *pageAnswer) finish(lines []pageLine) {
	for _, u := range a.URLs {
		u.Alone = len(a.URLs) == 1
		for i := range u.Excerpt {
			e := &u.Excerpt[i]
			if e.Number <= len(lines) {
				l := &lines[e.Number-1]
				e.Agent = l.Agent
				if e.Decides { // an empty rule decides, too, and not as its field says
					l.Allowed = u.Answer.Allowed
				}
				if u.Alone {
					l.mark(0, e)
				} else {
					l.mark(u.Number, e)
				}
			}
			e.Text, _ = shorten(e.Text)
		}
		u.cut()
	}
}

// mark marks a line that e, of the answer about a URL, rests on.
func (l *pageLine) mark(url int, e *pageExcerpt) {
	numbers, more := &l.Loses, &l.MoreLose
	switch {
	case l.Agent:
		return
	case e.Decides:
		numbers, more = &l.Decides, &l.MoreDecide
	}
	if len(*numbers) < maxNumbers {
		*numbers = append(*numbers, url)
	} else {
		*more++
	}
}

// cut leaves the line that decides in the excerpt, and the first of the others.
func (u *pageURL) cut() {
	others := 0
	u.Excerpt = slices.DeleteFunc(u.Excerpt, func(e pageExcerpt) bool {
		if e.Decides {
			return false
		}
		others++
		return others > maxExcerpt
	})
	u.More = max(others-maxExcerpt, 0)
}

func newPageLine(l lint.Line) pageLine {
	text, cut := shorten(l.Text)
	p := pageLine{Number: l.Number, Text: text, Cut: cut}
	if at := strings.IndexByte(text, '#'); l.Comment && at >= 0 {
		p.Text, p.Comment = text[:at], text[at:]
	}
	return p
}

// chunked divides lines. Of a longer file only the chunks remain in which something decides.
func chunked(lines []pageLine) (chunks []*pageChunk) {
	for i := 0; i < len(lines); i += chunkLines {
		part := lines[i:min(i+chunkLines, len(lines))]
		c := &pageChunk{part[0].Number, part[len(part)-1].Number, part}
		decides := func(l pageLine) bool { return len(l.Decides) > 0 }
		if i < maxPageLines || slices.ContainsFunc(part, decides) {
			chunks = append(chunks, c)
			continue
		}
		if last := chunks[len(chunks)-1]; last.Lines == nil {
			last.Last = c.Last
			continue
		}
		c.Lines = nil
		chunks = append(chunks, c)
	}
	return chunks
}

// pageCame is how a file came.
type pageCame struct {
	URL       string
	Status    string
	Effect    string
	Error     string
	Redirects []string
	Age       time.Duration
	Lifetime  string
	Holds     string
	Truncated bool
	Bridge    string // what holds in an outage
	Fields    [][2]string
}

// newCame is what "robots fetch" shows above the file.
func newCame(res *fetch.Result, f *fetched) *pageCame {
	a := f.Robots
	c := &pageCame{
		URL: visible(a.URL), Status: "no answer", Age: time.Duration(a.Age) * time.Second,
		Lifetime: visible(explainLifetime(res, a)), Truncated: a.Truncated,
		Effect: map[string]string{
			outcomeRules: "its rules hold", "unavailable": "there is no file: all is allowed",
			"unreachable": "all is refused until it can be read",
		}[a.Outcome],
	}
	if a.Status != nil {
		c.Status = strings.TrimSpace(fmt.Sprint(*a.Status, " ", http.StatusText(*a.Status)))
	}
	if a.Error != nil {
		c.Error = visible(strings.TrimPrefix(*a.Error, "fetch: "))
	}
	for _, r := range a.Redirects {
		c.Redirects = append(c.Redirects, visible(r))
	}
	for _, name := range cachingFields {
		for _, value := range f.Header[name] {
			value, _ = shorten(value)
			c.Fields = append(c.Fields, [2]string{strings.ToLower(name), value})
		}
	}
	if f.Bytes > 0 {
		c.Holds = fmt.Sprintf("%s, %s, %s in %s", plural(f.Groups, "group"), plural(f.Rules, "rule"),
			plural(len(f.Sitemaps), "sitemap"), plural(f.Bytes, "byte"))
	}
	return c
}

// bridged tells of a good copy that the decisions of the service rest on in an outage.
func (c *pageCame) bridged(res *fetch.Result, err error) {
	if c.Error != "" && err == nil && res.Err == nil {
		c.Bridge = "/v1/decide goes on with the copy of " + res.Time.UTC().Format("2 January 2006, 15:04:05 MST")
	}
}
