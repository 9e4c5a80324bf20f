package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNothingIsDecidedForAClientThatHasLeft(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	v := newTurnService(t, 1, func(r *http.Request) (*http.Response, error) {
		leave() // while its question is answered
		return turnSite(r)
	})
	for _, ctx := range []context.Context{left, t.Context()} {
		want := ctx != left
		w := httptest.NewRecorder()
		v.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/?site=http://a.example&urls=/private", nil))
		if got := strings.Contains(w.Body.String(), "Refused by line 2"); got != want {
			t.Errorf("the client has left %v: decided %v, want %v; status %d", ctx == left, got, want, w.Code)
		}
		a, err := v.newPageAnswer(&pageForm{Pasted: true, Robots: "User-agent: *\nDisallow: /\n"})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.pasted(ctx); (err == nil) != want {
			t.Errorf("a file, the client has left %v: %v, want an answer: %v", ctx == left, err, want)
		}
	}
}
