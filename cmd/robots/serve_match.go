package main

import (
	"bytes"
	"io"
	"net/http"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// matchQuestion is the body of POST /v1/match.
type matchQuestion struct {
	Robots    *string  `json:"robots"`
	RobotsB64 *string  `json:"robots_b64"`
	URLs      []string `json:"urls"`
	Agent     string   `json:"agent"`
	As        string   `json:"as"`
}

// match answers POST /v1/match with what "robots match --json" writes. Nothing is fetched.
func (v *service) match(w http.ResponseWriter, r *http.Request) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	q, text, err := readMatch(w, r)
	if err != nil {
		return err
	}
	c, err := v.asker(q.Agent, q.As)
	if err != nil {
		return err
	}
	if c.all {
		return serve.BadParameter("as", "as=all is for decisions about a site")
	}
	m := &matcher{app: c.app, agent: c.agent, dialect: c.dialect}
	ask := m.asker(m.dialect.Parse(text))
	w.Header().Set("Content-Type", mediaNDJSON)
	d := &serve.Duplex{Request: r, Writer: w, Patience: v.limits.answer, Ends: r.Context()}
	defer d.Start()()
	var out output
	for i, url := range q.URLs {
		ask(&out, i+1, url)
		if out.Len() < batchBytes && i+1 < len(q.URLs) {
			continue
		}
		if _, err := d.Write(out.Bytes()); err != nil {
			panic(http.ErrAbortHandler)
		}
		out.Reset()
		out.problems = nil // the records say the same
	}
	return nil
}

// readMatch reads the body and the file in it.
func readMatch(w http.ResponseWriter, r *http.Request) (q matchQuestion, text []byte, err error) {
	data, err := body(w, r, maxBody, mediaJSON)
	if err != nil {
		return q, nil, err
	}
	if err := readJSON(data, &q); err != nil {
		return q, nil, err
	}
	if len(q.URLs) == 0 {
		return q, nil, serve.BadParameter("urls", "urls is missing or empty")
	}
	if q.Robots == nil && q.RobotsB64 == nil {
		return q, nil, serve.BadParameter("robots", "robots is missing: give the text of the file")
	}
	if text, err = (&record{Robots: q.Robots, RobotsB64: q.RobotsB64}).robots(); err != nil {
		return q, nil, serve.BadParameter("robots_b64", "%v", err)
	}
	if len(text) > maxText {
		return q, nil, serve.NewProblem(http.StatusRequestEntityTooLarge, "size", "robots is larger than %d bytes", maxText)
	}
	return q, text, nil
}

// lint answers POST /v1/lint with what "robots lint -" writes as JSON or SARIF.
func (v *service) lint(w http.ResponseWriter, r *http.Request) error {
	query, err := parameters(r, "format")
	if err != nil {
		return err
	}
	write, media := lint.WriteJSON, mediaJSON
	switch format := query.Get("format"); format {
	case "", "json":
	case "sarif":
		write, media = lint.WriteSARIF, "application/sarif+json"
	default:
		return serve.BadParameter("format", "no format is called %s: it is json or sarif", quoted(format))
	}
	data, err := body(w, r, maxText, "text/plain", "application/octet-stream", "")
	if err != nil {
		return err
	}
	l := &linter{app: &app{streams: streams{in: bytes.NewReader(data), err: io.Discard}}}
	report, err := l.one(r.Context(), "-")
	if err != nil {
		return err
	}
	var out output
	if err := write(&out, report); err != nil {
		return err
	}
	return v.send(w, media, out.Bytes())
}
