package main

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/page"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// The bounds of the page.
const (
	maxPageURLs = 50       // a longer list is for POST /v1/decide
	maxLink     = 16 << 10 // bytes that a link may have
)

// pages adds the page to mux.
func (v *service) pages(mux *http.ServeMux) {
	mux.Handle("GET /{$}", v.question(v.page))
	mux.Handle("POST /{$}", v.upload(v.page))
	page.Files(mux)
}

// pageForm is the question in the form of the page.
type pageForm struct {
	Pasted bool // Robots is the file; else Site is asked for its own
	Robots string
	Site   string
	URLs   string // one on each line; of Site, a path will do
	Agent  string
	As     string
}

// page answers GET / and POST /: the form, with the answer below if a question is in it.
func (v *service) page(w http.ResponseWriter, r *http.Request) error {
	view := &pageView{Agent: v.agent.String(), Dialects: dialectNames()}
	form, err := readForm(w, r)
	if view.Form = form; err == nil {
		view.Answer, err = v.answerForm(r.Context(), &form)
	}
	if view.Form.As == "" {
		view.Form.As = v.dialect.String()
	}
	status := http.StatusOK
	if err != nil {
		p := *problemOf(err)
		p.Detail = visible(p.Detail)
		view.Problem, view.Answer, status = &p, nil, p.Status
	}
	var out bytes.Buffer
	if err := page.Write(&out, view); err != nil {
		return err
	}
	page.Protect(w.Header())
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(v.limits.answer))
	w.WriteHeader(status)
	w.Write(out.Bytes()) // an error says that the client has gone
	return nil
}

// readForm reads the query, or the body of a POST.
func readForm(w http.ResponseWriter, r *http.Request) (f pageForm, err error) {
	asked := r
	if r.Method == http.MethodPost {
		data, err := body(w, r, maxBody, "application/x-www-form-urlencoded")
		if err != nil {
			return f, err
		}
		asked = &http.Request{URL: &url.URL{RawQuery: string(data)}}
	}
	q, err := parameters(asked, "source", "robots", "site", "urls", "agent", "as")
	if err != nil {
		return f, err
	}
	f = pageForm{
		Robots: q.Get("robots"), Site: strings.TrimSpace(q.Get("site")), URLs: q.Get("urls"),
		Agent: strings.TrimSpace(q.Get("agent")), As: q.Get("as"),
	}
	switch source := q.Get("source"); source {
	case "text":
		f.Pasted = true
	case "", "site":
	default:
		return f, serve.BadParameter("source", "no source is called %s: it is site or text", quoted(source))
	}
	return f, nil
}

// link is the address of the question, or empty if that would be too long.
func (f *pageForm) link() string {
	q := url.Values{}
	for name, value := range map[string]string{
		"site": f.Site, "urls": strings.TrimSpace(strings.ReplaceAll(f.URLs, "\r", "")), "agent": f.Agent, "as": f.As,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Pasted {
		q.Del("site")
		q.Set("source", "text")
		q.Set("robots", strings.ReplaceAll(f.Robots, "\r\n", "\n"))
	}
	if text := "/?" + q.Encode(); len(text) <= maxLink {
		return text
	}
	return ""
}

// lines are the questions of the form.
func (f *pageForm) lines() (lines []string, err error) {
	for l := range strings.Lines(f.URLs) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) > maxPageURLs {
		return nil, serve.BadParameter("urls",
			"%d URLs are more than the %d that a page shows: POST /v1/decide takes any number", len(lines), maxPageURLs)
	}
	return lines, nil
}

// answerForm answers the question in f, or returns nil if there is none.
func (v *service) answerForm(ctx context.Context, f *pageForm) (*pageAnswer, error) {
	if f.Pasted && f.Robots == "" || !f.Pasted && f.Site == "" {
		return nil, nil
	}
	c, err := v.asker(f.Agent, f.As)
	if err != nil {
		return nil, err
	}
	if c.all {
		return nil, serve.BadParameter("as", "the page shows all dialects: as is the one for the file")
	}
	c.explain = true
	lines, err := f.lines()
	if err != nil {
		return nil, err
	}
	a := &pageAnswer{asked: f, Link: f.link(), Agent: c.agent.String(), Dialect: c.dialect.String()}
	if f.Pasted {
		return a, a.pasted(c, []byte(f.Robots), lines)
	}
	ctx, cancel := context.WithTimeout(ctx, v.limits.question)
	defer cancel()
	return a, v.askSite(ctx, c, a, f.Site, lines)
}

// askSite fills a with what a site answers, as "robots check" does. What follows the site's
// name is the first question.
func (v *service) askSite(ctx context.Context, c *checker, a *pageAnswer, site string, lines []string) error {
	u, o, err := askedSite("site", site)
	if err != nil {
		return err
	}
	res, err := v.files.get(ctx, o)
	if err != nil {
		return err
	}
	if len(lines) == 0 || u.RequestURI() != "/" {
		lines = append([]string{u.String()}, lines...)
	}
	readings := inAllDialects(res)
	for i, text := range lines {
		ask := func(r reading) (*verdict, error) {
			u, err := siteURL(o, text)
			if err != nil {
				return nil, err
			}
			// Only one dialect is explained: the file is shown as that one reads it.
			c.explain = r.dialect == c.dialect.Dialect
			return c.verdict(v.whole, checked{i + 1, u.String(), u, &asked{origin: o}}, r)
		}
		a.ask(i+1, text, readings, ask)
	}
	mine := res.In(c.dialect.Dialect)
	a.Came = newCame(mine, newFetched(mine, v.whole.answer(o, mine)))
	a.Came.bridged(v.lookup(ended, o, c.dialect.Dialect))
	if findings := servedAs(o, res); res.StatusCode != 0 {
		a.lint(findings.Findings())
	}
	a.show(reading{c.dialect.Dialect, mine}, c.agent.String())
	return nil
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

// pasted fills a with what a file says, as "robots match" and "robots lint" do.
func (a *pageAnswer) pasted(c *checker, text []byte, lines []string) error {
	if len(text) > maxText {
		return serve.NewProblem(http.StatusRequestEntityTooLarge, "size", "robots is larger than %d bytes", maxText)
	}
	if len(lines) == 0 {
		lines = []string{"/"}
	}
	var readings []reading
	groups := map[policy.Dialect]policy.Group{}
	for _, d := range dialects {
		p := d.Parse(text)
		readings = append(readings, reading{d, &fetch.Result{Policy: p, Dialect: d, Body: text}})
		groups[d] = p.Group(c.agent.String())
	}
	for i, line := range lines {
		ask := func(r reading) (*verdict, error) {
			m := &matcher{app: c.app, agent: c.agent, dialect: dialectFlag{r.dialect}}
			answer, err := m.verdict(groups[r.dialect], i+1, line)
			if err == nil && r.dialect == c.dialect.Dialect {
				target, _ := readTarget(line, false)
				answer.Lines = r.explain(m.agent.String(), target, groups[r.dialect].Decide(target))
			}
			return &answer, err
		}
		a.ask(i+1, line, readings, ask)
	}
	a.lint(lint.File(text))
	for _, r := range readings {
		if r.dialect == c.dialect.Dialect {
			a.show(r, c.agent.String())
		}
	}
	return nil
}
