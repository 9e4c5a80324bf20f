package site

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// Transport is net/http's own, with the --connect-to mappings.
func (n *Network) Transport() (*http.Transport, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	if len(n.ConnectTo) == 0 {
		return base, nil
	}
	var places []place
	for _, text := range n.ConnectTo {
		p, err := parsePlace(text)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	base.Proxy = nil
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, p := range places {
			if to, ok := p.apply(address); ok {
				address = to
				break
			}
		}
		return dial(ctx, network, address)
	}
	return base, nil
}

// place is one --connect-to: the parts of the address asked for, and of the one to use.
type place struct{ host, port, toHost, toPort string }

// parsePlace reads HOST1:PORT1:HOST2:PORT2, in which an IPv6 address stands in brackets.
func parsePlace(text string) (place, error) {
	var parts []string
	for rest := text; len(parts) < 5; {
		part, after, more := cutPart(rest)
		parts = append(parts, part)
		if rest = after; !more {
			break
		}
	}
	if len(parts) != 4 {
		return place{}, shell.Usagef("--connect-to %q is not of the form HOST1:PORT1:HOST2:PORT2", text)
	}
	return place{strings.ToLower(parts[0]), parts[1], parts[2], parts[3]}, nil
}

// cutPart cuts text at its first colon outside the brackets of an IPv6 address.
func cutPart(text string) (part, rest string, more bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if host, after, closed := strings.Cut(inner, "]"); closed {
			rest, more = strings.CutPrefix(after, ":")
			return host, rest, more
		}
	}
	return strings.Cut(text, ":")
}

// apply returns the address to connect to instead of address, if the place is about it.
// Hosts compare without regard to case; their names are ASCII by now.
func (p place) apply(address string) (string, bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || p.host != "" && p.host != strings.ToLower(host) || p.port != "" && p.port != port {
		return "", false
	}
	if p.toHost != "" {
		host = p.toHost
	}
	if p.toPort != "" {
		port = p.toPort
	}
	return net.JoinHostPort(host, port), true
}
