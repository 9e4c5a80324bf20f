package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// The questions of the page, put to each reading of a file. site and pasted begin; both make pageURLs and
// readings, have the file linted, and go on in decide, which asks each question (ask, mark) and then makes
// the table and the file.

// reading is that of the file in a dialect. There is one for each.
func (a *pageAnswer) reading(d policy.Dialect) pageReading {
	return a.readings[slices.Index(answer.Dialects[:], d)]
}

// site answers about a site, as "robots check" does. What follows its name is the first question.
func (a *pageAnswer) site(
	ctx context.Context, u *url.URL, o fetch.Origin, res *fetch.Result, until time.Time,
) error {
	lines := a.lines
	// The URL that names the site is a question itself, unless it is only a name and there are others.
	if len(lines) == 0 || u.RequestURI() != "/" {
		lines = append([]string{u.String()}, lines...)
	}
	for i, text := range lines {
		q := &pageURL{Number: i + 1, URL: answer.Visible(answer.Redacted(text))}
		if q.url, q.err = siteURL(o, text); q.err == nil {
			q.URL, q.target = answer.Visible(q.url.Redacted()), q.url.RequestURI()
		}
		a.URLs = append(a.URLs, q)
	}
	for _, r := range answer.InAllDialects(res) {
		a.readings = append(a.readings, pageReading{r, answer.New(o, r, until)})
	}
	a.Came = newCame(a.reading(a.asker.Dialect))
	if answer.HasServed(res) {
		served := answer.Served(o, res)
		a.lint(len(res.Body), served.Findings)
	}
	return a.decide(ctx)
}

// edited takes the file of a site into the form, and answers by that: from here on the question is about a pasted file,
// and the site is not asked again. A form holds text only, so what is not UTF-8 is lost.
func (a *pageAnswer) edited(ctx context.Context, u *url.URL, res *fetch.Result) error {
	f := a.Form
	if path := u.RequestURI(); path != "/" {
		f.URLs = path + "\n" + f.URLs
	}
	lines, err := f.lines()
	f.Pasted, f.Site, f.Robots, a.lines = true, "", strings.ToValidUTF8(string(res.Body), "\uFFFD"), lines
	if err != nil {
		return err
	}
	return a.pasted(ctx)
}

// siteURL reads a question about the site of o, of which a path will do. What begins with two slashes names a host (RFC
// 3986 §4.2), so it is no path.
func siteURL(o fetch.Origin, text string) (*url.URL, error) {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") {
		text = o.String() + text
	}
	u, other, err := siteOf("urls", text)
	if err == nil && other != o {
		err = errors.New("this URL is of another site, which has a robots.txt of its own")
	}
	return u, err
}

// pasted answers by the file in the form, as "robots match" and "robots lint" do.
func (a *pageAnswer) pasted(ctx context.Context) error {
	text, lines := []byte(a.Form.Robots), a.lines
	if len(lines) == 0 {
		lines = []string{"/"}
	}
	for i, line := range lines {
		q := &pageURL{Number: i + 1, URL: answer.Visible(line)}
		q.target, q.err = answer.ReadTarget(policy.RFC9309, line, false)
		a.URLs = append(a.URLs, q)
	}
	for _, r := range answer.InAllDialects(&fetch.Result{StatusCode: http.StatusOK, Body: text}) {
		a.readings = append(a.readings, pageReading{Result: r})
	}
	a.lint(len(text), func() []lint.Finding { return lint.File(text) })
	return a.decide(ctx)
}

// decide asks p for a crawler. A question about a pasted file has a target as it is written, and no URL.
func (u *pageURL) decide(p *policy.Policy, k *answer.Asker) (client.Answer, error) {
	switch {
	case u.err != nil:
		return client.Answer{}, u.err
	case u.url == nil:
		return client.Answer{Decision: p.Group(k.Obeys(p)).Decide(u.target)}, nil
	}
	return k.Judge(p, u.url)
}

// decide answers all questions, until the client has gone: fifty of a large file take long enough to look.
func (a *pageAnswer) decide(ctx context.Context) error {
	mine := a.reading(a.asker.Dialect)
	bound := answer.BoundBy(mine.Result, a.asker.Obeys(mine.Policy))
	f := &pageFile{reading: mine.Result, bound: bound, marks: map[int]*pageMark{}}
	for _, u := range a.URLs {
		if err := ctx.Err(); err != nil {
			return err
		}
		u.Alone = len(a.URLs) == 1
		a.ask(u, f)
	}
	if mine.Body != nil {
		a.table()
		a.show(f)
	}
	return nil
}

// ask puts a question to all readings, for the crawler in each: so the page can say that the engines do not
// agree. What a site wrote is made visible here, for all that shows it. Only the reading of its own dialect
// is marked in the file and is the answer; the others stand beside it.
func (a *pageAnswer) ask(u *pageURL, f *pageFile) {
	for _, r := range a.readings {
		d, err := u.decide(r.Policy, &a.asker)
		if err != nil {
			u.Error = answer.Visible(err.Error())
			return
		}
		v := answer.NewVerdict(u.URL, d)
		if v.Robots = r.robots; v.Robots != nil && v.Robots.Error != nil {
			v.Error = *v.Robots.Error
		}
		v.Rule, _ = shorten(v.Rule)
		v.Group = answer.Visible(v.Group)
		said := pageVerdict{v, readers[r.Dialect]}
		u.Dialects = append(u.Dialects, said)
		if r.Dialect == a.asker.Dialect {
			u.Answer, a.Group = &said, v.Group
			u.mark(f, d.Decision)
		}
		// By another line is another answer, even with the same verdict.
		first := &u.Dialects[0]
		u.Differ = u.Differ || said.Allowed != first.Allowed || said.Because() != first.Because()
	}
}

// mark keeps the lines that d rests on, and marks in the file which of them decides, and which name the crawler.
func (u *pageURL) mark(f *pageFile, d policy.Decision) {
	number := u.Number
	if u.Alone {
		number = 0
	}
	for _, l := range f.bound.Explain(u.target, d) {
		at, agent := slices.BinarySearchFunc(f.bound.Agents, l.Number, func(a lint.Line, n int) int { return a.Number - n })
		if agent {
			m := f.mark(l.Number)
			m.Agent, m.First = true, at == 0
		} else if l.Decides {
			m := f.mark(l.Number) // of an empty rule, too, which does not as its field says
			m.Allowed, m.Decides = d.Allowed, append(m.Decides, number)
		}
		if l.Decides || len(u.Excerpt) < maxExcerpt {
			l.Text, _ = shorten(l.Text)
			u.Excerpt = append(u.Excerpt, pageExcerpt{l, agent})
		} else {
			u.More++
		}
	}
}

func shortLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i], _ = shorten(l)
	}
	return strings.Join(lines, "\n")
}

// lint keeps the findings about a file: those of it as a whole, whose line is 0, and then by line. They are
// not sought in a long file unless the form asks: that takes longer than to decide. Remarks stand apart from mistakes,
// as nothing is wrong with what they are about.
func (a *pageAnswer) lint(size int, findings func() []lint.Finding) {
	if a.Unlinted = size > lintAtOnce && !a.Form.Lint; a.Unlinted {
		return
	}
	found := findings()
	slices.SortStableFunc(found, func(f, g lint.Finding) int { return cmp.Compare(f.Line, g.Line) })
	counts := map[lint.Severity]int{}
	for _, f := range found {
		f.Message, f.Suggestion = answer.Visible(f.Message), answer.Visible(f.Suggestion)
		f.Replacement, f.Example = shortLines(f.Replacement), shortLines(f.Example)
		counts[f.Severity]++
		if f.Severity == lint.SeverityInfo {
			a.Remarks = append(a.Remarks, pageMistake{f})
		} else {
			a.Mistakes = append(a.Mistakes, pageMistake{f})
		}
	}
	for s, what := range []string{lint.SeverityError: "error", lint.SeverityWarning: "warning", lint.SeverityInfo: "remark"} {
		if n := counts[lint.Severity(s)]; n > 0 {
			a.Severity = append([]string{answer.Plural(n, what)}, a.Severity...)
		}
	}
}

// table answers for each crawler of the list, in the dialect of its engine, by its own group. Those with the
// same answers share a row. The first row is that of the crawler that was asked about.
func (a *pageAnswer) table() {
	all := append([]answer.Asker{a.asker}, a.others...)
	for i := range all {
		k := &all[i]
		if i > 0 && strings.EqualFold(k.Agent, a.asker.Agent) { // it has the first row
			continue
		}
		p := a.reading(k.Dialect).Policy
		row := pageRow{Crawlers: []string{k.Agent}, Group: answer.Visible(p.Group(k.Obeys(p)).Token()), Mine: i == 0}
		for _, u := range a.URLs {
			if d, err := u.decide(p, k); err == nil {
				c := pageCell{Allowed: d.Allowed, Line: d.Rule.Line}
				if c.Line > 0 {
					c.Rule, _ = shorten(d.Rule.String())
				}
				row.Cells = append(row.Cells, c)
			}
		}
		at := slices.IndexFunc(a.Rows, func(r pageRow) bool { return r.Group == row.Group && slices.Equal(r.Cells, row.Cells) })
		if at < 0 {
			a.Rows = append(a.Rows, row)
		} else {
			a.Rows[at].Crawlers = append(a.Rows[at].Crawlers, k.Agent)
		}
	}
}
