package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/page"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/sitemap"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	rules "github.com/robotsgate/robotsgate/policy/page"
)

// The page for people: this file has its handlers and the question, readings.go puts it to each
// reading of the file, and view.go has what is shown. It works without scripts, so each answer is a page of its own;
// the script takes the same pages, and puts in their middle what is new.

// page answers GET / and POST /: the form, with the answer below if a question is in it. A file that was pasted comes
// by POST: it stays out of the browser's history, and may be longer than an address.
func (v *Service) page(w http.ResponseWriter, r *http.Request) error {
	view := &pageView{Usual: v.Agent}
	release, err := v.askPage(w, r, view)
	status := http.StatusOK
	if err != nil {
		view.Problem, view.Answer = problemOf(err), nil
		status = view.Problem.Status
	}
	page.Protect(w.Header())
	return v.answer(w, status, page.Media, release, func(to io.Writer) error { return page.Write(to, view) })
}

// askPage reads the question into view, and answers it if there is one. What that takes of memory has to be
// released, with an error too: release is never nil.
func (v *Service) askPage(w http.ResponseWriter, r *http.Request, view *pageView) (release func(), err error) {
	f := &view.Form
	*f, release, err = v.readForm(w, r)
	f.Agent = cmp.Or(f.Agent, v.Agent)
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
	view.Answer = a
	if f.Pasted {
		return release, a.pasted(r.Context())
	}
	release() // not while a site is waited for
	ctx, cancel := context.WithTimeout(r.Context(), v.Limits.Question)
	defer cancel()
	u, o, err := siteOf("site", f.Site)
	if err != nil {
		return release, err
	}
	var at *url.URL // where the page is
	var said rules.Rules
	if f.Read && !f.Edit { // before there is a file to hold: this waits for the site, too
		if at, said, err = v.readPage(ctx, u); err != nil {
			a.Unread = append(a.Unread, "The page was not read: "+answer.Visible(err.Error()))
		}
	}
	if f.Sitemaps && !f.Edit {
		if a.Sitemaps, err = v.readSitemaps(ctx, a.asker, o); err != nil {
			a.Unread = append(a.Unread, "The sitemaps were not read: "+answer.Visible(err.Error()))
		}
	}
	res, until, release, err := v.whole(ctx, o, costOfPage)
	if err != nil {
		return release, err
	}
	if from, err := fetch.OriginOf(at); err == nil && from == o {
		a.Listings = a.asker.Listings(res, at, said)
	}
	// As unreachable it would have people look for the fault there.
	if !v.Private && errors.Is(res.Err, fetch.ErrNotPublic) {
		return release, web.NewProblem(http.StatusUnprocessableEntity, "private",
			"%s is not in a public network, and this service asks no other. Started as robots serve --private, it does", u.Host)
	}
	if f.Edit {
		return release, a.edited(ctx, u, res)
	}
	if err = a.site(ctx, u, o, res, until); err == nil {
		// The page shows what the site serves. What decides elsewhere may be a copy from before an outage.
		decides, _, err := v.gate.Cache.Get(ctx, o, v.known(a.asker.Dialect))
		a.Came.bridged(decides, err)
	}
	return release, err
}

// maxPage bounds a page that is read. What it says to crawlers stands at its beginning.
const maxPage = 1 << 20

// readPage reads a page, for the question "may this be listed?", and returns where it is, behind redirects, and what it
// says to crawlers. Besides sitemaps, it is all that the service reads of a site, and it goes through the gate:
// robots.txt decides for the crawler of --agent, and turns are kept. A reading takes the place of a stream, which bounds
// how many there are.
func (v *Service) readPage(ctx context.Context, u *url.URL) (at *url.URL, said rules.Rules, err error) {
	if !v.streams.Take() {
		return nil, said, web.Busy()
	}
	defer v.streams.Free()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, said, err
	}
	req.Header.Set("User-Agent", v.gate.Fetcher.UserAgent) // the site sees one visitor, here and for robots.txt
	res, err := (&http.Client{Transport: v.gate.Transport}).Do(req)
	if err != nil {
		return nil, said, err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return nil, said, fmt.Errorf("%s answers %s", res.Request.URL.Redacted(), res.Status)
	}
	read := client.PageRules(res)
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxPage))
	return res.Request.URL, read.Rules(), err
}

// readSitemaps counts what the robots.txt of o refuses to k of the URLs in the sitemaps that it names. They are asked for
// as readPage asks for a page, and all of them together have the time of one robots.txt.
func (v *Service) readSitemaps(ctx context.Context, k answer.Asker, o fetch.Origin) (*pageSitemaps, error) {
	if !v.streams.Take() {
		return nil, web.Busy()
	}
	defer v.streams.Free()
	res, _, release, err := v.whole(ctx, o, costOfParse)
	if err != nil {
		return nil, err
	}
	res = res.In(k.Dialect)
	release() // not while sitemaps are waited for
	named := slices.Collect(res.Policy.Sitemaps())
	if named == nil {
		return nil, cmp.Or(res.Err, errors.New("robots.txt names none by a whole URL"))
	}
	ctx, cancel := context.WithTimeout(ctx, v.gate.Fetcher.Timeout)
	defer cancel()
	s := &pageSitemaps{Count: sitemap.Count{Most: maxRefusals}}
	r := sitemap.Reader{
		Client: &http.Client{Transport: v.gate.Transport}, UserAgent: v.gate.Fetcher.UserAgent,
		URL:    func(loc string) error { s.Add(&k, o, res, loc); return ctx.Err() },
		Failed: s.failed, Files: maxSitemaps,
	}
	s.Late = r.Read(ctx, named...) != nil
	s.Sort()
	return s, nil
}

// readForm reads the form from the query, or from the body of a POST, where the same rules hold.
func (v *Service) readForm(w http.ResponseWriter, r *http.Request) (f pageForm, release func(), err error) {
	query, release := r.URL.RawQuery, func() {}
	if r.Method == http.MethodPost {
		var body []byte
		if body, release, err = v.text(w, r, maxBody, costOfPage, "application/x-www-form-urlencoded"); err != nil {
			return f, release, err
		}
		query = string(body)
	}
	f, err = parseForm(query)
	return f, release, err
}

// newPageAnswer is an answer without anything that depends on the file.
func (v *Service) newPageAnswer(f *pageForm) (*pageAnswer, error) {
	who, err := single(v.Asker, f.Agent, f.As, "the page asks for all crawlers: as is the one for the file")
	if err != nil {
		return nil, err
	}
	who.Agreed = nil // the page quotes the file
	lines, err := f.lines()
	return &pageAnswer{asker: who, others: new(answer.Asker).Everyone(), Form: f, lines: lines, Token: who.Agent, Reader: readers[who.Dialect]}, err
}

// pageForm is the question in the form of the page. It is shown again as it was typed, unlike all else on the
// page: with escapes in it, it would be another question when it is sent again.
type pageForm struct {
	Pasted   bool // Robots is the file; else Site is asked for its own
	Edit     bool // the file of Site is wanted in the form
	Lint     bool // mistakes are sought in a long file, too
	Read     bool // Site is a page, which is read, too
	Sitemaps bool // those of Site are read, too
	Robots   string
	Site     string
	URLs     string // one on each line; of Site, a path will do
	Agent    string
	As       string // a dialect; empty: that of the crawler
}

// parseForm reads the form from a query. What is too long is emptied in f, because the page shows f with the error.
func parseForm(query string) (f pageForm, err error) {
	q, err := parameters(query, "source", "robots", "site", "urls", "crawler", "agent", "pick", "as", "edit", "lint", "read", "sitemaps")
	if err != nil {
		return f, err
	}
	f = pageForm{
		Robots: q.Get("robots"), Site: strings.TrimSpace(q.Get("site")), URLs: q.Get("urls"),
		Agent: strings.TrimSpace(q.Get("agent")), As: q.Get("as"), Edit: q.Get("edit") != "", Lint: q.Get("lint") != "",
		Read: q.Get("read") != "", Sitemaps: q.Get("sitemaps") != "",
	}
	if f.Agent == "" { // what is typed counts before what is chosen
		f.Agent = q.Get("crawler")
	}
	if pick := q.Get("pick"); pick != "" { // a crawler of the answer, for the next question; each has a dialect of its own
		f.Agent, f.As = pick, ""
	}
	switch source := q.Get("source"); source {
	case "text": // a site left over from the other form must not be asked
		f.Pasted, f.Site, f.Read, f.Sitemaps = true, "", false, false
	case "", "site":
		f.Robots = ""
	default:
		return f, web.BadParameter("source", "no source is called %s: it is site or text", answer.Quoted(source))
	}
	switch {
	case len(f.Robots) > maxText:
		f.Robots = ""
		return f, web.NewProblem(http.StatusRequestEntityTooLarge, "size", "robots is larger than %d bytes", maxText)
	case len(f.URLs) > maxPageText:
		f.URLs = ""
		return f, web.BadParameter("urls", "urls is larger than %d bytes", maxPageText)
	}
	return f, nil
}

// Link is the address of the question, or empty if that would be too long. It has no edit and no lint: those
// are steps, and no questions. The service stores nothing, so the link has to hold all of it, and a pasted file only
// reaches others if its reader hands the link on.
func (f *pageForm) Link() string {
	if len(f.Robots) > maxLink { // without escaping a MiB to find out
		return ""
	}
	q := url.Values{
		"site": {f.Site}, "urls": {strings.TrimSpace(strings.ReplaceAll(f.URLs, "\r", ""))}, "agent": {f.Agent}, "as": {f.As},
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	if f.Read {
		q.Set("read", "1")
	}
	if f.Sitemaps {
		q.Set("sitemaps", "1")
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

// lines are the questions of the form, without empty lines. Too many are an error, and not cut off: half an answer would
// pass for a whole one.
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
