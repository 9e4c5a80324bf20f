package proxy

import (
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// The errors are those of RFC 9209 §2.3.
func TestFailuresHaveTheirNames(t *testing.T) {
	for want, err := range map[string]error{
		"destination_ip_unroutable": &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"connection_refused":        &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"tls_alert_received":        &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")},
		"tls_protocol_error":        http.ErrSchemeMismatch,
		"http_protocol_error":       errors.New("net/http: any"),
	} {
		if status, kind := failureOf(err); status != 502 || kind != want {
			t.Errorf("%v: %d %s, want %s", err, status, kind, want)
		}
	}
}
