package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

// The place of a request is given back when its body is done with, in whatever way, and
// the delay runs from then: a second request starts one second after the first ended.
func TestPacerPlaceIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		body io.ReadCloser
		use  func(t *testing.T, res *http.Response, cancel func())
		want time.Duration // after the first has begun
	}{
		{"no body", http.NoBody, nil, time.Second},
		{"closed", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			res.Body.Close()
			res.Body.Close() // no harm
		}, 5 * time.Second},
		{"read to its end", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			if b, err := io.ReadAll(res.Body); string(b) != "page" || err != nil {
				t.Errorf("read %q, %v", b, err)
			}
			time.AfterFunc(time.Minute, func() { res.Body.Close() })
		}, 5 * time.Second},
		{"copied to its end", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			var b strings.Builder
			if n, err := io.Copy(&b, res.Body); b.String() != "page" || n != 4 || err != nil {
				t.Errorf("copied %q, %d, %v", b.String(), n, err)
			}
		}, 5 * time.Second},
		{"fails", io.NopCloser(io.MultiReader(strings.NewReader("pa"), failing{})), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			if b, err := io.ReadAll(res.Body); string(b) != "pa" || err != errFailing {
				t.Errorf("read %q, %v", b, err)
			}
		}, 5 * time.Second},
		{"forgotten, the context ends", text("page"), func(t *testing.T, res *http.Response, cancel func()) {
			time.Sleep(4 * time.Second)
			cancel()
		}, 5 * time.Second},
		{"half read", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			io.CopyN(io.Discard, res.Body, 2)
			time.AfterFunc(time.Minute, func() { res.Body.Close() })
		}, 61 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := paced(&client.Pacer{}, pagesOf(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: c.body}, nil
			}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
			res, err := web.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if c.use != nil {
				c.use(t, res, cancel)
			}
			web.Get("http://a.example/")
			if took := time.Since(begin); took != c.want {
				t.Errorf("%s: the next started after %v, want %v", c.name, took, c.want)
			}
		})
	}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

type failing struct{}

var errFailing = errors.New("connection reset")

func (failing) Read([]byte) (int, error) { return 0, errFailing }

// A base that panics, in a program that recovers, keeps no place.
func TestPacerPlaceIsGivenBackOnPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := &client.Pacer{}
		c := paced(pacer, pagesOf(func(*http.Request) (*http.Response, error) { panic("base") }))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			c.Get("http://a.example/")
		}()
		c.Transport.(*client.Transport).Base = nil // not used any more
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := pacer.Wait(ctx, parse("http://a.example/")); err != nil {
			t.Error(err)
		}
	})
}

// The body of a 101 answer is the connection: it can be written to, and half-closed
// where net/http can do that.
func TestPacerLeavesUpgradedConnectionsWhole(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := paced(&client.Pacer{Delay: -1}, pagesOf(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 101, Body: &halfClosing{Conn: here}}, nil
	}))
	res, err := c.Get("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("%T cannot be written to", res.Body)
	}
	go func() {
		b := make([]byte, 4)
		io.ReadFull(there, b)
		there.Write([]byte(strings.ToUpper(string(b))))
	}()
	conn.Write([]byte("ping"))
	b := make([]byte, 4)
	if _, err := io.ReadFull(conn, b); string(b) != "PING" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	half := conn.(interface{ CloseWrite() error })
	if err := half.CloseWrite(); err != errHalf {
		t.Errorf("CloseWrite: got %v, want %v", err, errHalf)
	}
	conn.Close()
}

type halfClosing struct{ net.Conn }

var errHalf = errors.New("half closed")

func (halfClosing) CloseWrite() error { return errHalf }

// io.Copy takes the short way that the base's body offers.
func TestPacerKeepsWriterTo(t *testing.T) {
	body := &shortcut{}
	c := paced(&client.Pacer{}, pagesOf(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: body}, nil
	}))
	c.Transport.(*client.Transport).Pacer.Delay = -1
	res, err := c.Get("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(struct{ io.Writer }{io.Discard}, res.Body)
	if !body.taken {
		t.Error("WriteTo was not called")
	}
}

type shortcut struct {
	failing
	taken bool
}

func (s *shortcut) Close() error                     { return nil }
func (s *shortcut) WriteTo(io.Writer) (int64, error) { s.taken = true; return 0, nil }
