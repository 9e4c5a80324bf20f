package harden

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Guard refuses connections that a redirect must not lead to. The caller chose the origin, but the origin chooses the
// redirects: none may reach a more private network than the origin's. A Guard serves one origin and its redirects.
type Guard struct {
	named privacy // of the origin, as far as its name tells

	mu     sync.Mutex // guards what follows: a dial may outlive its request
	origin privacy    // of the most public address that the origin was reached at
	known  bool       // whether it was reached
	tunnel netip.Addr // the origin's address, if it embeds another one
}

// privacy is how private the network is that an address belongs to.
type privacy uint8

const (
	global privacy = iota
	private
	special // this machine, this link, and addresses where no site can be
	hidden  // unknown: the connection has no IP address
)

func (p privacy) String() string {
	return [...]string{"public", "private", "local or reserved", "unknown"}[p]
}

// CheckHost returns an error if a URL's host is an address, or localhost, that must not be connected to after so many
// redirects. It is called before a transport, or its proxy, sees the host. While the origin's address is unknown, its
// name is what counts.
func (g *Guard) CheckHost(host string, redirects int) error {
	addr, err := netip.ParseAddr(host)
	switch {
	case isLocalhost(host):
		addr = netip.IPv6Loopback()
	case err != nil:
		return nil // any other name is checked when it is connected to
	}
	return g.judge(addr, redirects, g.named)
}

// judge returns an error if addr must not be connected to after so many redirects. origin is what the origin counts as
// while its address is unknown.
func (g *Guard) judge(addr netip.Addr, redirects int, origin privacy) error {
	if redirects == 0 {
		return nil // the caller chose it
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known {
		origin = g.origin
	}
	p := privacyOf(addr)
	if origin == hidden && p != hidden {
		origin = g.named // an unknown address opens no network
	}
	// Without a tunnel, g.tunnel is the zero Addr; so is a hidden address.
	if p > origin && !(g.tunnel.IsValid() && addr == g.tunnel) {
		return FinalError(fmt.Sprintf("redirect into a more private network refused: %s address %s, and the origin's is %s",
			p, addr, origin))
	}
	return nil
}

// reached notes that the origin is at addr. An address that embeds another leads through this network to a site that
// may be anywhere. It opens itself, and otherwise only what a public site may.
func (g *Guard) reached(addr netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := privacyOf(addr)
	if embedsAnother(addr) {
		p, g.tunnel = global, addr
	}
	if !g.known || p < g.origin {
		g.origin, g.known = p, true
	}
}

// Presume notes what can be known from the origin's name alone. A name may belong to a private network, but only
// localhost is this machine.
func (g *Guard) Presume(host string) {
	switch addr, err := netip.ParseAddr(host); {
	case err == nil && embedsAnother(addr):
		g.named, g.tunnel = global, addr
	case err == nil:
		g.named = privacyOf(addr)
	case isLocalhost(host):
		g.named = special
	default:
		g.named = private
	}
}

// isLocalhost reports whether a name is this machine's (RFC 6761 §6.3).
func isLocalhost(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// nat64 is where a network without IPv4 finds all IPv4 addresses (RFC 6052 §2.1). A network with a prefix of its own,
// among public addresses, cannot be recognized.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// tunnels are the other prefixes whose addresses hold one of another network: local NAT64 (RFC 8215), 6to4 (RFC 3056),
// Teredo (RFC 4380).
var tunnels = prefixes("64:ff9b:1::/48", "2002::/16", "2001::/32")

// prefixes parses networks.
func prefixes(texts ...string) (all networks) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

type networks []netip.Prefix

func (n networks) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(n, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func embedsAnother(addr netip.Addr) bool {
	return nat64.Contains(addr.WithZone("")) || tunnels.contain(addr.WithZone(""))
}

// Public reports whether an address is globally reachable.
func Public(addr netip.Addr) bool { return privacyOf(addr) == global }

func privacyOf(addr netip.Addr) privacy {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return hidden
	}
	// The threat is a private address behind the prefix (RFC 6052 §5.1), which should not be there (§3.1). To refuse all
	// of the prefix would refuse, on such a network, each redirect from a site with IPv6 to a site without.
	if nat64.Contains(addr) {
		if b := addr.As16(); privacyOf(netip.AddrFrom4([4]byte(b[12:]))) == global {
			return global
		}
		return special
	}
	for _, row := range registries {
		if row.networks.contain(addr) {
			return row.privacy
		}
	}
	if addr.Is4() {
		return global
	}
	return special // outside 2000::/3 nothing is globally routed
}

// registries have the privacy of an address in the first row that fits. They follow the special-purpose registries of
// IANA (RFC 6890), less what they call globally reachable. 6to4, Teredo and local NAT64 are special whatever they hold:
// sites do without them.
var registries = [...]struct {
	privacy  privacy
	networks networks
}{
	{special, prefixes( // where clouds answer with a machine's credentials
		"169.254.169.254/32", "100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32",
		"fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128", "fd00:42::42/128",
	)},
	{private, prefixes(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
		"100.64.0.0/10", // RFC 6598: shared address space
		"fc00::/7",      // RFC 4193: unique local
	)},
	{global, prefixes( // exceptions within the next rows
		"192.0.0.9/32", "192.0.0.10/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128",
		"2001:3::/32", "2001:4:112::/48", "2001:20::/28", "2001:30::/28",
	)},
	{special, prefixes(
		"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16",
		"192.0.0.0/24",                                      // RFC 6890: protocol assignments
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // RFC 5737: documentation
		"192.88.99.0/24",             // RFC 7526: 6to4 relays
		"198.18.0.0/15",              // RFC 2544: benchmarking
		"224.0.0.0/4", "240.0.0.0/4", // multicast, reserved, broadcast
		"2001::/23",                  // RFC 2928: protocol assignments, Teredo among them
		"2001:db8::/32", "3fff::/20", // RFC 3849, RFC 9637: documentation
		"2002::/16", // RFC 3056: 6to4
	)},
	{global, prefixes("2000::/3")},
}
