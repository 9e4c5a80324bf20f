package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Origin is what one robots.txt file speaks for: scheme, host and port (RFC 6454 §4, RFC 9309 §2.3).
//
// Each origin has exactly one Origin value, so == and map keys work. Scheme and host are in lower case, and the host
// is in its ASCII form (IDNA), without a trailing dot. The port is left out if it is the scheme's own.
//
// The zero value names no origin: to fetch its robots.txt is an error.
type Origin struct {
	// host[:port] of the Host field, with IPv6 in brackets and its zone. If the origin is reached under another
	// name, via and that name follow: one string, because an Origin is a key.
	name   string
	scheme scheme
}

type scheme uint8

const (
	schemeHTTP scheme = 1 + iota
	schemeHTTPS
	schemeFTP
)

const via = " via " // a space is part of no host

// schemeNames and ownPorts (RFC 6454 §4) are by scheme.
var (
	schemeNames = [...]string{"", "http", "https", "ftp"} // RFC 9309 §2.3
	ownPorts    = [...]string{"", "80", "443", "21"}
)

func (s scheme) String() string { return schemeNames[s] }

// parseScheme returns 0 for a scheme that has no origins here.
func parseScheme(name string) scheme {
	return scheme(max(0, slices.Index(schemeNames[:], strings.ToLower(name))))
}

// OriginOf returns the origin of u. Path, query, fragment and userinfo play no part.
//
// It fails if u has no origin that robots.txt could be read from: another scheme than http, https or ftp, an opaque
// URL, no host, a port outside 1 to 65535, or a host that is neither an IP address nor a name that can be looked up.
// Short, octal and hexadecimal spellings of IPv4 ("127.1") are refused: each dialer reads them in its own way.
func OriginOf(u *url.URL) (Origin, error) {
	if u == nil {
		return Origin{}, errors.New("fetch: no origin in a nil URL")
	}
	s := parseScheme(u.Scheme)
	if s == 0 {
		return Origin{}, originError(u, fmt.Errorf("scheme %q is not http, https or ftp", cut(u.Scheme)))
	}
	if u.Opaque != "" {
		return Origin{}, originError(u, errors.New("it is opaque; write it as scheme://host/path"))
	}
	host, err := canonicalAuthority(s, u.Host)
	if err != nil {
		return Origin{}, originError(u, err)
	}
	return Origin{host, s}, nil
}

func originError(u *url.URL, why error) error {
	bare := *u
	bare.User = nil // a password has no place in an error
	return fmt.Errorf("fetch: no origin in URL %q: %w", cut(bare.String()), why)
}

// OriginOfRequest returns the origin that r names on the wire: r.Host if it is set (RFC 9112 §3.2), else the host of
// r.URL. It fails as OriginOf does, for either of them.
//
// If they differ, the connection goes to the URL's host, and robots.txt is read there under the name in r.Host. That
// origin is not the one reached under its own name.
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

// underName returns the origin at the same place that is asked for by another name.
func (o Origin) underName(name string) (Origin, error) {
	host, err := canonicalAuthority(o.scheme, name)
	if err != nil {
		return Origin{}, fmt.Errorf("fetch: no origin in Host field %q: %w", cut(name), err)
	}
	if host == o.name {
		return o, nil
	}
	return Origin{host + via + o.name, o.scheme}, nil
}

// host returns HostField, with the zone of an IPv6 address.
func (o Origin) host() string {
	host, _, _ := strings.Cut(o.name, " ")
	return host
}

// String returns scheme://host[:port], the serialization of RFC 6454 §6.2, with two additions. It keeps an IPv6 zone,
// and appends " via host[:port]" if the origin is reached under another name. Origins with the same String are equal.
func (o Origin) String() string {
	if o.scheme == 0 {
		return ""
	}
	return o.scheme.String() + "://" + o.name
}

// MarshalText returns String, "" for the zero Origin.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText returns, in any spelling of the host. It fails if the text is not an origin,
// such as a URL with a path: OriginOf takes those.
func (o *Origin) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*o = Origin{}
		return nil
	}
	named, reached, differ := strings.Cut(string(text), via)
	scheme, name, ok := strings.Cut(named, "://")
	if !ok {
		return fmt.Errorf("fetch: %q is no origin: write it as scheme://host", cut(string(text)))
	}
	if !differ {
		reached = name
	}
	read, err := OriginOf(&url.URL{Scheme: scheme, Host: reached})
	if err == nil {
		read, err = read.underName(name)
	}
	if err != nil {
		return err
	}
	*o = read
	return nil
}

// RobotsURL returns where the origin's robots.txt is read (RFC 9309 §2.3). Its host is the one to connect to; HostField
// is the name to ask for.
func (o Origin) RobotsURL() *url.URL {
	return &url.URL{Scheme: o.scheme.String(), Host: o.URLHost(), Path: "/robots.txt"}
}

// URLHost returns the host to connect to, in canonical form, for the Host of a url.URL: with the port if it is not the
// scheme's own. A page's URL that spells its host differently must get this one before it is sent: for some spellings
// net/http dials one name and sends another.
func (o Origin) URLHost() string {
	return o.name[strings.LastIndexByte(o.name, ' ')+1:]
}

// HostField returns the Host field (RFC 9110 §7.2) of requests to the origin. An IPv6 zone has a meaning on this
// machine only and is never sent (RFC 6874 §4).
func (o Origin) HostField() string {
	host := o.host()
	if i := strings.IndexByte(host, '%'); i >= 0 {
		return host[:i] + host[strings.IndexByte(host, ']'):]
	}
	return host
}

// Clone returns an equal origin that shares no memory with the URL it was made from. Any other copy keeps the text of
// that URL in memory.
func (o Origin) Clone() Origin { return Origin{strings.Clone(o.name), o.scheme} }
