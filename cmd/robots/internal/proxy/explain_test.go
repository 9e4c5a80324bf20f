package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"testing"
)

// The errors are those of RFC 9209 §2.3.
func TestFailuresHaveTheirNames(t *testing.T) {
	for want, err := range map[string]error{
		"connection_refused":    &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"dns_error":             &net.DNSError{IsNotFound: true},
		"tls_certificate_error": &tls.CertificateVerificationError{},
		"http_protocol_error":   errors.New("net/http: any"),
	} {
		if status, kind := failureOf(err); status != 502 || kind != want {
			t.Errorf("%v: %d %s, want %s", err, status, kind, want)
		}
	}
	if status, kind := failureOf(&net.DNSError{IsTimeout: true}); status != 504 || kind != "connection_timeout" {
		t.Errorf("late: got %d %s, want 504 connection_timeout", status, kind)
	}
}
