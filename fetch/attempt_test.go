package fetch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// Eighteen requests are what five redirects and two retries of each URL come to. They are
// the limit of everything else, too.
func TestAFetchHasEighteenRequestsInAll(t *testing.T) {
	for _, c := range []struct {
		name    string
		retries int
		prev    string                       // the URL of the stored file
		answer  func(n int) (int, [2]string) // status and header of the n-th request
		err     string
	}{
		{"retries alone", 30, "", func(int) (int, [2]string) { return 503, [2]string{} }, "status 503"},
		{"a 304 of another copy", 0, "http://a.test/15", func(n int) (int, [2]string) {
			switch {
			case n == 18:
				return 304, [2]string{"ETag", `"other"`}
			case n%3 == 0:
				return 302, [2]string{"Location", fmt.Sprintf("/%d", n)}
			}
			return 503, [2]string{}
		}, "too many requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				f := fetch.Fetcher{Retries: c.retries, Timeout: time.Hour, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
					n++
					status, header := c.answer(n)
					return response(status, "", header[:]...), nil
				})}
				prev := stored("ETag", tag)
				prev.Redirects = []string{c.prev}
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), prev)
				check(t, r, err, "disallow")
				if n != 18 || !strings.Contains(fmt.Sprint(r.Err), c.err) {
					t.Errorf("got %d requests, want 18, and %v, want %q", n, r.Err, c.err)
				}
			})
		})
	}
}

func TestRetries(t *testing.T) {
	down := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		retries int
		status  int
		header  []string
		err     error
		want    int // requests
	}{
		{"404", 0, 404, nil, nil, 1},
		{"200", 0, 200, nil, nil, 1},
		{"304", 0, 304, nil, nil, 1},
		{"429", 0, 429, nil, nil, 1},
		{"600", 0, 600, nil, nil, 1},
		{"503 by default", 0, 503, nil, nil, 3},
		{"503 once", 1, 503, nil, nil, 2},
		{"503 never", -1, 503, nil, nil, 1},
		{"503 often", 1000, 503, nil, nil, 10}, // pauses grow, Timeout ends it: see below
		{"failure by default", 0, 0, nil, down, 3},
		{"failure never", -1, 0, nil, down, 1},
		{"Retry-After that fits", 0, 503, []string{"Retry-After", "9"}, nil, 3},
		{"Retry-After that fits once", 0, 503, []string{"Retry-After", "20"}, nil, 2},
		{"Retry-After that does not fit", 0, 503, []string{"Retry-After", "3600"}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, start := 0, time.Now()
				f := fetch.Fetcher{Retries: c.retries, Transport: roundtrip.Func(func(r *http.Request) (*http.Response, error) {
					n++
					return response(c.status, file, c.header...), c.err
				})}
				_, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 30*time.Second || c.want == 1 && took > 0 {
					t.Errorf("took %v", took)
				}
				if c.retries == 1000 {
					if n < c.want || n > 18 {
						t.Errorf("got %d requests, want %d to 18", n, c.want)
					}
				} else if n != c.want {
					t.Errorf("got %d requests, want %d", n, c.want)
				}
			})
		})
	}
}

func TestTheCallersContextIsTheOnlyError(t *testing.T) {
	hang := roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	synctest.Test(t, func(t *testing.T) {
		f := fetch.Fetcher{Transport: hang}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
			t.Errorf("got %v, %v", r, err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("returned after %v, want 3s", took)
		}
		if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
			t.Errorf("with an ended context: got %v, %v", r, err)
		}
		// Our own time-out is an answer.
		start = time.Now()
		fetched(t, &f, "http://a.test", nil, "disallow")
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("gave up after %v, want at most 30s", took)
		}
	})
}

// An answer that breaks off is worth one more request, what will fail again none.
func TestWhatIsWorthARetry(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error  // of the transport, or
		body  string // a body that breaks off
		want  int
		cause string
	}{
		{"time-out", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "", 3, "connection_timeout"},
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "", 3, "connection_refused"},
		{"name server does not answer", &net.DNSError{IsTimeout: true}, "", 3, "dns_timeout"},
		{"name does not exist", &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, "", 1, "dns_error"},
		{"certificate", &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}}, "", 1, "tls_certificate_error"},
		{"no route", &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, "", 3, "destination_ip_unroutable"},
		{"TLS alert", &net.OpError{Op: "remote error", Err: tls.AlertError(40)}, "", 3, "tls_alert_received"},
		{"no TLS", http.ErrSchemeMismatch, "", 3, "tls_protocol_error"},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, "", 3, "connection_terminated"},
		{"anything else", errors.New("it broke"), "", 3, ""},
		{"body breaks off", nil, file, 2, "http_response_incomplete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				f := fetch.Fetcher{Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
					n++
					res := response(200, "")
					res.Body = io.NopCloser(io.MultiReader(strings.NewReader(c.body), readFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF })))
					return res, c.err
				})}
				r := fetched(t, &f, "http://a.test", nil, "disallow")
				if n != c.want {
					t.Errorf("%d requests, want %d", n, c.want)
				}
				if got := cause(r); got != c.cause {
					t.Errorf("the cause is %q, want %q", got, c.cause)
				}
				if n > 1 && !strings.Contains(fmt.Sprint(r.Err), fmt.Sprintf("requests: %d", n)) {
					t.Errorf("Err does not say that there were %d requests: %v", n, r.Err)
				}
			})
		})
	}
}

// A server decides what an error quotes, not what kind of error it is.
func TestTheCauseOfAFailureIsNoText(t *testing.T) {
	spoof := (&tls.CertificateVerificationError{Err: errors.New("x")}).Error()
	for _, c := range []struct {
		name string
		res  *http.Response
	}{
		{"a redirect to it", response(302, "", "Location", "//"+spoof)},
		{"a field", response(200, file, spoof+" ", "x")},
		{"a status", response(503, spoof)},
		{"a 304", response(304, "")},
	} {
		rt, _ := answers(c.res)
		f := fetch.Fetcher{Transport: rt, Retries: -1}
		r := fetched(t, &f, "https://a.test", nil, "disallow")
		if got := cause(r); got != "" {
			t.Errorf("%s: %q: %v", c.name, got, r.Err)
		}
	}
}

// cause is that of a Result's Err.
func cause(r *fetch.Result) string {
	if failure, ok := r.Err.(*fetch.Failure); ok {
		return failure.Cause
	}
	return ""
}

// eofConn is a stream, as of a multiplexer, whose Read ends with io.EOF once it is closed
// at this end.
type eofConn struct {
	net.Conn
	closed atomic.Bool
}

func (c *eofConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func (c *eofConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil && c.closed.Load() {
		err = io.EOF
	}
	return n, err
}

// T-02: a file without a length, of which one half came, is not the whole file because we
// hang up.
func TestOurOwnCloseIsNotTheEndOfTheFile(t *testing.T) {
	base := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			http.ReadRequest(bufio.NewReader(server))
			io.WriteString(server, "HTTP/1.1 200 OK\r\n\r\n"+file)
			io.Copy(io.Discard, server)
		}()
		return &eofConn{Conn: client}, nil
	}}
	synctest.Test(t, func(t *testing.T) {
		f := fetch.Fetcher{Transport: base, Retries: -1}
		fetched(t, &f, "http://a.test", nil, "disallow")
	})
}

// Without a time-out of ours the caller's context and the connection's limits are left.
func TestANegativeTimeoutIsNone(t *testing.T) {
	slow := roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(time.Hour):
			return response(200, file), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	for _, timeout := range []time.Duration{-1, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := fetch.Fetcher{Transport: slow, Timeout: timeout}
			start := time.Now()
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			check(t, r, err, "rules")
			if took := time.Since(start); took != time.Hour {
				t.Errorf("took %v, want 1h", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
				t.Errorf("got %v, %v", r, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			rt, n := answers(response(503, "", "Retry-After", "3600"))
			f := fetch.Fetcher{Transport: rt, Timeout: timeout}
			start := time.Now()
			fetched(t, &f, "http://a.test", nil, "disallow")
			if took := time.Since(start); took != 0 || *n != 1 {
				t.Errorf("waited %v for a server that asks for an hour, %d requests", took, *n)
			}
		})
	}
}
