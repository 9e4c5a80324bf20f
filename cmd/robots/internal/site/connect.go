package site

// The http.Transport below every gate, and --connect-to, which leads connections elsewhere without a change
// to the request: the name in TLS and the Host field stay those of the site.

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch/ftp"
)

// Transport is net/http's own, with the --connect-to mappings. Each call makes another one.
func (n *Network) Transport() (*http.Transport, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	all, err := parsePlaces(n.ConnectTo)
	if err != nil {
		return nil, err
	}
	return all.way(base), nil
}

// way finishes a transport of the command: it leads its connections where the places say, and reads over FTP. With a
// place no proxy is used: it would connect in our place, and know nothing of them.
func (all leads) way(base *http.Transport) *http.Transport {
	if dial := base.DialContext; len(all) > 0 {
		base.Proxy = nil
		base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, network, all.apply(address))
		}
	}
	base.RegisterProtocol("ftp", &ftp.Transport{DialContext: base.DialContext})
	return base
}

// leads are all --connect-to.
type leads []place

func parsePlaces(flags []string) (all leads, err error) {
	for _, text := range flags {
		p, err := parsePlace(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// apply returns the address to connect to instead of address. The first place that fits is the one, as with curl.
func (all leads) apply(address string) string {
	for _, p := range all {
		if to, ok := p.apply(address); ok {
			return to
		}
	}
	return address
}

// place is one --connect-to: the parts of the address asked for, and of the one to use.
type place struct{ host, port, toHost, toPort string }

// places is HOST1:PORT1:HOST2:PORT2, in which an IPv6 address stands in brackets.
var places = regexp.MustCompile(`^(\[[^]]*\]|[^:[]*):([^:]*):(\[[^]]*\]|[^:[]*):([^:]*)$`)

func parsePlace(text string) (place, error) {
	m := places.FindStringSubmatch(text)
	if m == nil {
		return place{}, shell.Usagef("--connect-to %q is not of the form HOST1:PORT1:HOST2:PORT2", text)
	}
	for _, port := range []string{m[2], m[4]} {
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return place{}, shell.Usagef("--connect-to %q: port %q is not within 1 to 65535", text, port)
		}
	}
	return place{strings.ToLower(strings.Trim(m[1], "[]")), m[2], strings.Trim(m[3], "[]"), m[4]}, nil
}

// apply returns the address to connect to instead of address, if the place is about it.
// Hosts compare without regard to case; their names are ASCII by now.
func (p place) apply(address string) (string, bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || p.host != "" && p.host != strings.ToLower(host) || p.port != "" && p.port != port {
		return "", false
	}
	return net.JoinHostPort(cmp.Or(p.toHost, host), cmp.Or(p.toPort, port)), true
}
