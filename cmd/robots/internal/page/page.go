// Package page is the page of "robots serve": its template, style and script. It knows nothing
// of robots.txt but how to make what comes from a site visible.
package page

import (
	"embed"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"sync"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
)

const Assets = "/page/"

//go:embed page.html
var markup string

//go:embed assets
var assets embed.FS

// page is parsed when it is first asked for: other commands start sooner without it.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"thousands": thousands, "status": http.StatusText, "visible": answer.Visible,
	}).Parse(markup))
})

func Write(w io.Writer, view any) error { return page().Execute(w, view) }

// Files has mux serve the style and the script, and nothing else below Assets: what there is
// not, the rest of mux answers.
func Files(mux *http.ServeMux) {
	names, _ := fs.Glob(assets, "assets/*") // fails for a malformed pattern only
	for _, name := range names {
		mux.HandleFunc("GET "+Assets+path.Base(name), func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, name)
		})
	}
}

// policy lets the page use what Files serves and ask where it came from, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const Media = "text/html; charset=utf-8"

// Protect sets the header fields by which a browser takes nothing of what the page quotes for
// markup, and tells no site where its link stood.
func Protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
