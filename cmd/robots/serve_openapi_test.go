package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// described holds answers against the document that a service gives of itself.
type described struct {
	t         *testing.T
	validator validator.Validator
	left      map[string]bool // "METHOD path status" that no answer had yet
}

func newDescribed(t *testing.T) *described {
	_, text := startServe(t, serve.UsualLimits()).do("GET", "/v1/openapi.json", "")
	doc, err := libopenapi.NewDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d := &described{t: t, left: map[string]bool{}}
	var errs []error
	// No field is there that the document does not name, but for what others define.
	strict := config.WithStrictIgnorePaths("$.body.header.*", "$.body.record.*", "$.body.id", // of sites and clients
		"$.body.$schema", "$.body.version", "$.body.runs", // SARIF
		"$.body.openapi", "$.body.info", "$.body.servers", "$.body.security", "$.body.paths", "$.body.components")
	d.validator, errs = validator.NewValidator(doc, config.WithStrictMode(), strict, config.WithFormatAssertions(),
		config.WithStrictIgnoredHeadersExtra("X-Content-Type-Options"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := d.validator.ValidateDocument(); !ok {
		t.Fatal(errs)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			for status := range op.Responses.Codes.KeysFromOldest() {
				d.left[strings.ToUpper(method)+" "+path+" "+status] = true
			}
		}
	}
	return d
}

// operation is a request that every service understands.
type operation struct{ method, path, body, field string }

// at is where the document has the path.
func (o operation) at() string {
	path, _, _ := strings.Cut(o.path, "?")
	if strings.HasPrefix(path, "/v1/turns/") {
		path = "/v1/turns/{id}"
	}
	return o.method + " " + path
}

func (o operation) request(t *testing.T, url string, fields ...string) *http.Request {
	return requestOf(t, o.method, url+o.path, strings.NewReader(o.body), append(fields, strings.Split(o.field, "|")...)...)
}

// check holds an answer, and the request if it was answered well, against the document.
func (d *described) check(o operation, r *http.Request, res *http.Response, status int) string {
	d.t.Helper()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	name := fmt.Sprintf("%s %s", o.method, answer.Brief(o.path))
	if res.StatusCode != status {
		d.t.Errorf("%s: %s, want %d: %s", name, res.Status, status, data)
	}
	r.Host, r.URL.Host = "localhost", "localhost"
	for piece := range pieces(res.Header, string(data)) {
		res.Body = io.NopCloser(strings.NewReader(piece))
		if ok, errs := d.validator.ValidateHttpResponse(r, res); !ok {
			d.t.Errorf("%s: the answer %d does not fit: %v\n%s", name, status, errs, data)
		}
	}
	for piece := range pieces(r.Header, o.body) {
		r.Body = io.NopCloser(strings.NewReader(piece))
		ok, errs := d.validator.ValidateHttpRequest(r)
		switch {
		case !ok && res.StatusCode < 300:
			d.t.Errorf("%s: the request does not fit, and is answered: %v", name, errs)
		case ok && res.StatusCode == http.StatusBadRequest && !strings.Contains(o.path, "/authz"):
			d.t.Errorf("%s: the request fits, and is answered %s", name, data)
		}
	}
	if problem := res.Header.Get("Content-Type") == "application/problem+json"; problem != (status >= 400) {
		d.t.Errorf("%s: %d, %v", name, status, res.Header)
	}
	delete(d.left, fmt.Sprintf("%s %d", o.at(), status))
	return string(data)
}

// pieces are the lines of NDJSON, which the document describes each, or all of another body.
func pieces(h http.Header, body string) iter.Seq[string] {
	if h.Get("Content-Type") == mediaNDJSON {
		return strings.Lines(body)
	}
	return slices.Values([]string{body})
}

// send asks a service, and checks the answer.
func (d *described) send(v *serving, o operation, status int, fields ...string) string {
	d.t.Helper()
	r := o.request(d.t, v.url, fields...)
	return d.check(o, r, answerTo(d.t, http.DefaultTransport, r), status)
}

// Every status of every path is as the document says, and the document has no other.
func TestServeIsAsItsOpenAPIDocumentSays(t *testing.T) {
	tier.Gate(t)
	t.Parallel()
	const (
		asJSON   = "Content-Type: application/json"
		asNDJSON = "Content-Type: application/x-ndjson"
		asText   = "Content-Type: text/plain"
	)
	d, site := newDescribed(t), siteServer(t, schemaSite)
	v := startServe(t, serve.UsualLimits(), "--private", site)
	ops := []operation{
		{"GET", "/v1/decide?url=http://rules.example/private", "", ""},
		{"POST", "/v1/decide", "http://rules.example/\n", asText},
		{"GET", "/v1/robots?origin=http://rules.example", "", ""},
		{"POST", "/v1/match", `{"robots":"Disallow: /","urls":["/x","http://a.example/"]}`, asJSON},
		{"POST", "/v1/lint", "Disallow /\n", asText},
		{"POST", "/v1/turns", `{"url":"http://rules.example/","agent":"a"}`, asJSON},
		{"POST", "/v1/turns/x", `{"status":200}`, asJSON},
		{"DELETE", "/v1/turns/x", "", ""},
		{"GET", "/authz", "", "X-Original-URL: http://rules.example/"},
		{"GET", "/v1/openapi.json", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/readyz", "", ""},
		{"GET", "/healthz", "", ""},
	}
	for _, o := range ops {
		status := 200
		if strings.HasPrefix(o.path, "/v1/turns/") {
			status = 404
		}
		d.send(v, o, status)
		d.send(v, o, 421, "Host: evil.example")
		if o.method != "GET" || strings.HasPrefix(o.path, "/v1/decide") || strings.HasPrefix(o.path, "/v1/robots") {
			d.send(v, o, 403, "Sec-Fetch-Site: cross-site")
		}
	}
	long := strings.Repeat("x", maxText+1)
	for _, c := range []struct {
		operation
		status int
	}{
		{operation{"GET", "/v1/decide?url=http://down.example/&as=all&agent=a", "", ""}, 200},
		{operation{"GET", "/v1/decide?url=http://missing.example/&as=google", "", ""}, 200},
		{operation{"GET", "/v1/decide", "", ""}, 400},
		{operation{"GET", "/v1/decide?url=http://a.example/&as=lycos", "", ""}, 400},
		{operation{"GET", "/v1/decide?url=/private", "", ""}, 422},
		{operation{"POST", "/v1/decide?as=bing",
			"{\"url\":\"foo bar\",\"id\":1}\n{\"url\":\"http://latin1.example/\",\"agent\":\"b\"}\n", asNDJSON}, 200},
		{operation{"POST", "/v1/decide?as=all", "", asNDJSON}, 400},
		{operation{"POST", "/v1/decide", "", "Content-Type: text/html"}, 415},
		{operation{"GET", "/v1/robots?as=yandex&origin=http://latin1.example", "", ""}, 200},
		{operation{"GET", "/v1/robots", "", ""}, 400},
		{operation{"GET", "/v1/robots?origin=foo", "", ""}, 422},
		{operation{"POST", "/v1/match", `{"urls":["/"]}`, asJSON}, 400},
		{operation{"POST", "/v1/match", `{"robots":"` + long + `","urls":["/"]}`, asJSON}, 413},
		{operation{"POST", "/v1/match", "{}", asText}, 415},
		{operation{"POST", "/v1/lint?format=sarif", "Disallow /\n", asText}, 200},
		{operation{"POST", "/v1/lint?format=html", "", asText}, 400},
		{operation{"POST", "/v1/lint", long, asText}, 413},
		{operation{"POST", "/v1/lint", "", "Content-Type: text/html"}, 415},
		{operation{"POST", "/v1/turns", `{"url":"http://rules.example/private"}`, asJSON}, 200},
		{operation{"POST", "/v1/turns", `{"url":"http://down.example/","wait":"0s"}`, asJSON}, 200},
		{operation{"POST", "/v1/turns", `{"url":"http://rules.example/","wait":"0s"}`, asJSON}, 200},
		{operation{"POST", "/v1/turns", `{"url":"http://rules.example/","wait":"soon"}`, asJSON}, 400},
		{operation{"POST", "/v1/turns", `{"agent":"a"}`, asJSON}, 400},
		{operation{"POST", "/v1/turns", `{"url":"/"}`, asJSON}, 422},
		{operation{"POST", "/v1/turns", `{"url":"` + long + `"}`, asJSON}, 413},
		{operation{"POST", "/v1/turns", "{}", asText}, 415},
		{operation{"POST", "/v1/turns/x", `{"status":99}`, asJSON}, 400},
		{operation{"POST", "/v1/turns/x", `{"retry_after":"` + long + `"}`, asJSON}, 413},
		{operation{"POST", "/v1/turns/x", "{}", asText}, 415},
		{operation{"DELETE", "/v1/turns/x?y=z", "", ""}, 400},
		{operation{"GET", "/authz", "", "X-Original-URL: http://rules.example/private"}, 403},
		{operation{"GET", "/authz", "", "X-Original-URL: http://down.example/"}, 403},
		{operation{"GET", "/authz", "", "X-Original-URL: http://" + long[:answer.MaxURL] + ".example/"}, 422},
		{operation{"GET", "/authz", "", "X-Original-URL: foo"}, 400},
	} {
		d.send(v, c.operation, c.status)
	}
	for _, o := range []operation{
		{"POST", "/v1/turns/", `{"status":503,"retry_after":"120"}`, asJSON}, {"DELETE", "/v1/turns/", "", ""},
	} {
		begin := operation{"POST", "/v1/turns", `{"url":"http://short.example/"}`, asJSON}
		_, id, _ := strings.Cut(d.send(v, begin, 200), `"turn":"`)
		o.path += id[:26]
		d.send(v, o, 204)
		if o.method == "POST" { // the site rests
			v = startServe(t, serve.UsualLimits(), "--private", site)
		}
	}
	d.elsewhere(ops, site)
	if len(d.left) > 0 {
		t.Errorf("no answer was %q", slices.Sorted(maps.Keys(d.left)))
	}
}

// elsewhere asks services that want a token, have no room, or are ending.
func (d *described) elsewhere(ops []operation, site string) {
	secret := startServe(d.t, serve.UsualLimits(), "--token-file="+written(d.t, "0123456789abcdef"), site)
	l := serve.UsualLimits()
	l.Questions, l.Held, l.Turns = 0, 0, 0
	full := startServe(d.t, l, site)
	// net/http reads no more once the service is ending: what came just before is told.
	ended, end := context.WithCancel(d.t.Context())
	end()
	ending := flagged(d.t, nil, "--private", site).Handler(ended)
	for _, o := range ops {
		if d.left[o.at()+" 401"] {
			d.send(secret, o, 401)
		}
		if d.left[o.at()+" 429"] {
			d.send(full, o, 429)
		}
		if d.left[o.at()+" 503"] {
			r, w := o.request(d.t, "http://localhost"), httptest.NewRecorder()
			r.RequestURI = o.path
			r.RemoteAddr = "127.0.0.1:1"
			ending.ServeHTTP(w, r)
			d.check(o, r, w.Result(), 503)
		}
	}
}
