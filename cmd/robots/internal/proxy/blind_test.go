package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// tunnelled is a Server with one blind tunnel, in a bubble. answers are what Blind says, one after the other.
type tunnelled struct {
	*Server
	conn net.Conn // the client's end
	site net.Conn // the site's end
}

func newTunnelled(t *testing.T, blind func(context.Context, Target) (time.Time, error)) *tunnelled {
	near, far := net.Pipe()
	s := &Server{Limits: UsualLimits, Log: slog.New(slog.DiscardHandler), Blind: blind,
		Permit:  func(netip.AddrPort) error { return nil },
		Dial:    func(context.Context, string, string) (net.Conn, error) { return near, nil },
		Explain: func(err error) Refusal { return Refusal{Problem: web.NewProblem(403, "tunnel", "%v", err)} },
	}
	l := newHandover()
	go s.Serve(l)
	mine, its := net.Pipe()
	l.put(its)
	t.Cleanup(func() { s.Close(); mine.Close() })
	io.WriteString(mine, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(mine), &http.Request{Method: "CONNECT"})
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	return &tunnelled{s, mine, far}
}

// hello begins a handshake.
func (v *tunnelled) hello(t *testing.T) {
	go tls.Client(noAnswer{v.conn}, &tls.Config{ServerName: "a.example"}).Handshake()
	if _, err := v.site.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
}

// noAnswer never has anything to read.
type noAnswer struct{ net.Conn }

func (noAnswer) Read([]byte) (int, error) { return 0, io.EOF }

// carries reports whether the tunnel is there.
func (v *tunnelled) carries() bool {
	v.conn.SetDeadline(time.Now().Add(time.Second))
	v.site.SetDeadline(time.Now().Add(time.Second))
	go v.conn.Write([]byte("x"))
	_, err := v.site.Read(make([]byte, 1))
	return err == nil
}

// A tunnel is there for as long as what it was opened by holds, and is looked at again at the end of each answer.
func TestTunnelsEndWithTheRules(t *testing.T) {
	const life = 10 * time.Minute
	for name, c := range map[string]struct {
		until func(time.Time) time.Time
		again error // from the second time on
		asked int   // in half an hour
		stays bool
	}{
		"rules that stay":          {func(now time.Time) time.Time { return now.Add(life) }, nil, 3, true},
		"rules that change":        {func(now time.Time) time.Time { return now.Add(life) }, errors.New("forbidden now"), 2, false},
		"a site that holds no one": {func(time.Time) time.Time { return time.Time{} }, errors.New("not asked"), 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int32
			v := newTunnelled(t, func(_ context.Context, to Target) (time.Time, error) {
				if asked.Add(1) > 1 && c.again != nil {
					return time.Time{}, c.again
				}
				return c.until(time.Now()), nil
			})
			v.hello(t)
			for range 29 {
				time.Sleep(time.Minute - time.Second)
				if there := v.carries(); there != (c.stays || asked.Load() == 1) {
					t.Errorf("%s: after %d answers: %v", name, asked.Load(), there)
				}
			}
			if asked := int(asked.Load()); asked != c.asked {
				t.Errorf("%s: asked %d times, want %d", name, asked, c.asked)
			}
			v.conn.Close()
			synctest.Wait()
			if n := len(v.underway); n != 0 {
				t.Errorf("%s: %d are under way", name, n)
			}
		})
	}
}

// A ClientHello that does not come, or not to an end, is waited for as long as any header.
func TestTunnelsWaitForNoHello(t *testing.T) {
	for _, text := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"} {
		synctest.Test(t, func(t *testing.T) {
			v := newTunnelled(t, func(context.Context, Target) (time.Time, error) { return time.Now().Add(time.Hour), nil })
			begin := time.Now()
			io.WriteString(v.conn, text)
			n, err := v.site.Read(make([]byte, 1))
			if took := time.Since(begin); n != 0 || err != io.EOF || took != v.Limits.Ask {
				t.Errorf("%q: after %v: %d, %v", text, took, n, err)
			}
		})
	}
}

// What is no handshake does not get through, and a ClientHello has a bound.
func TestTunnelsCarryTLSAlone(t *testing.T) {
	for name, text := range map[string]string{
		"HTTP":            "GET /private HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"HTTP/2":          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"SSH":             "SSH-2.0-x\r\n",
		"SSLv2":           "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
		"application":     "\x17\x03\x03\x00\x05hello",
		"another message": "\x16\x03\x01\x00\x04\x02\x00\x00\x00",
		"a large one":     "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + fmt.Sprintf("%016380d", 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			v := newTunnelled(t, func(context.Context, Target) (time.Time, error) { return time.Now().Add(time.Hour), nil })
			begin := time.Now()
			go io.WriteString(v.conn, text)
			if n, err := v.site.Read(make([]byte, 1)); n != 0 || err != io.EOF || time.Since(begin) > 0 {
				t.Errorf("%s: after %v: %d, %v", name, time.Since(begin), n, err)
			}
		})
	}
}
