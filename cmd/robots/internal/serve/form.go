package serve

// The question of the page, from a query or a body, and back into a link. The names of the fields are those
// of page.html, and links that people keep have them: none may change its meaning.

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// pageForm is the question in the form of the page. It is shown again as it was typed, unlike all else on the
// page: with escapes in it, it would be another question when it is sent again.
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

// parseForm reads the form from a query. What is too long is emptied in f, because the page shows f with the
// error.
func parseForm(query string) (f pageForm, err error) {
	q, err := parameters(query, "source", "robots", "site", "urls", "crawler", "agent", "pick", "as", "edit", "lint", "parts")
	if err != nil {
		return f, err
	}
	f = pageForm{
		Robots: q.Get("robots"), Site: strings.TrimSpace(q.Get("site")), URLs: q.Get("urls"),
		Agent: strings.TrimSpace(q.Get("agent")), As: q.Get("as"), Edit: q.Get("edit") != "", Lint: q.Get("lint") != "",
		Parts: q.Get("parts") != "",
	}
	if f.Agent == "" { // what is typed counts before what is chosen
		f.Agent = q.Get("crawler")
	}
	if pick := q.Get("pick"); pick != "" { // a crawler of the answer, for the next question; each has a dialect of its own
		f.Agent, f.As = pick, ""
	}
	switch source := q.Get("source"); source {
	case "text": // a site left over from the other form must not be asked
		f.Pasted, f.Site, f.Parts = true, "", false
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
