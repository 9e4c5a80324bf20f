package fetch_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A header of any length costs no more than 64 KiB and what buffers hold.
func TestAHeaderIsReadUpToItsLimit(t *testing.T) {
	var read atomic.Int64
	dial := func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err != nil {
				return
			}
			fmt.Fprint(far, "HTTP/1.1 200 OK\r\n")
			for line := "X: " + strings.Repeat("x", 1000) + "\r\n"; ; {
				n, err := far.Write([]byte(line))
				if read.Add(int64(n)); err != nil || read.Load() > 1<<20 {
					return
				}
			}
		}()
		return near, nil
	}
	f := &fetch.Fetcher{Transport: &http.Transport{DialContext: dial}, Retries: -1}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.example"), nil)
	if err != nil || r.Err == nil || read.Load() > 80<<10 {
		t.Errorf("%v, %v after %d bytes of header", r, err, read.Load())
	}
}

// An origin is as private as its own address, wherever its redirects led meanwhile.
func TestAPrivateOriginMayRedirectOutAndBack(t *testing.T) {
	dial := func(_ context.Context, _, addr string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			req, err := http.ReadRequest(bufio.NewReader(far))
			switch {
			case err != nil:
			case req.Host == "out.example":
				fmt.Fprint(far, "HTTP/1.1 302 Found\r\nLocation: http://in.example/back\r\nContent-Length: 0\r\n\r\n")
			case req.RequestURI == "/back":
				fmt.Fprint(far, "HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\nUser-agent: *\nDisallow: /\n")
			default:
				fmt.Fprint(far, "HTTP/1.1 302 Found\r\nLocation: http://out.example/robots.txt\r\nContent-Length: 0\r\n\r\n")
			}
		}()
		if strings.HasPrefix(addr, "out.") {
			return peer{near, &net.TCPAddr{IP: net.IPv4(93, 184, 215, 14), Port: 80}}, nil
		}
		return peer{near, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80}}, nil
	}
	f := &fetch.Fetcher{Transport: &http.Transport{DialContext: dial}, Retries: -1}
	r, err := f.Fetch(t.Context(), originOf(t, "http://in.example"), nil)
	if err != nil || r.Err != nil || r.Policy.Decide("x", "/a").Reason != policy.ReasonRule {
		t.Errorf("%v, %v", r, err)
	}
}
