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
	"slices"
	"strings"
	"sync"
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
					t.Errorf("%d requests took %v, want 30s at most, and none for one", n, took)
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
	asked := 0
	hang := roundtrip.Func(func(r *http.Request) (*http.Response, error) {
		asked++
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	synctest.Test(t, func(t *testing.T) {
		f := fetch.Fetcher{Transport: hang}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded {
			t.Errorf("got %v, %v, want a DeadlineExceeded", r, err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("returned after %v, want 3s", took)
		}
		asked = 0
		for range 20 { // a select would be right every other time
			if r, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); r != nil || err != context.DeadlineExceeded || asked > 0 {
				t.Fatalf("with an ended context: got %v, %v, %d requests, want a DeadlineExceeded and none", r, err, asked)
			}
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
			t.Errorf("%s: got the cause %q, want none (%v)", c.name, got, r.Err)
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

// eofConn is a stream, as of a multiplexer, whose Read ends with io.EOF once it is closed at this end.
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

// T-02: a file without a length, of which one half came, is not the whole file because we hang up.
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
				t.Errorf("got %v, %v, want a DeadlineExceeded", r, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			rt, n := answers(response(503, "", "Retry-After", "3600"))
			f := fetch.Fetcher{Transport: rt, Timeout: timeout}
			start := time.Now()
			fetched(t, &f, "http://a.test", nil, "disallow")
			if took := time.Since(start); took != 0 || *n != 1 {
				t.Errorf("waited %v for a server that asks for an hour, %d requests, want 0s and 1", took, *n)
			}
		})
	}
}

// That other files take the memory is no failure of the origin that waits for it; a usual file waits for none.
func TestAFileThatWaitsForMemoryIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "User-agent: *\nDisallow: /p\n" + strings.Repeat("#", 20<<10)
		f := fetch.Fetcher{Retries: 1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			res := &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: nil}
			switch name, _, _ := strings.Cut(req.URL.Hostname(), "."); name {
			case "stalls":
				r, w := io.Pipe()
				go func() {
					io.WriteString(w, long)
					<-req.Context().Done()
					w.CloseWithError(req.Context().Err())
				}()
				res.Body = r
			case "breaks":
				res.Body = io.NopCloser(io.MultiReader(strings.NewReader(long), readFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF })))
			case "long":
				res.Body = io.NopCloser(strings.NewReader(long))
			default:
				res.Body = io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /p\n"))
			}
			return res, nil
		})}
		f.SetMemory(1)
		ask := func(host string) (string, time.Duration) {
			start := time.Now()
			r, err := f.Fetch(t.Context(), originOf(t, "http://"+host+".test"), nil)
			why, ours := errors.AsType[*fetch.Failure](err)
			switch {
			case ours && why.Cause == "proxy_internal_error" && strings.Contains(why.Text, "take all the memory") && r == nil:
				return "no turn", time.Since(start)
			case err != nil:
				return err.Error(), time.Since(start)
			case r.Err != nil:
				return "unreachable", time.Since(start)
			}
			return fmt.Sprint(len(r.Body)), time.Since(start)
		}
		expect := func(host, want string, least, most time.Duration) {
			t.Helper()
			if got, took := ask(host); got != want || took < least || took > most {
				t.Errorf("%s: %s after %v, want %s in %v to %v", host, got, took, want, least, most)
			}
		}
		expect("breaks", "unreachable", 0, time.Second) // twice, and each gives back what it took
		expect("long", fmt.Sprint(len(long)), 0, 0)
		var stalled sync.WaitGroup
		stalled.Go(func() { expect("stalls", "unreachable", 15*time.Second, 31*time.Second) })
		time.Sleep(time.Second)
		expect("usual", "27", 0, 0)
		expect("long", fmt.Sprint(len(long)), 13*time.Second, 15*time.Second) // once the other's time is over
		stalled.Wait()
		for range 5 { // what a site did counts, whichever of the two has the memory at the second try
			var both sync.WaitGroup
			both.Go(func() { expect("stalls", "unreachable", 15*time.Second, 31*time.Second) })
			both.Go(func() { time.Sleep(time.Second); ask("stalls.other") })
			both.Wait()
		}

		stalled.Go(func() { ask("stalls") })
		time.Sleep(time.Millisecond)
		other := make(chan string)
		go func() {
			got, _ := ask("stalls") // waits behind it, and then stalls itself
			other <- got
		}()
		if got := <-other; got != "no turn" {
			t.Errorf("a file that waited for memory: %s, want no turn", got)
		}
		stalled.Wait()
		expect("long", fmt.Sprint(len(long)), 0, 0)
	})
}

// A longer file that waits for its turn to be parsed keeps its caller no longer than the context.
func TestTheWaitToParseEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, _ := answers(response(200, strings.Repeat("#", 20<<10)))
		f := fetch.Fetcher{Transport: rt}
		if err := f.HoldParsing(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := f.Fetch(ctx, originOf(t, "http://a.test"), nil); err != context.DeadlineExceeded || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %v, want the context's error after 5s", err, time.Since(start))
		}
	})
}

// As many long files are read at once as have place in the memory.
func TestLongFilesAtOnce(t *testing.T) {
	const want = 64 << 20 / (maxFile + 1)
	synctest.Test(t, func(t *testing.T) {
		var admitted atomic.Int32
		f := fetch.Fetcher{Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			res := response(200, "")
			long := strings.NewReader(strings.Repeat("#", 16<<10))
			res.Body = io.NopCloser(io.MultiReader(long, readFunc(func([]byte) (int, error) {
				admitted.Add(1)
				<-req.Context().Done()
				return 0, req.Context().Err()
			})))
			return res, nil
		})}
		ctx, cancel := context.WithCancel(t.Context())
		var fetches sync.WaitGroup
		for i := range 200 {
			fetches.Go(func() { f.Fetch(ctx, originOf(t, fmt.Sprintf("http://h%d.test", i)), nil) })
		}
		synctest.Wait()
		if n := admitted.Load(); n != want {
			t.Errorf("%d long files are read at once, want %d", n, want)
		}
		cancel()
		fetches.Wait()
	})
}

var retryNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// retries has values of Retry-After, seen at retryNow in an answer with that Date or none.
var retries = []struct {
	status      int
	value, date string
	want        time.Duration // 0: as if absent
}{
	// RFC 9110 §10.2.3: seconds, or a date in one of three formats (§5.6.7).
	{503, "120", "", 2 * time.Minute},
	{503, "00120", "", 2 * time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "", time.Minute},
	{503, "Saturday, 21-Nov-26 12:01:00 GMT", "", time.Minute},
	{503, "Sat Nov 21 12:01:00 2026", "", time.Minute},

	{429, "120", "", 2 * time.Minute},
	{500, "120", "", 2 * time.Minute},
	{200, "120", "", 0},
	{301, "120", "", 0},
	{404, "120", "", 0},
	{600, "120", "", 0},

	// The server's clock is wrong: the difference of its own two times counts.
	{503, "Sat, 21 Nov 2026 15:01:00 GMT", "Sat, 21 Nov 2026 15:00:00 GMT", time.Minute},
	{503, "Sat, 21 Nov 2026 09:00:00 GMT", "Sat, 21 Nov 2026 08:00:00 GMT", time.Hour},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "nonsense", time.Minute},

	// A day at most.
	{503, "86400", "", 24 * time.Hour},
	{503, "86401", "", 24 * time.Hour},
	{503, "9223372037", "", 24 * time.Hour}, // overflows a Duration
	{503, "9223372036854775808", "", 24 * time.Hour},
	{503, "9999999999999999999999999999", "", 24 * time.Hour}, // overflows everything
	{503, "Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", 24 * time.Hour},

	// As servers write it.
	{503, "1.5", "", 2 * time.Second},
	{503, "0.001", "", time.Second},
	{503, "120, 240", "", 4 * time.Minute},
	{503, "soon, 120", "", 2 * time.Minute},
	{503, ",, 120 ,", "", 2 * time.Minute},
	{503, "Sat, 21 Nov 2026 14:01:00 +0200", "", time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 -0000", "", time.Minute},
	{503, "30, Sat, 21 Nov 2026 12:01:00 GMT", "", time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT, 30", "", time.Minute},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT, Sat, 21 Nov 2026 12:02:00 GMT", "", 2 * time.Minute},

	// Says nothing.
	{503, ".5", "", 0},
	{503, "1.5s", "", 0},
	{503, "1.2.3", "", 0},
	{503, "", "", 0},
	{503, "0", "", 0},
	{503, "-1", "", 0},
	{503, "0x10", "", 0},
	{503, "soon", "", 0},
	{503, "Sat, 21 Nov 2026", "", 0},
	{503, "Sat, 21 Nov 2026 11:59:00 GMT", "", 0},
	{503, "Sat, 21 Nov 2026 12:01:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", 0},
}

func TestRetryAfterIsSecondsOrADateAndAtMostADay(t *testing.T) {
	for _, c := range retries {
		h := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		if got := fetch.RetryAfter(c.status, h, retryNow); got != c.want {
			t.Errorf("%d with %q, dated %q: got %v, want %v", c.status, c.value, c.date, got, c.want)
		}
	}
	if got := fetch.RetryAfter(503, http.Header{"Retry-After": {"1", "120", "x"}}, retryNow); got != 2*time.Minute {
		t.Errorf("three lines: got %v, want 2m", got)
	}
	// The answer to a page may have megabytes of them, and to read those would hold its caller up for seconds.
	if got := fetch.RetryAfter(503, http.Header{"Retry-After": {strings.Repeat(",", 1<<10), "120"}}, retryNow); got != 0 {
		t.Errorf("after 1 KiB of commas: got %v, want 0", got)
	}
	if got := fetch.RetryAfter(503, nil, retryNow); got != 0 {
		t.Errorf("absent: got %v, want 0", got)
	}
}

func TestStatusesOfTheMoment(t *testing.T) {
	for status := range 700 {
		want := status >= 500 && status <= 599 || slices.Contains([]int{408, 421, 425, 428, 429, 431}, status)
		if got := (&fetch.Result{StatusCode: status}).OfTheMoment(); got != want {
			t.Errorf("%d: got %v, want %v", status, got, want)
		}
		if r := (fetch.Result{StatusCode: status, Err: io.ErrUnexpectedEOF}); r.OfTheMoment() {
			t.Errorf("%d, unreachable: got of the moment, want not", status)
		}
	}
}

func TestRetryAfterIsReportedInTheResult(t *testing.T) {
	for status, want := range map[int]time.Duration{503: 2 * time.Minute, 429: 2 * time.Minute, 404: 0} {
		rt, _ := answers(response(status, "", "Retry-After", "120"))
		f := fetch.Fetcher{Transport: rt, Retries: -1}
		if r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || r.RetryAfter != want {
			t.Errorf("%d: got %v, want %v (%v)", status, r.RetryAfter, want, err)
		}
	}
}

// Pauses grow, are random, and leave room for the wish of the server.
func TestThePausesBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var longest [3]time.Duration
		for range 300 {
			var at []time.Time
			f := fetch.Fetcher{Retries: 3, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				return response(503, ""), nil
			})}
			if _, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil); err != nil || len(at) != 4 {
				t.Fatalf("got %d requests, %v, want 4", len(at), err)
			}
			for i := range longest {
				longest[i] = max(longest[i], at[i+1].Sub(at[i]))
			}
		}
		for i, d := range longest {
			// Of 300 draws below a limit, the largest is above two thirds of it, but for one in 10^52.
			if limit := 250 * time.Millisecond << i; d >= limit || d < limit*2/3 {
				t.Errorf("pause %d is up to %v, want almost %v", i, d, limit)
			}
		}
	})
}
