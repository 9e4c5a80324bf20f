package fetch_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// piped is a transport whose server reads a request, writes the bytes of message, and closes, in memory.
func piped(message func() []byte) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
				server.Write(message())
			}
		}()
		return client, nil
	}}
}

// reply is a whole response; fields are "Name: value".
func reply(status int, body string, fields ...string) string {
	fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)))
	return head(fmt.Sprintf("HTTP/1.1 %d Some Reason", status), fields...) + body
}

func head(line string, fields ...string) string {
	return line + "\r\n" + strings.Join(append(fields, "", ""), "\r\n")
}

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func chunks(s string) string {
	half := len(s) / 2
	return fmt.Sprintf("%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\nTrailer: x\r\n\r\n", half, s[:half], len(s)-half, s[half:])
}

// Half of a file permits what the other half forbids, so nothing of it may count.
func TestAnAnswerThatIsCutAnywhereGivesNoPermission(t *testing.T) {
	for _, c := range []struct {
		name, message string
		until         int // cuts after this offset are harmless; 0: none is
	}{
		{"length", reply(200, file), 0},
		{"empty file", reply(200, ""), 0},
		{"chunked", head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + chunks(file), 0},
		{"gzip", reply(200, gzipped(file), "Content-Encoding: gzip"), 0},
		{"gzip, chunked", head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Encoding: gzip") + chunks(gzipped(file)), 0},
		{"gzip, to the end of the connection", head("HTTP/1.1 200 OK", "Content-Encoding: gzip") + gzipped(file), 0},
		{"after an interim response", head("HTTP/1.1 103 Early Hints") + reply(200, file), 0},
		{"404", reply(404, ""), 0},
		{"404 with a body", reply(404, file), len(reply(404, file)) - len(file)},
		{"204", head("HTTP/1.1 204 No Content", "X: y"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut := len(c.message)
			f := fetch.Fetcher{Retries: -1, Transport: piped(func() []byte { return []byte(c.message[:cut]) })}
			r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
			if err != nil || r.Err != nil {
				t.Fatalf("whole: got %v, %v, want no error", err, r.Err)
			}
			last := len(c.message)
			if c.until > 0 {
				last = c.until
			}
			for cut = range last {
				r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
				if err != nil || verdict(r) != "disallow" || r.Err == nil {
					t.Fatalf("cut after %q: got %s, %v, want disallow", c.message[:cut], verdict(r), err)
				}
			}
		})
	}
}

// FuzzResponse: whatever a server sends, the Result is complete, bounded, and consistent.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(reply(200, file)), uint8(0))
	f.Add([]byte(reply(200, gzipped(file), "Content-Encoding: gzip")), uint8(1))
	f.Add([]byte(head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")+chunks(file)), uint8(2))
	f.Add([]byte(reply(302, "", "Location: //b.test/x?y#z")), uint8(3))
	f.Add([]byte(reply(503, "", "Retry-After: 99999999999999999999", "Date: x")), uint8(4))
	f.Add([]byte(reply(304, "", `ETag: "x"`)), uint8(0))
	f.Add([]byte(head("HTTP/1.1 103 Early Hints")+reply(200, "")), uint8(0))
	f.Fuzz(func(t *testing.T, message []byte, dialect uint8) {
		fetcher := fetch.Fetcher{
			Retries: -1, Timeout: 5 * time.Second,
			Transport: piped(func() []byte { return message }),
		}
		r, err := fetcher.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r = r.In(policy.Dialect(dialect % 5))
		check(t, r, err, verdict(r))
		if r.RetryAfter < 0 || r.RetryAfter > 24*time.Hour {
			t.Errorf("RetryAfter is %v, want 0 to 24h", r.RetryAfter)
		}
		if ok := bytes.HasPrefix(message, []byte("HTTP/1.")); verdict(r) != "disallow" && !ok && !strings.HasPrefix(string(message), "HTTP/") {
			t.Errorf("%q: got %s, want disallow for what is no HTTP", message, verdict(r))
		}
	})
}
