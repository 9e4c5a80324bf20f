package web

// How a program that runs on begins and ends: the same for serve and proxy, so that a service manager sees
// them alike.

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// IsLoopback reports whether only this machine reaches l.
func IsLoopback(l net.Listener) bool { return l.Addr().(*net.TCPAddr).IP.IsLoopback() }

// MaxHeader bounds the header of a request: a URL of 16 KiB with every byte escaped, and other fields.
const MaxHeader = 64 << 10

// Server is an http.Server, or what ends as one does.
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
