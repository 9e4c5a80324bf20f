package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/page"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// The bounds of what the page shows of a file. What decides is shown wherever it stands.
const (
	chunkLines   = 100 // that a browser lays out at a time
	maxPageLines = 20000
	maxPageLine  = 2000 // bytes of a line
	maxExcerpt   = 8    // lines that an answer rests on, besides the one that decides
	maxNumbers   = 10   // of URLs, beside a line
	maxHead      = 28   // bytes of a URL above its column
)

// pageView is what the template of the page shows. Text that others wrote is visible in it,
// except in the form.
type pageView struct {
	Form    pageForm
	Usual   string // the crawler, unless the form names one
	Led     bool   // another site asked the question: it is not answered yet
	Problem *web.Problem
	Answer  *pageAnswer
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

// Crawlers are those to choose from.
func (v *pageView) Crawlers() any { return crawlers }

// Typed is the crawler of the form if it is none of the list.
func (v *pageView) Typed() string {
	if listed(v.Form.Agent) || v.Form.Agent == v.Usual {
		return ""
	}
	return v.Form.Agent
}

// Chosen reports whether the form names a crawler of the list.
func (v *pageView) Chosen(token string) bool { return strings.EqualFold(token, v.Form.Agent) }

// Readers are the dialects by name, and as people call them.
func (v *pageView) Readers() (all [][2]string) {
	for _, d := range answer.Dialects {
		all = append(all, [2]string{answer.DialectName(d), readers[d]})
	}
	return all
}

// Example is a question to try.
func (v *pageView) Example() string {
	return (&pageForm{Pasted: true, Agent: "Googlebot", URLs: "/shop/search?q=hats\n/private/press/2026",
		Robots: "# An example\nUser-agent: *\nDisallow: /private/\nAllow: /private/press/\n\n" +
			"User-agent: Googlebot\nDisallow: /*?q=\n\nUser-agent: GPTBot\nDisallow /\n"}).link()
}

// pageAnswer is the answer to one form.
type pageAnswer struct {
	whole    *site.Gate // of files
	form     *pageForm
	lines    []string
	as       policy.Dialect
	also     string // the group that the crawler obeys if none names it
	readings []answer.Reading
	robots   map[policy.Dialect]*answer.Answer // of a site
	kept     map[int]bool                      // chunks of the file that are shown in any case

	Pasted   bool
	Link     string // empty: the question is too long for one
	Agent    string
	Dialect  string
	Reader   string
	Group    string // that binds the crawler; empty: none does
	URLs     []*pageURL
	Rows     []pageRow
	Came     *pageCame // nil: the file was pasted
	Severity []string  // how many findings there are of each, the worst first
	Mistakes []pageMistake
	Remarks  []pageMistake
	Fixable  bool
	Unlinted bool      // mistakes were not sought
	Parted   bool      // what the page shows was asked for
	Unshown  string    // why not all of that was
	File     *pageFile // nil: there is none
}

func (a *pageAnswer) reading(d policy.Dialect) answer.Reading {
	for _, r := range a.readings {
		if r.Dialect == d {
			return r
		}
	}
	return answer.Reading{}
}

// site answers about a site, as "robots check" does. What follows its name is the first question.
func (a *pageAnswer) site(ctx context.Context, u *url.URL, o fetch.Origin, res *fetch.Result) error {
	lines := a.lines
	if len(lines) == 0 || u.RequestURI() != "/" || a.form.Parts {
		lines = append([]string{u.String()}, lines...)
	}
	for i, text := range lines {
		q := &pageURL{Number: i + 1, URL: answer.Visible(text)}
		if q.url, q.err = siteURL(o, text); q.err == nil {
			q.URL, q.target = answer.Visible(q.url.String()), q.url.RequestURI()
		}
		a.URLs = append(a.URLs, q)
	}
	a.readings = answer.InAllDialects(res)
	mine := a.reading(a.as)
	a.robots = map[policy.Dialect]*answer.Answer{}
	for _, r := range a.readings {
		a.robots[r.Dialect] = a.whole.Answer(o, r.Result)
	}
	a.Came = newCame(mine.Result, answer.NewFetched(mine.Result, a.robots[a.as]))
	if res.StatusCode != 0 {
		served := answer.Served(o, res)
		a.lint(len(res.Body), served.Findings)
	}
	return a.decide(ctx)
}

// edited takes the file of a site into the form, and answers by that.
func (a *pageAnswer) edited(ctx context.Context, u *url.URL, res *fetch.Result) error {
	f := a.form
	if path := u.RequestURI(); path != "/" {
		f.URLs = path + "\n" + f.URLs
	}
	lines, err := f.lines()
	f.Pasted, f.Site, f.Robots, a.lines = true, "", strings.ToValidUTF8(string(res.Body), "\uFFFD"), lines
	a.Pasted = true
	if a.Link = f.link(); err != nil {
		return err
	}
	return a.pasted(ctx)
}

// siteURL reads a question about the site of o.
func siteURL(o fetch.Origin, text string) (*url.URL, error) {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") {
		text = o.String() + text
	}
	u, other, err := askedSite("urls", text)
	if err == nil && other != o {
		err = elsewhere(text)
	}
	return u, err
}

// elsewhere is the error of a URL of another site.
type elsewhere string

func (elsewhere) Error() string {
	return "this URL is of another site, which has a robots.txt of its own"
}

// pasted answers by the file in the form, as "robots match" and "robots lint" do.
func (a *pageAnswer) pasted(ctx context.Context) error {
	text, lines := []byte(a.form.Robots), a.lines
	if len(lines) == 0 {
		lines = []string{"/"}
	}
	for i, line := range lines {
		q := &pageURL{Number: i + 1, URL: answer.Visible(line)}
		q.target, q.err = answer.ReadTarget(policy.RFC9309, line, false)
		a.URLs = append(a.URLs, q)
	}
	for _, d := range answer.Dialects {
		a.readings = append(a.readings, answer.Reading{Dialect: d, Result: &fetch.Result{Policy: d.Parse(text), Dialect: d, Body: text}})
	}
	a.lint(len(text), func() []lint.Finding { return lint.File(text) })
	return a.decide(ctx)
}

// pageURL is a question about one URL, and its answer.
type pageURL struct {
	url    *url.URL // of a site
	target string
	err    error

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

// decide asks p. Only package client knows the target of a URL that goes on the wire.
func (u *pageURL) decide(p *policy.Policy, token string) (client.Answer, error) {
	switch {
	case u.err != nil:
		return client.Answer{}, u.err
	case u.url == nil:
		return client.Answer{Decision: p.Group(token).Decide(u.target)}, nil
	}
	return client.DecideWith(p, token, u.url)
}

// Against names the readers whose verdict is another one.
func (u *pageURL) Against() string {
	var names []string
	for _, d := range u.Dialects {
		if d.Allowed != u.Answer.Allowed {
			names = append(names, d.Reader)
		}
	}
	switch {
	case names == nil:
		return ""
	case u.Answer.Allowed:
		return "refused as read by " + strings.Join(names, ", ")
	default:
		return "allowed as read by " + strings.Join(names, ", ")
	}
}

// Head is the URL above a column of the table.
func (u *pageURL) Head() string {
	if len(u.target) <= maxHead {
		return answer.Visible(u.target)
	}
	return answer.Visible(strings.ToValidUTF8(u.target[:maxHead], "")) + "…"
}

// pageVerdict is a verdict of one dialect.
type pageVerdict struct {
	Reader  string
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
	var allowed, refused, unknown, others int
	for _, u := range a.URLs {
		switch {
		case u.Elsewhere != "":
			others++
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
	if others > 0 {
		text += fmt.Sprintf(", %d of another site", others)
	}
	return text
}

// decide answers all questions, until the client has gone.
func (a *pageAnswer) decide(ctx context.Context) error {
	mine := a.reading(a.as)
	token := crawler{a.Agent, a.as, a.also}.obeys(mine.Result.Policy)
	b, marks := mine.Bound(token), map[int]*pageMark{}
	for _, u := range a.URLs {
		if err := ctx.Err(); err != nil {
			return err
		}
		u.Alone = len(a.URLs) == 1
		a.ask(u, token, b, marks)
	}
	if mine.Result.Body != nil {
		a.table()
		a.show(mine, b, marks)
	}
	return nil
}

// ask puts a question to all readings.
func (a *pageAnswer) ask(u *pageURL, token string, b *answer.Bound, marks map[int]*pageMark) {
	for _, r := range a.readings {
		d, err := u.decide(r.Result.Policy, token)
		if err != nil {
			u.Error = answer.Visible(err.Error())
			if other, is := errors.AsType[elsewhere](err); is {
				u.Elsewhere = (&pageForm{Site: string(other), Agent: a.form.Agent, As: a.form.As}).link()
			}
			return
		}
		v := answer.NewVerdict(u.URL, d)
		if v.Robots = a.robots[r.Dialect]; v.Robots != nil && v.Robots.Error != nil {
			v.Error = *v.Robots.Error
		}
		said := pageVerdict{readers[r.Dialect], v.Allowed, v.Line, answer.Visible(v.Rule), v.Because()}
		u.Dialects = append(u.Dialects, said)
		if r.Dialect == a.as {
			u.Answer, a.Group = &said, answer.Visible(v.Group)
			u.mark(b, d.Decision, marks)
		}
	}
	for _, d := range u.Dialects {
		if first := u.Dialects[0]; d.Allowed != first.Allowed || d.Because != first.Because {
			u.Differ = true
		}
	}
}

// mark keeps the lines that d rests on, and marks them in the file.
func (u *pageURL) mark(b *answer.Bound, d policy.Decision, marks map[int]*pageMark) {
	for _, l := range b.Explain(u.target, d) {
		m := marks[l.Number]
		if m == nil {
			m = new(pageMark)
			marks[l.Number] = m
		}
		agent := b.Names(l.Number)
		m.add(u, l.Decides, agent, d.Allowed)
		if l.Decides || len(u.Excerpt) < maxExcerpt {
			text, _ := shorten(l.Text)
			u.Excerpt = append(u.Excerpt, pageExcerpt{l.Number, text, l.Decides, agent})
		} else {
			u.More++
		}
	}
}

// pageMistake is a finding of package lint.
type pageMistake struct {
	lint.Finding
	About string // address of the rule's explanation
}

// Readers are those whom it concerns, as people call them; empty: all.
func (m *pageMistake) Readers() string {
	names := m.Engines.Names()
	if len(names) >= len(answer.Dialects) {
		return ""
	}
	for i, name := range names {
		names[i] = readerOf(name)
	}
	return strings.Join(names, ", ")
}

// lint keeps the findings about a file: those of it as a whole, and then by line.
func (a *pageAnswer) lint(size int, findings func() []lint.Finding) {
	if a.Unlinted = size > lintAtOnce && !a.form.Lint; a.Unlinted {
		return
	}
	about := map[string]string{}
	for _, r := range lint.Rules() {
		about[r.ID] = r.URL()
	}
	counts := map[lint.Severity]int{}
	for _, f := range findings() {
		a.Fixable = a.Fixable || f.Replacement != "" && f.Changes == ""
		f.Message, f.Suggestion = answer.Visible(f.Message), answer.Visible(f.Suggestion)
		replacement := strings.Split(f.Replacement, "\n")
		for i, l := range replacement {
			replacement[i], _ = shorten(l)
		}
		f.Replacement = strings.Join(replacement, "\n")
		counts[f.Severity]++
		if m := (pageMistake{f, about[f.ID]}); f.Severity == lint.SeverityInfo {
			a.Remarks = append(a.Remarks, m)
		} else {
			a.Mistakes = append(a.Mistakes, m)
		}
	}
	for _, all := range [][]pageMistake{a.Mistakes, a.Remarks} {
		slices.SortStableFunc(all, func(f, g pageMistake) int { return cmp.Compare(f.Line, g.Line) })
	}
	for s, what := range []string{lint.SeverityError: "error", lint.SeverityWarning: "warning", lint.SeverityInfo: "remark"} {
		if n := counts[lint.Severity(s)]; n > 0 {
			a.Severity = append([]string{answer.Plural(n, what)}, a.Severity...)
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
	return answer.Visible(text[:cut]), len(text) - cut
}

// pageFile is a file by lines, which are made as they are written.
type pageFile struct {
	reading answer.Reading
	bound   []bool // by line number
	kept    map[int]bool
	marks   map[int]*pageMark

	Lines  int
	Bytes  int
	Unread bool // there is more than crawlers read
}

// pageMark is what is said beside a line.
type pageMark struct {
	Agent      bool  // it names the crawler
	First      bool  // and is the first to do so
	Allowed    bool  // what it decides
	Decides    []int // URLs; 0 is the only one
	Loses      []int
	MoreDecide int // beyond maxNumbers
	MoreLose   int
	Findings   []pageMistake
}

// add notes what the line is to a URL.
func (m *pageMark) add(u *pageURL, decides, agent, allowed bool) {
	number, numbers, more := u.Number, &m.Loses, &m.MoreLose
	if u.Alone {
		number = 0
	}
	switch {
	case agent:
		m.Agent = true
		return
	case decides: // an empty rule, too, and not as its field says
		m.Allowed, numbers, more = allowed, &m.Decides, &m.MoreDecide
	}
	if len(*numbers) < maxNumbers {
		*numbers = append(*numbers, number)
	} else {
		*more++
	}
}

// pageChunk is some lines of a file, or that some are left out.
type pageChunk struct {
	First, Last int
	Pieces      []pagePiece // none: they are left out
}

// pagePiece is a line of which something is said, or some of which nothing is.
type pagePiece struct {
	Plain template.HTML
	Line  *pageLine
}

type pageLine struct {
	Mark          *pageMark // nil: nothing is said
	Number        int
	Text, Comment string
	Cut           int // bytes at the end that are not shown
	Bound         bool
}

// show keeps the file as r reads it, with what is marked in it.
func (a *pageAnswer) show(r answer.Reading, b *answer.Bound, marks map[int]*pageMark) {
	f := &pageFile{reading: r, kept: a.kept, marks: marks, Bytes: len(r.Result.Body), Unread: len(r.Result.Body) > fetch.MaxBytes}
	if f.Lines = b.Last.Number; b.Last.Text == "" {
		f.Lines-- // it follows the last line end
	}
	f.bound = make([]bool, f.Lines+1)
	for i, l := range b.Agents {
		f.bound[l.Number] = true
		if m := marks[l.Number]; i == 0 && m != nil {
			m.First = true
		}
	}
	for _, l := range b.Rules {
		f.bound[l.Number] = true
	}
	for _, all := range [][]pageMistake{a.Mistakes, a.Remarks} {
		for _, m := range all {
			if m.Line == 0 || m.Line > f.Lines {
				continue
			}
			if marks[m.Line] == nil {
				marks[m.Line] = new(pageMark)
			}
			marks[m.Line].Findings = append(marks[m.Line].Findings, m)
		}
	}
	a.File = f
}

// Chunks divides the lines. Of a longer file only the chunks remain in which something decides.
func (f *pageFile) Chunks() iter.Seq[pageChunk] {
	return func(yield func(pageChunk) bool) {
		var c pageChunk
		var plain []byte
		flush := func() {
			if len(plain) > 0 {
				c.Pieces = append(c.Pieces, pagePiece{Plain: template.HTML(plain)}) // escaped by package page
				plain = plain[:0]
			}
		}
		for l := range lint.Lines(f.reading.Dialect, f.reading.Result.Body) {
			if l.Number > f.Lines {
				break
			}
			c.First, c.Last = cmp.Or(c.First, l.Number), l.Number
			keep := f.keeps(l.Number)
			if keep {
				if line := f.line(l); line.Mark == nil && line.Cut == 0 {
					plain = page.AppendLine(plain, line.Number, line.Bound, line.Text, line.Comment)
				} else {
					flush()
					c.Pieces = append(c.Pieces, pagePiece{Line: line})
				}
			}
			if l.Number == f.Lines || l.Number%chunkLines == 0 && (keep || f.keeps(l.Number+1)) {
				flush()
				if !yield(c) {
					return
				}
				c = pageChunk{}
			}
		}
	}
}

// chunkOf numbers the chunk of a line.
func chunkOf(line int) int { return (line - 1) / chunkLines }

func (f *pageFile) keeps(line int) bool {
	return chunkOf(line) < maxPageLines/chunkLines || f.kept[chunkOf(line)]
}

func (f *pageFile) line(l lint.Line) *pageLine {
	text, cut := shorten(l.Text)
	p := &pageLine{Number: l.Number, Text: text, Cut: cut, Bound: f.bound[l.Number], Mark: f.marks[l.Number]}
	if at := strings.IndexByte(text, '#'); l.Comment && at >= 0 {
		p.Text, p.Comment = text[:at], text[at:]
	}
	return p
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
func newCame(res *fetch.Result, f *answer.Fetched) *pageCame {
	a := f.Robots
	c := &pageCame{
		URL: answer.Visible(a.URL), Status: "no answer", Age: time.Duration(a.Age) * time.Second,
		Lifetime: answer.Visible(answer.ExplainLifetime(res, a)), Truncated: a.Truncated,
		Effect: map[string]string{
			answer.OutcomeRules: "its rules hold", "unavailable": "there is no file: all is allowed",
			"unreachable": "all is refused until it can be read",
		}[a.Outcome],
	}
	if a.Wall != "" {
		c.Effect += "; but it may be the answer of a wall, " + answer.Visible(a.Wall)
	}
	if a.Status != nil {
		c.Status = strings.TrimSpace(fmt.Sprint(*a.Status, " ", http.StatusText(*a.Status)))
	}
	if a.Error != nil {
		c.Error = answer.Visible(strings.TrimPrefix(*a.Error, "fetch: "))
	}
	for _, r := range a.Redirects {
		c.Redirects = append(c.Redirects, answer.Visible(r))
	}
	for _, name := range answer.CachingFields {
		for _, value := range f.Header[name] {
			value, _ = shorten(value)
			c.Fields = append(c.Fields, [2]string{strings.ToLower(name), value})
		}
	}
	if f.Bytes > 0 {
		c.Holds = fmt.Sprintf("%s, %s, %s in %s", answer.Plural(f.Groups, "group"), answer.Plural(f.Rules, "rule"),
			answer.Plural(len(f.Sitemaps), "sitemap"), answer.Plural(f.Bytes, "byte"))
	}
	return c
}

// bridged tells of a good copy that the decisions of the service rest on in an outage.
func (c *pageCame) bridged(res *fetch.Result, err error) {
	if c.Error != "" && err == nil && res.Err == nil {
		c.Bridge = "/v1/decide goes on with the copy of " + res.Time.UTC().Format("2 January 2006, 15:04:05 MST")
	}
}
