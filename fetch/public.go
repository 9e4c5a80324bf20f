package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

// ErrNotPublic is wrapped by the error of a request whose address PublicOnly has refused, before anything was sent.
var ErrNotPublic = errors.New("the address is not public")

// PublicOnly returns a copy of t that connects to globally reachable addresses only. It checks each address right
// before connecting, so no change of DNS gets past it. The copy uses no proxy, no dialer of t, and nothing that was
// registered with t for other schemes. Set it as the transport at the bottom, and pages and robots.txt are guarded
// alike: a program that fetches URLs from strangers needs that.
func PublicOnly(t *http.Transport) *http.Transport {
	t = t.Clone()
	// A clone offers HTTP/2 as the original did, but forgets that it speaks it.
	offered := t.TLSClientConfig != nil && slices.Contains(t.TLSClientConfig.NextProtos, "h2")
	t.ForceAttemptHTTP2 = t.ForceAttemptHTTP2 || offered
	//lint:ignore SA1019 a transport may still have them
	t.Proxy, t.Dial, t.DialTLS, t.DialTLSContext = nil, nil, nil, nil
	const timeout = 30 * time.Second // that of http.DefaultTransport
	d := &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || !harden.Public(addr.Addr()) {
			return fmt.Errorf("%s refused: %w", address, ErrNotPublic)
		}
		return nil
	}}
	t.DialContext = d.DialContext
	return t
}
