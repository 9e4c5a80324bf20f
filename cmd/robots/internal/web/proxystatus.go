package web

import (
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// SetProxyStatus says in a Proxy-Status field that the answer is ours, and which of the errors of
// RFC 9209 §2.3 it is. What the details hold may come from a site.
func SetProxyStatus(h http.Header, kind, details string) {
	status := httpsfv.NewItem(httpsfv.Token("robotsgate"))
	status.Params.Add("error", httpsfv.Token(kind))
	status.Params.Add("details", ascii(details))
	if field, err := httpsfv.Marshal(httpsfv.List{status}); err == nil {
		h.Set("Proxy-Status", field)
	}
}

// ascii is text as a String of RFC 9651 §3.3.3 can hold it.
func ascii(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), 200)]
}
