package serve

// POST /v1/match and /v1/lint, which are about a file in the body and ask no site.

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// match answers POST /v1/match with what "robots match --json" writes. Nothing is fetched. A question about no URL is a
// mistake, which an empty answer would hide. An empty file is a file, so robots has to be there, but may be "".
func (v *Service) match(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	body, release, err := v.text(w, r, maxBody, costOfJSON+costOfParse, mediaJSON)
	if err != nil {
		return err
	}
	defer release()
	var q struct {
		Robots    *string `json:"robots"`
		RobotsB64 *string `json:"robots_b64"`
		Agent     string  `json:"agent"`
		As        string  `json:"as"`
		URLs      urlList `json:"urls"`
	}
	if err := readObject(body, &q); err != nil {
		return err
	}
	switch {
	case len(q.URLs) == 0:
		return web.BadParameter("urls", "urls is missing or empty")
	case q.Robots == nil && q.RobotsB64 == nil:
		return web.BadParameter("robots", "robots is missing: give the text of the file")
	}
	text, err := (&answer.Question{Robots: q.Robots, RobotsB64: q.RobotsB64}).File()
	if err != nil {
		return web.BadParameter("robots_b64", "%v", err)
	}
	if len(text) > maxText {
		return web.NewProblem(http.StatusRequestEntityTooLarge, "size", "robots is larger than %d bytes", maxText)
	}
	k, err := single(v.Asker, q.Agent, q.As, "as=all is for decisions about a site")
	if err != nil {
		return err
	}
	about := k.Matching(k.Dialect.Parse(text))
	return v.answer(w, http.StatusOK, mediaNDJSON, release, func(to io.Writer) error {
		var out shell.Output
		for i, url := range q.URLs {
			verdict, _ := about.Match(i+1, url) // which tells of an error, too
			out.Verdict(&verdict)
			if _, err := out.WriteTo(to); err != nil {
				return err
			}
		}
		return nil
	})
}

// urlList is a list of URLs, maxMatched at most: all their answers are held, which are many times as long.
type urlList []string

func (l *urlList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	t, err := d.ReadToken()
	if err == nil && t.Kind() != '[' {
		return &answer.FieldError{Name: "urls", Problem: "it is no list"}
	}
	for err == nil {
		t, err = d.ReadToken()
		switch {
		case err != nil:
		case t.Kind() == ']':
			return nil
		case t.Kind() != '"':
			return &answer.FieldError{Name: "urls", Problem: answer.Unfit(t.Kind())}
		case len(*l) == maxMatched || len(t.String()) > answer.MaxURL:
			return &answer.FieldError{Name: "urls", Problem: fmt.Sprintf(
				"it may hold %d URLs of %d bytes", maxMatched, answer.MaxURL)}
		default:
			*l = append(*l, t.String())
		}
	}
	return err
}

// lint answers POST /v1/lint with what "robots lint -" writes as JSON or SARIF. The report quotes the file, and may be
// longer than that.
func (v *Service) lint(w http.ResponseWriter, r *http.Request, query url.Values) error {
	write, media := lint.WriteJSON, mediaJSON
	switch format := query.Get("format"); format {
	case "", "json":
	case "sarif":
		write, media = lint.WriteSARIF, "application/sarif+json"
	default:
		return web.BadParameter("format", "no format is called %s: it is json or sarif", answer.Quoted(format))
	}
	text, release, err := v.text(w, r, maxText, costOfLint, "text/plain", "application/octet-stream", "")
	if err != nil {
		return err
	}
	return v.answer(w, http.StatusOK, media, release, func(to io.Writer) error {
		return write(to, answer.Linted("-", text))
	})
}
