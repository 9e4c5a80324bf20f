package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// http2Site answers with 103, then with what comes, as it comes, and with a trailer.
func http2Site(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		return
	}
	control := http.NewResponseController(w)
	control.EnableFullDuplex()
	w.Header().Set("Link", "</a.css>")
	w.WriteHeader(http.StatusEarlyHints)
	w.Header().Del("Link")
	w.Header().Set("Trailer", "X-Sum")
	w.WriteHeader(http.StatusOK)
	control.Flush()
	buf := make([]byte, 1<<10)
	for {
		n, err := r.Body.Read(buf)
		w.Write(buf[:n])
		control.Flush()
		if err != nil {
			break
		}
	}
	w.Header().Set("X-Sum", fmt.Sprintf("%s over %s", r.Trailer.Get("X-Sum"), r.Proto))
}

// With HTTP/2 on both sides of the proxy, on one, or on none, both bodies pass as they come.
func TestProxyStreamsOverHTTP2(t *testing.T) {
	tier.Gate(t)
	for _, site2 := range []bool{false, true} {
		site := httptest.NewUnstartedServer(http.HandlerFunc(http2Site))
		site.EnableHTTP2 = site2
		site.StartTLS()
		defer site.Close()
		trust(t, site.Certificate())
		flags, pool := testCA(t)
		v := startProxy(t, append(flags, "--private", "--connect-to=::"+site.Listener.Addr().String())...)
		for _, client2 := range []bool{false, true} {
			c := v.client(pool)
			c.ForceAttemptHTTP2 = client2
			proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}
			echo(t, c, proto[client2], proto[site2])
		}
	}
}

// echo sends a body piece by piece, each when the one before has come back.
func echo(t *testing.T, c *http.Transport, proto, siteProto string) {
	t.Helper()
	hints := ""
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = fmt.Sprint(code, h.Get("Link"))
		return nil
	}}
	body, send := io.Pipe()
	defer send.Close()
	ctx := httptrace.WithClientTrace(t.Context(), trace)
	req, err := http.NewRequestWithContext(ctx, "POST", "https://a.example.com/a", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Trailer = http.Header{"X-Sum": nil}
	late := time.AfterFunc(10*time.Second, func() { send.CloseWithError(io.ErrNoProgress) })
	defer late.Stop()
	res := answerTo(t, c, req)
	for i := range 5 {
		piece := strings.Repeat(fmt.Sprint(i), 100)
		if _, err := io.WriteString(send, piece); err != nil {
			t.Fatal(err)
		}
		back := make([]byte, len(piece))
		if _, err := io.ReadFull(res.Body, back); err != nil || string(back) != piece {
			t.Fatalf("%s, site %s: piece %d: %q, %v", proto, siteProto, i, back, err)
		}
	}
	req.Trailer.Set("X-Sum", "5")
	send.Close()
	rest, err := io.ReadAll(res.Body)
	want := "5 over " + siteProto
	if err != nil || len(rest) > 0 || res.Proto != proto || hints != "103</a.css>" || res.Trailer.Get("X-Sum") != want {
		t.Errorf("%s, site %s: %s, rest %q, %v, hints %q, trailer %q",
			proto, siteProto, res.Proto, rest, err, hints, res.Trailer)
	}
}
