package serve

// POST /v1/match and /v1/lint, which are about a file in the body and ask no site. A body of match may have millions of
// URLs, so it is read twice: once to see that all of it is well-formed, and to find the file, and once to answer. A
// question with a fault gets a problem document, not half an answer.

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// match answers POST /v1/match with what "robots match --json" writes. Nothing is fetched.
func (v *Service) match(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	body, err := v.body(w, r, maxBody, mediaJSON)
	if err != nil {
		return err
	}
	defer body.Release()
	ask, release, err := v.matching(r.Context(), body.Bytes)
	if err != nil {
		return err
	}
	defer release()
	w.Header().Set("Content-Type", mediaNDJSON)
	var out shell.Output
	to, number := &web.Paced{ResponseWriter: w, Patience: v.Limits.Answer}, 0
	list := jsontext.NewDecoder(bytes.NewReader(body.Bytes[ask.urls:])) // which has been found well-formed
	list.ReadToken()                                                    // its bracket
	err = eachURL(list, func(url string) error {
		number++
		verdict, _ := ask.about.Match(number, url) // which tells of an error, too
		out.Verdict(&verdict)
		if out.Len() < shell.BatchBytes {
			return nil
		}
		_, err := out.WriteTo(to)
		return err
	})
	if err == nil {
		_, err = out.WriteTo(to)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // what was answered must not pass for all
	}
	return nil
}

// matching is a question that was read, without its URLs, of which there may be millions.
type matching struct {
	answer.Asker
	about *answer.Matching
	urls  urlList
}

// matching reads a question. The policy is held until it is released: the client takes its answers at its own pace.
func (v *Service) matching(ctx context.Context, body []byte) (m matching, release func(), err error) {
	size := int64(len(body))
	read, err := v.admit(ctx, costOfJSON*size+costOfParse*min(size, fetch.MaxBytes))
	if err != nil {
		return m, nil, err
	}
	defer read()
	var q struct {
		Robots    *string `json:"robots"`
		RobotsB64 *string `json:"robots_b64"`
		Agent     string  `json:"agent"`
		As        string  `json:"as"`
		URLs      urlList `json:"urls"`
	}
	if err := readObject(bytes.NewReader(body), &q); err != nil {
		return m, nil, err
	}
	m.urls = q.URLs
	text, err := m.file(&answer.Question{Robots: q.Robots, RobotsB64: q.RobotsB64})
	if err != nil {
		return m, nil, err
	}
	if m.Asker, err = v.single(q.Agent, q.As, "as=all is for decisions about a site"); err != nil {
		return m, nil, err
	}
	p := m.Dialect.Parse(text)
	if release = v.held.TryTake(int64(p.Size())); release == nil { // which is known only now
		return m, nil, web.Busy()
	}
	m.about = m.Matching(p)
	return m, release, nil
}

// file is the text of the file in q, about which m has to ask something: a question about no URL is a mistake, which an
// empty answer would hide. An empty file is a file, so robots has to be there, but may be "".
func (m *matching) file(q *answer.Question) ([]byte, error) {
	if m.urls == 0 {
		return nil, web.BadParameter("urls", "urls is missing or empty")
	}
	if q.Robots == nil && q.RobotsB64 == nil {
		return nil, web.BadParameter("robots", "robots is missing: give the text of the file")
	}
	text, err := q.File()
	if err != nil {
		return nil, web.BadParameter("robots_b64", "%v", err)
	}
	if len(text) > maxText {
		return nil, web.NewProblem(http.StatusRequestEntityTooLarge, "size", "robots is larger than %d bytes", maxText)
	}
	return text, nil
}

// urlList is where a list of URLs begins in a body; 0: there are none. What is in it is checked, and not kept: match reads
// it again from there.
type urlList int64

func (l *urlList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch t, err := d.ReadToken(); {
	case err != nil || t.Kind() == 'n':
		return err
	case t.Kind() != '[':
		return &answer.FieldError{Name: "urls", Problem: "it is no list"}
	}
	from := urlList(d.InputOffset() - 1)
	return eachURL(d, func(string) error { *l = from; return nil })
}

// eachURL calls visit for the URLs of a list, whose bracket was read.
func eachURL(d *jsontext.Decoder, visit func(string) error) error {
	for d.PeekKind() != ']' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		if t.Kind() != '"' {
			return &answer.FieldError{Name: "urls", Problem: answer.Unfit(t.Kind())}
		}
		url := t.String()
		if len(url) > answer.MaxURL {
			return web.BadParameter("urls", "a URL is longer than %d bytes", answer.MaxURL)
		}
		if err := visit(url); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// lint answers POST /v1/lint with what "robots lint -" writes as JSON or SARIF. The report quotes the file, and may be longer than
// that.
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
