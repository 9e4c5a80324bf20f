package serve

// What page.html shows, made of what readings.go has found out. The template uses the exported fields and methods here
// by name, and the compiler does not see that: serve_page_test.go does. What is exported is there for the template.

import (
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/sitemap"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// The bounds of what the page shows of a file. A line that decides is quoted wherever it stands. A file of 500 KiB may
// have as many lines, and a line may be as long: a page of that no browser would lay out in time.
const (
	chunkLines   = 100 // that a browser lays out at a time
	maxPageLines = 20000
	maxPageLine  = 2000 // bytes of a line
	maxExcerpt   = 8    // lines that an answer rests on, besides the one that decides
	maxHead      = 28   // bytes of a URL above its column
)

// pageView is what the template of the page shows. Text that others wrote is visible in it, except in the form.
type pageView struct {
	Form    pageForm
	Usual   string // the crawler, unless the form names one
	Led     bool   // another site asked the question: it is not answered yet
	Problem *web.Problem
	Answer  *pageAnswer
}

func (v *pageView) Crawlers() any {
	return slices.DeleteFunc(slices.Clone(answer.Crawlers[:]), func(of answer.Purpose) bool { return of.For == "" })
}

// Typed is the crawler of the form if it is none of the list, for the field in which a token is typed.
func (v *pageView) Typed() string {
	if agent := v.Form.Agent; agent != answer.AnyOther && agent != v.Usual {
		if _, known := answer.KnownCrawler(agent); !known {
			return agent
		}
	}
	return ""
}

func (v *pageView) Chosen(token string) bool { return strings.EqualFold(token, v.Form.Agent) }

func (v *pageView) Readers() (all [][2]string) {
	for _, d := range answer.Dialects {
		all = append(all, [2]string{answer.DialectName(d), readers[d]})
	}
	return all
}

// Example is a link to a question to try, about a file in the link: no site is asked for it. Its last line has a mistake
// to find.
func (v *pageView) Example() string {
	return (&pageForm{Pasted: true, Agent: "Googlebot", URLs: "/shop/search?q=hats\n/private/press/2026",
		Robots: "# An example\nUser-agent: *\nDisallow: /private/\nAllow: /private/press/\n\n" +
			"User-agent: Googlebot\nDisallow: /*?q=\n\nUser-agent: GPTBot\nDisallow /\n"}).Link()
}

type pageAnswer struct {
	asker    answer.Asker   // as the form says
	others   []answer.Asker // of the table
	lines    []string
	readings []pageReading // in the order of answer.Dialects

	Form     *pageForm
	Token    string // that was asked about
	Reader   string
	Group    string // that binds the crawler; empty: none does
	URLs     []*pageURL
	Rows     []pageRow
	Came     *pageCame // nil: the file was pasted
	Severity []string  // how many findings there are of each, the worst first
	Mistakes []pageMistake
	Remarks  []pageMistake
	Unlinted bool // mistakes were not sought
	Listings []answer.Listing
	Sitemaps *pageSitemaps // nil: they were not read
	Unread   []string      // why the page or its sitemaps were not read
	File     *pageFile     // nil: there is none
}

// pageReading is the file in a dialect. There is one for each, so that the page can show where they differ.
type pageReading struct {
	*fetch.Result
	robots *answer.Answer // how it came; nil: it was pasted
}

type pageURL struct {
	url    *url.URL // of a site
	target string
	err    error

	Number   int
	URL      string
	Error    string // the question was not understood
	Answer   *pageVerdict
	Excerpt  []pageExcerpt
	More     int // lines that the excerpt leaves out
	Dialects []pageVerdict
	Differ   bool // the dialects do
	Alone    bool // there is no other question
}

// Against names the readers whose verdict is another one. It says what they do, so that it can stand alone, beside an
// answer that is folded.
func (u *pageURL) Against() string {
	var names []string
	for _, d := range u.Dialects {
		if d.Allowed != u.Answer.Allowed {
			names = append(names, d.Reader)
		}
	}
	if names == nil {
		return ""
	}
	other := map[bool]string{true: "refused", false: "allowed"}[u.Answer.Allowed]
	return other + " as read by " + strings.Join(names, ", ")
}

func (u *pageURL) Head() string {
	if len(u.target) <= maxHead {
		return answer.Visible(u.target)
	}
	return answer.Visible(strings.ToValidUTF8(u.target[:maxHead], "")) + "…"
}

type pageVerdict struct {
	answer.Verdict
	Reader string
}

// Word is the verdict in a word. The page has it beside each sign, for those who do not see colours or signs.
func (v *pageVerdict) Word() string {
	if v.Allowed {
		return "Allowed"
	}
	return "Refused"
}

type pageExcerpt struct {
	answer.FileLine
	Agent bool // it names the crawler
}

// Summary is the answer in a line, which is also the title of the page, and what a screen reader says when the answer
// comes.
func (a *pageAnswer) Summary() string {
	if len(a.URLs) == 1 {
		u := a.URLs[0]
		switch {
		case u.Answer == nil:
			return "Not understood"
		case u.Answer.Line > 0:
			return fmt.Sprintf("%s by line %d", u.Answer.Word(), u.Answer.Line)
		}
		return u.Answer.Word() + ": " + u.Answer.Because()
	}
	count := map[bool]int{}
	for _, u := range a.URLs {
		if u.Answer != nil {
			count[u.Answer.Allowed]++
		}
	}
	text := fmt.Sprintf("%d of %d refused", count[false], len(a.URLs))
	if odd := len(a.URLs) - count[false] - count[true]; odd > 0 {
		text += fmt.Sprintf(", %d not understood", odd)
	}
	return text
}

type pageMistake struct{ lint.Finding }

func (m *pageMistake) About() string { return lint.Rule{ID: m.ID, Name: m.Name}.URL() }

// Readers are those whom it concerns, as people call them; empty: all.
func (m *pageMistake) Readers() string {
	names := m.Engines.Names()
	if len(names) >= len(answer.Dialects) {
		return ""
	}
	for i, name := range names {
		if d, err := answer.DialectByName(name); err == nil {
			names[i] = readers[d]
		}
	}
	return strings.Join(names, ", ")
}

// shorten is text as it is shown, and how many bytes of it are not. It is cut between characters: half of one would be
// shown as escapes that are not in the file.
func shorten(text string) (string, int) {
	// Visible would escape it.
	text = strings.ReplaceAll(text, "\t", "    ")
	cut := min(len(text), maxPageLine)
	for cut > 0 && cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return answer.Visible(text[:cut]), len(text) - cut
}

// pageFile is a file by lines. They are made as they are written, by Chunks, so that not all of them are in
// memory at once.
type pageFile struct {
	reading *fetch.Result
	bound   *answer.Bound
	binds   []bool            // by line number: it is of the group that binds
	marks   map[int]*pageMark // by line number

	Lines  int
	Bytes  int
	Unread bool // there is more than crawlers read
}

// pageMark is what is said beside a line. Most lines have none. What matches and loses is in the excerpts alone.
type pageMark struct {
	Agent    bool  // it names the crawler
	First    bool  // and is the first to do so
	Allowed  bool  // what it decides
	Decides  []int // URLs; 0 is the only one
	Findings []pageMistake
}

// mark is what is said beside a line, which may be nothing yet.
func (f *pageFile) mark(line int) *pageMark {
	if f.marks[line] == nil {
		f.marks[line] = new(pageMark)
	}
	return f.marks[line]
}

// pageChunk is what a browser lays out at a time.
type pageChunk []*pageLine

func (c pageChunk) First() int { return c[0].Number }
func (c pageChunk) Last() int  { return c[len(c)-1].Number }

type pageLine struct {
	Mark          *pageMark // nil: nothing is said
	Number        int
	Text, Comment string
	Cut           int // bytes at the end that are not shown
	Bound         bool
}

// show keeps the file, in which the questions have made their marks, and adds the findings.
func (a *pageAnswer) show(f *pageFile) {
	f.Bytes, f.Lines = len(f.reading.Body), f.bound.Last.Number
	f.Unread = f.Bytes > answer.MaxFile
	if f.bound.Last.Text == "" {
		f.Lines-- // it follows the last line end
	}
	f.binds = make([]bool, f.Lines+1)
	for _, all := range [][]lint.Line{f.bound.Agents, f.bound.Rules} {
		for _, l := range all {
			f.binds[l.Number] = true
		}
	}
	for _, m := range slices.Concat(a.Mistakes, a.Remarks) {
		if m.Line > 0 && m.Line <= f.Lines {
			mark := f.mark(m.Line)
			mark.Findings = append(mark.Findings, m)
		}
	}
	a.File = f
}

// Chunks are the lines that are shown. The template calls it while the answer is written.
func (f *pageFile) Chunks() iter.Seq[pageChunk] {
	return func(yield func(pageChunk) bool) {
		var c pageChunk
		for l := range lint.Lines(f.reading.Dialect, f.reading.Body) {
			if l.Number > min(f.Lines, maxPageLines) {
				break
			}
			if c = append(c, f.line(l)); len(c) == chunkLines {
				if !yield(c) {
					return
				}
				c = nil
			}
		}
		if c != nil {
			yield(c)
		}
	}
}

// Left is how many lines are not shown.
func (f *pageFile) Left() int { return max(f.Lines-maxPageLines, 0) }

// line is l as it is shown. The comment is set apart for its colour.
func (f *pageFile) line(l lint.Line) *pageLine {
	text, cut := shorten(l.Text)
	p := &pageLine{Number: l.Number, Text: text, Cut: cut, Bound: f.binds[l.Number], Mark: f.marks[l.Number]}
	if at := strings.IndexByte(text, '#'); l.Comment && at >= 0 {
		p.Text, p.Comment = text[:at], text[at:]
	}
	return p
}

// pageSitemaps is what a robots.txt refuses of the URLs in the sitemaps that it names.
type pageSitemaps struct {
	sitemap.Count
	Failed sitemap.Count // of sitemaps that were not read to their end, by why, of which maxSitemaps bounds the number
	Late   bool          // time was up
}

func (s *pageSitemaps) failed(loc string, err error) {
	why, _ := shorten(strings.TrimPrefix(err.Error(), fmt.Sprintf("Get %q: ", loc)))
	loc, _ = shorten(answer.Redacted(loc))
	s.Failed.Note(why, 0, loc)
}

type pageCame struct {
	*answer.Fetched
	Error    string
	Lifetime string
	Bridge   string // what holds in an outage
	Fields   [][2]string
}

// newCame is what "robots fetch" shows above the file, without the file itself, which is a pageFile.
func newCame(r pageReading) *pageCame {
	f := answer.NewFetched(r.Result, r.robots)
	f.Body, f.BodyB64 = nil, nil
	c := &pageCame{Fetched: f, Lifetime: answer.ExplainLifetime(r.Result, r.robots)}
	if f.Robots.Error != nil {
		c.Error = strings.TrimPrefix(*f.Robots.Error, "fetch: ")
	}
	for _, name := range answer.CachingFields {
		for _, value := range f.Header[name] {
			value, _ = shorten(value)
			c.Fields = append(c.Fields, [2]string{strings.ToLower(name), value})
		}
	}
	return c
}

// bridged tells of a good copy that the decisions of the service rest on in an outage. Without it, people would see a
// page that says "refused" and a crawler that goes on.
func (c *pageCame) bridged(res *fetch.Result, err error) {
	if c.Error != "" && err == nil && res.Err == nil {
		c.Bridge = "/v1/decide goes on with the copy of " + res.Time.UTC().Format("2 January 2006, 15:04:05 MST")
	}
}
