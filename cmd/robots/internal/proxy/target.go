package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Target is where a tunnel leads.
type Target struct {
	Host string // a name in ASCII and lower case, or an IP address
	Port uint16
}

// ParseTarget reads the authority of a CONNECT request (RFC 9110 §9.3.6): a host and a port, and
// nothing else.
func ParseTarget(text string) (Target, error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		return Target{}, fmt.Errorf("CONNECT %q: not a host and a port", cut(text))
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 || digits[0] < '1' {
		return Target{}, fmt.Errorf("CONNECT %q: the port is not a number from 1 to 65535", cut(text))
	}
	t := Target{strings.ToLower(host), uint16(port)}
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Zone() == "" && addr.Is6() == (text[0] == '['):
		t.Host = addr.String()
	case err == nil || text[0] == '[' || !isName(t.Host):
		return Target{}, fmt.Errorf("CONNECT %q: the host is neither a name in ASCII nor an IP address", cut(text))
	}
	return t, nil
}

// isName reports whether host can be looked up. Which names there are, the resolver knows.
func isName(host string) bool {
	other := func(c rune) bool {
		return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_')
	}
	return host != "" && len(host) <= 254 && host[0] != '.' && !strings.ContainsFunc(host, other)
}

// String is the authority in its canonical form.
func (t Target) String() string { return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))) }

// plain reports whether HTTP without TLS is what the port is for.
func (t Target) plain() bool { return t.Port == 80 }

// errPort: what listens there does not speak HTTP, but may take a request for its own protocol.
var errPort = errors.New("the port is not one of the web's")

// checkPort refuses the ports that browsers refuse (https://fetch.spec.whatwg.org/#port-blocking), and
// all others that only the system can listen on.
func checkPort(port uint16) error {
	if port < 1024 && port != 80 && port != 443 || slices.Contains(blocked[:], port) {
		return fmt.Errorf("port %d: %w", port, errPort)
	}
	return nil
}

var blocked = [...]uint16{
	1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}
