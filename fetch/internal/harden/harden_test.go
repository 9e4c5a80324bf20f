package harden

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

func TestAConnectionGives4MiB(t *testing.T) {
	client, server := net.Pipe()
	r := &Request{Context: t.Context(), Guard: new(Guard)}
	dial := r.dialer(func(context.Context, string, string) (net.Conn, error) { return client, nil }, false)
	conn, err := dial(t.Context(), "tcp", "a.test:80")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for chunk := make([]byte, 64<<10); ; {
			if _, err := server.Write(chunk); err != nil {
				return
			}
		}
	}()
	n, err := io.Copy(io.Discard, conn)
	if n != MaxConn || !errors.Is(err, ErrTooMuch) {
		t.Errorf("read %d bytes, %v, want %d, %v", n, err, MaxConn, ErrTooMuch)
	}
}
