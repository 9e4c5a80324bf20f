// Package web is what programs that answer over HTTP have in common. It knows nothing of robots.txt: problem
// documents (RFC 9457), who may ask, deadlines for slow clients, room for what they send, and what gateways ask about.
package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Problem is a problem document (RFC 9457). It is an error of the question, or of the moment: handlers return
// one, and it is written where they are called. README.md lists the types.
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Parameter string `json:"parameter,omitempty"` // the one that is missing or malformed

	RetryAfter time.Duration `json:"-"` // if zero, the field is not sent
}

// The types of problems end with one of these words.
const types = "https://github.com/robotsgate/robotsgate/tree/main/cmd/robots#problem-"

func (p *Problem) Error() string { return p.Detail }

// NewProblem returns a problem of a kind, which is one word of its type.
func NewProblem(status int, kind, format string, args ...any) *Problem {
	return &Problem{
		Type: types + kind, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...),
	}
}

// BadParameter is the problem of a parameter that is missing or malformed.
func BadParameter(name, format string, args ...any) *Problem {
	p := NewProblem(http.StatusBadRequest, "parameter", format, args...)
	p.Parameter = name
	return p
}

// Write answers with p.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	p.SetRetryAfter(h)
	text, _ := json.Marshal(p)
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(p.Status)
	w.Write(append(text, '\n'))
}

// SetRetryAfter sets the field, if there is one.
func (p *Problem) SetRetryAfter(h http.Header) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
}

// Busy is the problem of a bound that is reached.
func Busy() *Problem {
	p := NewProblem(http.StatusTooManyRequests, "busy", "too many questions are under way")
	p.RetryAfter = time.Second
	return p
}

// Unavailable is the problem of the moment.
func Unavailable(why string) *Problem {
	p := NewProblem(http.StatusServiceUnavailable, "unavailable", "%s", why)
	p.RetryAfter = time.Second
	return p
}

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
