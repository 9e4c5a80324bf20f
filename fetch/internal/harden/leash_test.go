package harden

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
)

// held returns a connection as net/http gets it, and the server's side.
func held(t *testing.T) (conn, server net.Conn) {
	t.Helper()
	client, server := net.Pipe()
	dial := leashed(func(context.Context, string, string) (net.Conn, error) { return client, nil })
	ctx, _ := new(Guard).Leash(t.Context(), 0, "a.test:80", true, nil)
	conn, err := dial(ctx, "tcp", "a.test:80")
	if err != nil {
		t.Fatal(err)
	}
	return conn, server
}

func TestAConnectionGives4MiB(t *testing.T) {
	conn, server := held(t)
	defer conn.Close()
	go func() {
		io.ReadFull(server, make([]byte, 1))
		for chunk := make([]byte, 64<<10); ; {
			if _, err := server.Write(chunk); err != nil {
				return
			}
		}
	}()
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, conn)
	if n != MaxConn || !errors.Is(err, ErrTooMuch) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// What a server says unasked, net/http prints to the standard log: so it hears nothing
// until it has asked.
func TestNothingIsReadBeforeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server := held(t)
		defer conn.Close()
		read := ""
		go func() {
			b := make([]byte, 9)
			n, _ := io.ReadFull(conn, b)
			read = string(b[:n])
		}()
		go io.WriteString(server, "220 ready")
		go io.Copy(io.Discard, server)
		synctest.Wait()
		if read != "" {
			t.Errorf("read %q before the request", read)
		}
		io.WriteString(conn, "GET")
		synctest.Wait()
		if read != "220 ready" {
			t.Errorf("read %q after the request", read)
		}
	})
}

// net/http has no reason to dial twice for a request over HTTP/1.1. Should it find one, it
// does not get far.
func TestOneRequestHasOneDial(t *testing.T) {
	dials := 0
	dial := leashed(func(context.Context, string, string) (net.Conn, error) {
		dials++
		client, _ := net.Pipe()
		return client, nil
	})
	ctx, _ := new(Guard).Leash(t.Context(), 0, "a.test:80", true, nil)
	conn, err := dial(ctx, "tcp", "a.test:80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := dial(ctx, "tcp", "a.test:80"); err == nil || dials != 1 {
		t.Errorf("dialled %d times, %v", dials, err)
	}
}
