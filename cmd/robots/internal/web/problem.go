// Package web is what programs that answer over HTTP have in common. It knows nothing of robots.txt: problem
// documents (RFC 9457), who may ask, deadlines for slow clients, room for what they send, and what gateways ask about.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
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

const types = "https://github.com/robotsgate/robotsgate/tree/main/cmd/robots#problem-"

func (p *Problem) Error() string { return p.Detail }

// NewProblem returns a problem of a kind, which is one word of its type. What is quoted in the detail may be as long as
// a robots.txt, and is cut.
func NewProblem(status int, kind, format string, args ...any) *Problem {
	detail := fmt.Sprintf("%.1000s", fmt.Sprintf(format, args...))
	return &Problem{Type: types + kind, Title: http.StatusText(status), Status: status, Detail: detail}
}

// BadParameter is the problem of a parameter that is missing or malformed.
func BadParameter(name, format string, args ...any) *Problem {
	p := NewProblem(http.StatusBadRequest, "parameter", format, args...)
	p.Parameter = name
	return p
}

func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	text, _ := json.Marshal(p)
	h.Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(p.Status)
	w.Write(append(text, '\n'))
}

func Busy() *Problem {
	p := NewProblem(http.StatusTooManyRequests, "busy", "too many questions are under way")
	p.RetryAfter = time.Second
	return p
}

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

// IsLoopback reports whether only this machine reaches l.
func IsLoopback(l net.Listener) bool { return l.Addr().(*net.TCPAddr).IP.IsLoopback() }

// MaxHeader bounds the header of a request: a URL of 16 KiB with every byte escaped, and other fields.
const MaxHeader = 64 << 10

type Server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// Until has server serve on l until ctx ends. Then it calls stop, and what is under way has the time of drain
// to end; what has not ended by then is cut off. An error of Serve before that is one of the listener.
func Until(ctx context.Context, log *slog.Logger, server Server, l net.Listener, drain time.Duration, stop func()) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	log.Info("draining", "at most", drain)
	stop()
	ends, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(ends); err != nil {
		log.Warn("cut off what was under way", "error", err)
		server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Health has mux answer /healthz, and /readyz until what ends with ctx, or ping fails. what is a word for the
// program. ping has a second: a probe that hangs tells less than one that fails.
func Health(ctx context.Context, mux *http.ServeMux, what string, ping func(context.Context) error) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		within, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		switch {
		case ctx.Err() != nil:
			Unavailable("the " + what + " is ending").Write(w)
		case ping(within) != nil:
			Unavailable("the store of turns is away").Write(w)
		default:
			io.WriteString(w, "ok\n")
		}
	})
}
