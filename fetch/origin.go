package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/net/idna"
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

// cut bounds what an error quotes of its input.
func cut(s string) string { return cutTo(s, 256) }

func cutTo(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
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

// isCanonical reports whether authority is one that canonicalAuthority would return as it
// is. It may say no to one that is: that costs time only.
func isCanonical(authority, ownPort string) bool {
	label, end := 0, len(authority) // where the current label begins, and the name ends
	for i := 0; i < end; i++ {
		switch c := authority[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '.' && i > label && i-label <= maxLabel:
			label = i + 1
		case c == ':' && isCanonicalPort(authority[i+1:], ownPort):
			end = i
		default:
			return false
		}
	}
	if label == end || end-label > maxLabel || end > maxName {
		return false
	}
	// A last label that begins with a digit makes it an address, or it is for others to say.
	return authority[label] > '9' || isDottedDecimal(authority[:end])
}

func isCanonicalPort(port, own string) bool {
	if len(port) == 0 || len(port) > 5 || port[0] == '0' || port == own {
		return false
	}
	n := 0
	for i := range len(port) {
		digit := int(port[i]) - '0'
		if digit < 0 || digit > 9 {
			return false
		}
		n = 10*n + digit
	}
	return n <= 65535
}

func isDottedDecimal(host string) bool {
	addr, err := netip.ParseAddr(host) // which refuses leading zeros
	return err == nil && addr.Is4()
}

// Limits of RFC 1035 §2.3.4; of a name's 255 octets, 253 are left for its text.
const (
	maxLabel = 63
	maxName  = 253
)

// canonicalAuthority returns the one form of host[:port] that an Origin holds. This is
// the only place where it is made.
func canonicalAuthority(scheme scheme, authority string) (string, error) {
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	host, err := canonicalHost(host)
	if err != nil {
		return "", err
	}
	port, err = canonicalPort(scheme, port)
	switch {
	case err != nil:
		return "", err
	case port == "":
		return host, nil
	case authority == host+":"+port:
		return authority, nil
	}
	return host + ":" + port, nil
}

// canonicalPort returns port without leading zeros, or "" for the scheme's own
// (RFC 3986 §6.2.3).
func canonicalPort(scheme scheme, port string) (string, error) {
	digits := strings.TrimLeft(port, "0")
	if port == "" || digits == ownPorts[scheme] {
		return "", nil
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not within 1 to 65535", cut(port))
	}
	return digits, nil
}

func canonicalHost(host string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return canonicalIPv6(host)
	}
	name, err := asciiName(host)
	if err != nil {
		return "", fmt.Errorf("host %q: %w", cut(host), err)
	}
	// The dot of a fully qualified name: with and without it the same site answers, and
	// the answer must not depend on which spelling was asked first.
	name = strings.TrimSuffix(name, ".")
	if err := checkName(name); err != nil {
		return "", fmt.Errorf("host %q: %w", cut(host), err)
	}
	return name, nil
}

// canonicalIPv6 keeps an IPv4-mapped address apart from the IPv4 address, as URLs do.
func canonicalIPv6(host string) (string, error) {
	addr, err := netip.ParseAddr(host[1 : len(host)-1])
	if err != nil || !addr.Is6() || strings.ContainsFunc(addr.Zone(), isReserved) {
		return "", fmt.Errorf("host %q is not an IPv6 address in brackets", cut(host))
	}
	if canonical := addr.String(); canonical != host[1:len(host)-1] {
		return "[" + canonical + "]", nil
	}
	return host, nil
}

// nameProfile is UTS #46 non-transitional processing for lookup, less the two checks
// that refuse names the web uses: STD3 rules (an underscore) and hyphens ("r3---sn-x").
var nameProfile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.BidiRule(),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
)

// asciiName maps a name to lower case and A-labels. An ASCII name is lower-cased only:
// what the profile thinks of its A-labels is for the resolver to say.
func asciiName(host string) (string, error) {
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(host), nil
	}
	if len(host) > 4*maxName { // what mapping costs is for the URL's author to say, else
		return "", errors.New("the name is too long")
	}
	// The profile would map octets that are not UTF-8 to a valid name.
	if !utf8.ValidString(host) {
		return "", errors.New("the name is not UTF-8")
	}
	name, err := nameProfile.ToASCII(host)
	if err != nil {
		return "", errors.New("the name is not a valid internationalised one")
	}
	return name, nil
}

// checkName checks an ASCII name in lower case, without trailing dot. It runs after all
// mapping, because mapping makes delimiters of some code points and digits of others.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name has %d octets, more than %d", len(name), maxName)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return fmt.Errorf("a label is empty or longer than %d octets", maxLabel)
		}
		for i := range len(label) {
			if c := rune(label[i]); isReserved(c) && !isSubDelim(c) {
				return fmt.Errorf("%q cannot be part of a name", c)
			}
		}
		last = label
	}
	if !isNumber(last) {
		return nil
	}
	if !isDottedDecimal(name) {
		return errors.New("its last label is a number, but it is no IPv4 address in dotted decimal")
	}
	return nil
}

// isReserved and isSubDelim: a registered name consists of octets that are not reserved
// and sub-delims (RFC 3986 §3.2.2), a zone of the former only (RFC 6874 §2).
func isReserved(c rune) bool {
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	return !letter && !('0' <= c && c <= '9') && !strings.ContainsRune("-._~", c)
}

func isSubDelim(c rune) bool { return strings.ContainsRune("!$&'()*+,;=", c) }

// isNumber reports whether a last label makes the whole name an IPv4 address for some
// readers: digits, or 0x and hexadecimal digits.
func isNumber(label string) bool {
	digits, set := label, "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		digits, set = hex, "0123456789abcdef"
	}
	return strings.Trim(digits, set) == ""
}
