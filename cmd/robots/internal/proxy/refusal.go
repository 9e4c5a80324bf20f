package proxy

import (
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
)

// Refusal is an answer of the proxy's own.
type Refusal struct {
	*serve.Problem
	Error string // of RFC 9209 §2.3; if empty, http_request_denied
}

func bad(format string, args ...any) Refusal {
	return Refusal{serve.NewProblem(http.StatusBadRequest, "target", format, args...), "http_request_error"}
}

func busy() Refusal {
	p := serve.NewProblem(http.StatusServiceUnavailable, "busy", "too many requests are under way")
	p.RetryAfter = time.Second
	return Refusal{p, "connection_limit_reached"}
}

// write answers in HTML what asks for it, such as a browser for a page, and all else with a problem
// document.
func (f Refusal) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	kind := f.Error
	if kind == "" {
		kind = "http_request_denied"
	}
	serve.SetProxyStatus(h, kind, f.Detail)
	if !wantsHTML(r.Header.Values("Accept")) {
		f.Problem.Write(w)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	f.SetRetryAfter(h)
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		page().Execute(w, f.Problem)
	}
}

// wantsHTML reports whether an Accept field names text/html, and does not rule it out.
func wantsHTML(accept []string) bool {
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(media), "text/html") {
			continue
		}
		name, weight, _ := strings.Cut(strings.TrimSpace(params), "=")
		q, err := strconv.ParseFloat(weight, 64)
		return !strings.EqualFold(name, "q") || err != nil || q > 0
	}
	return false
}

// page is not made at the start, for which each subcommand would pay.
var page = sync.OnceValue(func() *template.Template { return template.Must(template.New("refusal").Parse(markup)) })

const markup = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>{{.Status}} {{.Title}}</title>
<h1>{{.Status}} {{.Title}}</h1>
<p>{{.Detail}}</p>
<p>This is the answer of the proxy <a href="{{.Type}}">robotsgate</a>, not of the site.</p>
</html>
`
