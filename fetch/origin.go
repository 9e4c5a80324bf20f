package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unsafe"
)

// Origin is the place that one robots.txt file speaks for: scheme, host and port
// (RFC 6454 §4, RFC 9309 §2.3). There is one Origin value per origin, so that ==
// and map keys are right: scheme and host in lower case, the host in its ASCII form
// (IDNA), the scheme's own port left out, one trailing dot of the host dropped.
//
// The zero value names no place; a Fetcher answers "unreachable" for it.
type Origin struct {
	// The host, and the port after a colon if it is not the scheme's own; brackets around
	// IPv6, zone included. Where the origin is reached under another name than that (by a
	// request with its own Host field), via and that name follow. It is one string, so
	// that an Origin is small enough to travel in registers.
	name   string
	scheme scheme
	extra  extra
}

type scheme uint8

const (
	schemeHTTP scheme = 1 + iota
	schemeHTTPS
	schemeFTP
)

// extra is what an Origin's name has besides the Host field.
type extra uint8

const (
	hasVia  extra = 1 + iota // and zones, perhaps
	hasZone                  // and nothing else
)

const via = " via " // a space is part of no host

// OriginOf returns the origin of u. Path, query, fragment and userinfo play no part.
//
// It fails where u has no origin that robots.txt could be read from: another scheme
// than http, https or ftp, an opaque URL, no host, a port outside 1 to 65535, or a
// host that is neither an IP address nor a name that can be looked up. Short, octal
// and hexadecimal spellings of IPv4 ("127.1") are refused, not guessed: what a
// dialer makes of them depends on the resolver it was built with.
func OriginOf(u *url.URL) (Origin, error) {
	// The warm path of every gated request: no copy, no allocation.
	if u != nil && u.Opaque == "" {
		switch {
		case u.Scheme == "https" && isCanonical(u.Host, "443"):
			return Origin{name: u.Host, scheme: schemeHTTPS}, nil
		case u.Scheme == "http" && isCanonical(u.Host, "80"):
			return Origin{name: u.Host, scheme: schemeHTTP}, nil
		}
	}
	return originOf(u)
}

func originOf(u *url.URL) (Origin, error) {
	if u == nil {
		return Origin{}, errors.New("fetch: no origin in a nil URL")
	}
	scheme := schemeOf(u.Scheme)
	if scheme == 0 {
		return Origin{}, originError(u, fmt.Errorf("scheme %q is not http, https or ftp", cut(u.Scheme)))
	}
	if u.Opaque != "" {
		return Origin{}, originError(u, errors.New("it is opaque; write it as scheme://host/path"))
	}
	host, err := canonicalAuthority(scheme, u.Host)
	if err != nil {
		return Origin{}, originError(u, err)
	}
	return Origin{host, scheme, zoneOf(host)}, nil
}

// OriginOfRequest returns the origin that r names on the wire: r.Host where it is set
// (RFC 9112 §3.2), else the host of r.URL. Where the two differ, the connection goes to
// the URL's host and robots.txt is asked for there, under the name in r.Host; such an
// origin differs from the one that is reached under its own name.
func OriginOfRequest(r *http.Request) (Origin, error) {
	if r.URL == nil {
		return Origin{}, errors.New("fetch: no origin in a request without URL")
	}
	reached, err := OriginOf(r.URL)
	if err != nil || r.Host == "" || r.Host == r.URL.Host {
		return reached, err
	}
	return reached.underName(r.Host)
}

// underName is the origin that o is when it is asked for by another name.
func (o Origin) underName(name string) (Origin, error) {
	host, err := canonicalAuthority(o.scheme, name)
	if err != nil {
		return Origin{}, fmt.Errorf("fetch: no origin in Host field %q: %w", cut(name), err)
	}
	if host == o.name {
		return o, nil
	}
	return Origin{host + via + o.name, o.scheme, hasVia}, nil
}

// String returns scheme://host[:port], the serialisation of RFC 6454 §6.2. Two cases have
// more: an IPv6 zone is kept, and " via host[:port]" follows where the origin is reached
// under another name. Two origins with the same String are the same.
func (o Origin) String() string {
	if o.scheme == 0 {
		return ""
	}
	return o.scheme.String() + "://" + o.name
}

// host is Host with the zone.
func (o Origin) host() string {
	host, _, _ := strings.Cut(o.name, via)
	return host
}

// RobotsURL returns where the origin's robots.txt is read (RFC 9309 §2.3). Its host is
// the one to connect to; see Host for the name to ask for.
func (o Origin) RobotsURL() *url.URL {
	return &url.URL{Scheme: o.scheme.String(), Host: o.Authority(), Path: "/robots.txt"}
}

// Authority returns the host, and the port if it is not the scheme's own, that a
// connection to the origin is made to: canonical, as a url.URL's Host holds it. It is
// what the Host of a page's URL must be rewritten to where the two differ, because
// net/http dials one name and sends another for some spellings.
func (o Origin) Authority() string {
	if o.extra != hasVia {
		return o.name
	}
	_, reached, _ := strings.Cut(o.name, via)
	return reached
}

// Host returns the Host field (RFC 9110 §7.2) that requests to the origin carry. An IPv6
// zone has a meaning on this machine only and is never sent (RFC 6874 §4).
func (o Origin) Host() string {
	if o.extra == 0 {
		return o.name
	}
	host := o.host()
	if i := strings.IndexByte(host, '%'); i >= 0 {
		return host[:i] + host[strings.IndexByte(host, ']'):]
	}
	return host
}

// Clone returns an equal origin that shares no memory with the URL it was made of. To
// keep an Origin is to keep the text of that URL, which a Clone does not.
func (o Origin) Clone() Origin { return Origin{strings.Clone(o.name), o.scheme, o.extra} }

// CloneIn is Clone with the text in buf, if it fits there: for a table of many origins, to
// have the text beside what is known of the origin. buf must not be written to from then on.
func (o Origin) CloneIn(buf []byte) Origin {
	if o.name == "" || len(o.name) > len(buf) {
		return o.Clone()
	}
	return Origin{unsafe.String(&buf[0], copy(buf, o.name)), o.scheme, o.extra}
}

func originError(u *url.URL, why error) error {
	bare := *u
	bare.User = nil // a password has no place in an error
	return fmt.Errorf("fetch: no origin in URL %q: %w", cut(bare.String()), why)
}

// schemeNames and ownPorts (RFC 6454 §4) are by scheme.
var (
	schemeNames = [...]string{"", "http", "https", "ftp"} // RFC 9309 §2.3 has ftp origins; a Fetcher does not read them
	ownPorts    = [...]string{"", "80", "443", "21"}
)

func (s scheme) String() string { return schemeNames[s] }

// schemeOf returns 0 for a scheme that has no origins here.
func schemeOf(name string) scheme {
	return scheme(max(0, slices.Index(schemeNames[:], strings.ToLower(name))))
}

// zoneOf is hasZone for an IPv6 address that has one.
func zoneOf(host string) extra {
	if strings.IndexByte(host, '%') >= 0 {
		return hasZone
	}
	return 0
}
