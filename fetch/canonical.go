package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of RFC 1035 §2.3.4: of a name's 255 octets, 253 are left for its text.
const (
	maxLabel = 63
	maxName  = 253
)

// canonicalAuthority returns host[:port] in the one form that an Origin holds. No other function makes that form.
func canonicalAuthority(s scheme, authority string) (string, error) {
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	host, err := canonicalHost(host)
	if err != nil {
		return "", err
	}
	port, err = canonicalPort(s, port)
	switch {
	case err != nil:
		return "", err
	case port == "":
		return host, nil
	}
	return host + ":" + port, nil
}

// canonicalPort returns port without leading zeros, or "" for the scheme's own (RFC 3986 §6.2.3).
func canonicalPort(s scheme, port string) (string, error) {
	number := strings.TrimLeft(port, "0")
	if port == "" || number == ownPorts[s] {
		return "", nil
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not within 1 to 65535", cut(port))
	}
	return number, nil
}

func canonicalHost(host string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return canonicalIPv6(host)
	}
	name, err := asciiName(host)
	if err != nil {
		return "", fmt.Errorf("host %q: %w", cut(host), err)
	}
	// The trailing dot of a fully qualified name: the same site answers without it, and must get the same answer.
	name = strings.TrimSuffix(name, ".")
	if err := checkName(name); err != nil {
		return "", fmt.Errorf("host %q: %w", cut(host), err)
	}
	return name, nil
}

// canonicalIPv6 keeps an IPv4-mapped address apart from the IPv4 address, as URLs do. An address with its zone, whose
// length nothing else bounds, may be as long as a name.
func canonicalIPv6(host string) (string, error) {
	addr, err := netip.ParseAddr(host[1 : len(host)-1])
	if err != nil || len(host) > maxName || !addr.Is6() || strings.ContainsFunc(addr.Zone(), isReserved) {
		return "", fmt.Errorf("host %q is not an IPv6 address in brackets", cut(host))
	}
	return "[" + addr.String() + "]", nil
}

// nameProfile is UTS #46 non-transitional processing for lookup, without two checks that names in use would fail: STD3
// rules (an underscore) and hyphens ("r3---sn-x").
var nameProfile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.BidiRule(),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
)

// asciiName maps a name to lower case and A-labels. An ASCII name is only lower-cased: the resolver judges A-labels.
func asciiName(host string) (string, error) {
	if strings.IndexFunc(host, func(c rune) bool { return c >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(host), nil
	}
	if len(host) > 4*maxName { // the URL's author must not decide what mapping costs
		return "", errors.New("the name is too long")
	}
	// The profile would map bytes that are not UTF-8 to a valid name.
	if !utf8.ValidString(host) {
		return "", errors.New("the name is not UTF-8")
	}
	name, err := nameProfile.ToASCII(host)
	if err != nil {
		return "", errors.New("the name is not a valid internationalised one")
	}
	return name, nil
}

// checkName checks an ASCII name in lower case, without trailing dot. It runs after all mapping, which turns some code
// points into delimiters and others into digits.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name has %d bytes, more than %d", len(name), maxName)
	}
	begin := 0 // of the last label
	for i := 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '.' {
			if n := i - begin; n == 0 || n > maxLabel {
				return fmt.Errorf("a label is empty or longer than %d bytes", maxLabel)
			}
			if i < len(name) {
				begin = i + 1
			}
		} else if c := name[i]; !inName[c] {
			return fmt.Errorf("%q cannot be part of a name", rune(c))
		}
	}
	if last := name[begin:]; last[0] > '9' || !isNumber(last) {
		return nil // nearly always, by the first letter, and without the allocation of an error by ParseAddr
	}
	if addr, err := netip.ParseAddr(name); err != nil || !addr.Is4() { // no leading zeros
		return errors.New("its last label is a number, but it is not an IPv4 address in dotted decimal")
	}
	return nil
}

// isReserved reports whether c cannot be part of a zone (RFC 6874 §2).
func isReserved(c rune) bool { return !strings.ContainsRune(unreserved, c) }

const (
	digits     = "0123456789"
	unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + digits + "-._~"
)

// inName has the bytes of a registered name: unreserved characters and sub-delims (RFC 3986 §3.2.2). It is read-only.
var inName = func() (in [256]bool) {
	for _, c := range []byte(unreserved + "!$&'()*+,;=") {
		in[c] = true
	}
	return in
}()

// isNumber reports whether some readers take a name with this last label for an IPv4 address: digits, or 0x and
// hexadecimal digits.
func isNumber(label string) bool {
	rest, set := label, digits
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		rest, set = hex, digits+"abcdef"
	}
	return strings.Trim(rest, set) == ""
}
