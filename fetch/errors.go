package fetch

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"unicode"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

// Failure is the type of Result.Err, and of errors of Fetch that are not those of a context, a turn, or Sign.
type Failure struct {
	Text  string
	Cause string // in the words of RFC 9209 §2.3, such as "dns_error"; empty for a status, and where none fits
}

// Error returns Text, which makes Failure an error.
func (f *Failure) Error() string { return f.Text }

// Causes that this package gives itself, by RFC 9209 §2.3.
const (
	misconfigured = "proxy_configuration_error" // nothing was asked
	exhausted     = "proxy_internal_error"      // nothing was asked: this process has no descriptor or memory left
	denied        = "http_request_denied"       // by ObeyWalls
)

// causeOf returns what kind of failure err is.
func causeOf(err error) string {
	failure, _ := errors.AsType[*Failure](err)
	certificate, _ := errors.AsType[*tls.CertificateVerificationError](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	late, _ := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case failure != nil:
		return failure.Cause
	case errors.Is(err, harden.ErrProxyAuth):
		return misconfigured
	case errors.Is(err, ErrNotPublic):
		return "destination_ip_prohibited"
	case certificate != nil:
		return "tls_certificate_error"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return exhausted
	case dns != nil && dns.IsTimeout:
		return "dns_timeout"
	case dns != nil:
		return "dns_error"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "destination_ip_unroutable"
	case late != nil && late.Timeout():
		return "connection_timeout"
	case op != nil && op.Op == "remote error": // so crypto/tls says what the other end told
		return "tls_alert_received"
	case errors.Is(err, http.ErrSchemeMismatch), strings.HasPrefix(err.Error(), "tls: "):
		return "tls_protocol_error"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection_terminated"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "http_response_incomplete"
	}
	return ""
}

// cut bounds what an error quotes of its input.
func cut(s string) string { return cutTo(s, 256) }

func cutTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// printable replaces what a log or terminal could take for a command, and bounds the text.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, s)
	return cutTo(s, 1000) // and the ellipsis
}
