package serve

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/page"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// The page of the service: this file reads what is asked, serve_page_view.go makes what is shown.

// The bounds of the page.
const (
	maxPageURLs = 50       // a longer list is for POST /v1/decide
	maxPageText = 64 << 10 // bytes of all of them
	maxLink     = 16 << 10 // bytes that a link may have
	lintAtOnce  = 64 << 10 // bytes of a file; to judge a longer one takes longer than to decide
	costOfPage  = 48       // memory for each byte of a file or form: five dialects and lint read it
)

// pages adds the page to mux.
func (v *Service) pages(mux *http.ServeMux) {
	mux.Handle("GET /{$}", v.question(v.page))
	mux.Handle("POST /{$}", v.upload(v.page))
	mux.Handle("POST /repaired", v.upload(v.repaired))
	page.Files(mux)
}

// pageForm is the question in the form of the page.
type pageForm struct {
	Pasted bool // Robots is the file; else Site is asked for its own
	Edit   bool // the file of Site is wanted in the form
	Lint   bool // mistakes are sought in a long file, too
	Parts  bool // of Site: its images, scripts and styles are asked for, too
	Robots string
	Site   string
	URLs   string // one on each line; of Site, a path will do
	Agent  string
	As     string // a dialect; empty: that of the crawler
}

// page answers GET / and POST /: the form, with the answer below if a question is in it.
func (v *Service) page(w http.ResponseWriter, r *http.Request) error {
	view := &pageView{Usual: v.Agent}
	release, err := v.askPage(w, r, view)
	status := http.StatusOK
	if err != nil {
		p := *problemOf(err)
		p.Detail = answer.Visible(p.Detail)
		view.Problem, view.Answer, status = &p, nil, p.Status
	}
	page.Protect(w.Header())
	return v.answer(w, status, page.Media, release, func(to io.Writer) error { return page.Write(to, view) })
}

// askPage reads the question, and answers it if there is one. What that takes of memory has to be
// released.
func (v *Service) askPage(w http.ResponseWriter, r *http.Request, view *pageView) (release func(), err error) {
	release, err = v.readForm(w, r, &view.Form)
	f := &view.Form
	if view.Form.Agent == "" {
		view.Form.Agent = v.Agent
	}
	switch {
	case err != nil || f.Pasted && f.Robots == "" || !f.Pasted && f.Site == "":
		return release, err
	case r.Method == http.MethodGet && crossSite(r): // any page may hold a link, or an image
		view.Led = true
		return release, nil
	}
	a, err := v.newPageAnswer(f)
	if err != nil {
		return release, err
	}
	if f.Pasted {
		view.Answer = a
		return release, a.pasted(r.Context())
	}
	release() // not while a site is waited for
	release = func() {}
	ctx, cancel := context.WithTimeout(r.Context(), v.Limits.Question)
	defer cancel()
	u, res, err := v.fileOf(ctx, f.Site)
	if err != nil {
		return release, err
	}
	if f.Parts && !f.Edit {
		parts, err := v.partsOf(ctx, u)
		a.lines = append(a.lines, parts[:min(len(parts), maxPageURLs-len(a.lines))]...)
		if err != nil {
			a.Unshown = answer.Visible(err.Error())
		}
	}
	if release, err = v.admit(ctx, costOfPage*int64(len(res.Body))); err != nil {
		return func() {}, err
	}
	view.Answer = a
	if f.Edit {
		return release, a.edited(ctx, u, res)
	}
	return release, a.site(ctx, u, res)
}

// crossSite reports whether a browser says that another site has it ask.
func crossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// fileOf reads the robots.txt of the site of a URL.
func (v *Service) fileOf(ctx context.Context, site string) (*url.URL, *fetch.Result, error) {
	u, o, err := askedSite("site", site)
	if err != nil {
		return nil, nil, err
	}
	res, err := v.files.Get(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	// The text is that of package fetch, which has no other sign of it.
	if !v.Private && res.Err != nil && strings.Contains(res.Err.Error(), "only public ones are allowed") {
		return nil, nil, web.NewProblem(http.StatusUnprocessableEntity, "private",
			"%s is not in a public network, and this service asks no other. Started as robots serve --private, it does", u.Host)
	}
	return u, res, nil
}

// readForm reads the query, or the body of a POST, into f.
func (v *Service) readForm(w http.ResponseWriter, r *http.Request, f *pageForm) (release func(), err error) {
	asked, release := r, func() {}
	if r.Method == http.MethodPost {
		spool, err := v.body(w, r, maxBody, "application/x-www-form-urlencoded")
		if err != nil {
			return release, err
		}
		defer spool.Close()
		if release, err = v.admit(r.Context(), costOfPage*spool.Size()); err != nil {
			return func() {}, err
		}
		data, err := readAll(spool)
		if err != nil {
			return release, err
		}
		asked = &http.Request{URL: &url.URL{RawQuery: string(data)}}
	}
	q, err := parameters(asked, "source", "robots", "site", "urls", "crawler", "agent", "pick", "as", "edit", "lint", "parts")
	if err != nil {
		return release, err
	}
	*f = pageForm{
		Robots: q.Get("robots"), Site: strings.TrimSpace(q.Get("site")), URLs: q.Get("urls"),
		Agent: strings.TrimSpace(q.Get("agent")), As: q.Get("as"), Edit: q.Get("edit") != "", Lint: q.Get("lint") != "",
		Parts: q.Get("parts") != "",
	}
	if f.Agent == "" { // what is typed counts before what is chosen
		f.Agent = q.Get("crawler")
	}
	if pick := q.Get("pick"); pick != "" { // of the answer, for the next question
		f.Agent, f.As = pick, ""
	}
	switch source := q.Get("source"); source {
	case "text":
		f.Pasted, f.Site, f.Parts = true, "", false
	case "", "site":
		f.Robots = ""
	default:
		return release, web.BadParameter("source", "no source is called %s: it is site or text", answer.Quoted(source))
	}
	switch {
	case len(f.Robots) > maxText:
		f.Robots = ""
		return release, web.NewProblem(http.StatusRequestEntityTooLarge, "size", "robots is larger than %d bytes", maxText)
	case len(f.URLs) > maxPageText:
		f.URLs = ""
		return release, web.BadParameter("urls", "urls is larger than %d bytes", maxPageText)
	}
	return release, nil
}

// link is the address of the question, or empty if that would be too long.
func (f *pageForm) link() string {
	if len(f.Robots) > maxLink {
		return ""
	}
	q := url.Values{}
	for name, value := range map[string]string{
		"site": f.Site, "urls": strings.TrimSpace(strings.ReplaceAll(f.URLs, "\r", "")), "agent": f.Agent, "as": f.As,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Parts {
		q.Set("parts", "1")
	}
	if f.Pasted {
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
		return nil, web.BadParameter("urls",
			"%d URLs are more than the %d that a page shows: POST /v1/decide takes any number", len(lines), maxPageURLs)
	}
	return lines, nil
}

// site answers about a site, as "robots check" does. What follows its name is the first question.
func (a *pageAnswer) site(ctx context.Context, u *url.URL, res *fetch.Result) error {
	o, err := fetch.OriginOf(u)
	if err != nil {
		return noOrigin(err)
	}
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
		a.robots[r.Dialect] = a.service.whole.Answer(o, r.Result)
	}
	a.Came = newCame(mine.Result, answer.NewFetched(mine.Result, a.robots[a.as]))
	a.Came.bridged(a.service.lookup(site.Ended, o, a.as))
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
		q.target, q.err = answer.ReadTarget(line, false)
		a.URLs = append(a.URLs, q)
	}
	for _, d := range answer.Dialects {
		a.readings = append(a.readings, answer.Reading{Dialect: d, Result: &fetch.Result{Policy: d.Parse(text), Dialect: d, Body: text}})
	}
	a.lint(len(text), func() []lint.Finding { return lint.File(text) })
	return a.decide(ctx)
}

// repaired answers POST /repaired with the file of the form, or of the site in it, in which the
// replacements stand that change no verdict.
func (v *Service) repaired(w http.ResponseWriter, r *http.Request) error {
	var f pageForm
	release, err := v.readForm(w, r, &f)
	if err != nil {
		release()
		return err
	}
	text, fix := []byte(f.Robots), lint.Fix
	if !f.Pasted {
		release()
		ctx, cancel := context.WithTimeout(r.Context(), v.Limits.Question)
		defer cancel()
		u, res, err := v.fileOf(ctx, f.Site)
		if err != nil {
			return err
		}
		if release, err = v.admit(ctx, costOfPage*int64(len(res.Body))); err != nil {
			return err
		}
		o, err := fetch.OriginOf(u)
		if err != nil {
			release()
			return noOrigin(err)
		}
		text, fix = res.Body, func(_ []byte, accept func(lint.Finding) bool) ([]byte, []lint.Finding) {
			served := answer.Served(o, res)
			return served.Fix(accept)
		}
	}
	w.Header().Set("Content-Disposition", `attachment; filename="robots.txt"`)
	return v.answer(w, http.StatusOK, "text/plain; charset=utf-8", release, func(to io.Writer) error {
		fixed, _ := fix(text, nil)
		_, err := to.Write(fixed)
		return err
	})
}
