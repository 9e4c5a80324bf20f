package serve

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/page"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
	rules "github.com/robotsgate/robotsgate/policy/page"
)

// The page for people: this file has its handlers, form.go the question, readings.go puts it to each
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
	u, o, res, until, err := v.fileOf(ctx, f.Site)
	if err != nil {
		return release, err
	}
	if f.Parts && !f.Edit { // before the file is worked on: this waits for the site, too
		parts, err := v.partsOf(ctx, u, func(at *url.URL, said rules.Rules) {
			if from, err := fetch.OriginOf(at); err == nil && from == o {
				a.Listings = a.asker.Listings(res, at, said)
			}
		})
		a.lines = append(a.lines, parts[:min(len(parts), maxPageURLs-len(a.lines))]...)
		if err != nil {
			a.Unshown = answer.Visible(err.Error())
		}
	}
	if release, err = v.admit(ctx, costOfPage*int64(len(res.Body))); err != nil {
		return release, err
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

// fileOf reads the robots.txt of the site of a URL. Of a site in a private network the answer says so: if it
// were unreachable, people would look for the fault there.
func (v *Service) fileOf(
	ctx context.Context, text string,
) (u *url.URL, o fetch.Origin, res *fetch.Result, until time.Time, err error) {
	if u, o, err = siteOf("site", text); err != nil {
		return u, o, nil, until, err
	}
	if res, until, err = v.whole(ctx, o); err != nil {
		return u, o, nil, until, err
	}
	if failed, ok := res.Err.(*fetch.Failure); !v.Private && ok && failed.Cause == notPublic {
		err = web.NewProblem(http.StatusUnprocessableEntity, "private",
			"%s is not in a public network, and this service asks no other. Started as robots serve --private, it does", u.Host)
	}
	return u, o, res, until, err
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

// repaired answers POST /repaired with the file of the form, or of the site in it, in which the replacements stand that
// change no verdict: who downloads a file must not have to look for what else it does.
func (v *Service) repaired(w http.ResponseWriter, r *http.Request) error {
	f, release, err := v.readForm(w, r)
	if err != nil {
		release()
		return err
	}
	file := lint.Answer{Body: []byte(f.Robots)}
	if !f.Pasted {
		release()
		ctx, cancel := context.WithTimeout(r.Context(), v.Limits.Question)
		defer cancel()
		_, o, res, _, err := v.fileOf(ctx, f.Site)
		if err != nil {
			return err
		}
		if res.Truncated {
			return web.NewProblem(http.StatusRequestEntityTooLarge, "size",
				"%s is longer than %d bytes: its rest would be lost", o.RobotsURL(), fetch.MaxBytes)
		}
		if release, err = v.admit(ctx, costOfPage*int64(len(res.Body))); err != nil {
			return err
		}
		file = answer.Served(o, res)
	}
	w.Header().Set("Content-Disposition", `attachment; filename="robots.txt"`)
	return v.answer(w, http.StatusOK, "text/plain; charset=utf-8", release, func(to io.Writer) error {
		fixed, _ := file.Fix(nil)
		_, err := to.Write(fixed)
		return err
	})
}

// newPageAnswer is an answer without anything that depends on the file.
func (v *Service) newPageAnswer(f *pageForm) (*pageAnswer, error) {
	who, err := v.single(f.Agent, f.As, "the page asks for all crawlers: as is the one for the file")
	if err != nil {
		return nil, err
	}
	lines, err := f.lines()
	return &pageAnswer{asker: who, others: (&answer.Asker{Agreed: v.Agreed}).Everyone(), Form: f, lines: lines, Token: who.Agent, Reader: readers[who.Dialect]}, err
}
