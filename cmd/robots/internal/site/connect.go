package site

// The http.Transport below every gate, and --connect-to, which leads connections elsewhere without a change
// to the request: the name in TLS and the Host field stay those of the site.

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/ftp"
	"github.com/robotsgate/robotsgate/policy"
)

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

// headerFlag is --header: fields for one site each. It is a hook that sees each request that is sent, since net/http takes
// fields of a request along to another site.
type headerFlag map[fetch.Origin]http.Header

// Set takes a value of the flag, which may be given more than once.
func (h headerFlag) Set(text string) error {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return h.add(text)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := h.add(line); err != nil {
			return err
		}
	}
	return nil
}

// add takes "SITE NAME: VALUE". Errors show no value.
func (h headerFlag) add(text string) error {
	site, field, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, value, ok := strings.Cut(strings.TrimSpace(field), ":")
	value = strings.TrimSpace(value)
	_, o, err := answer.ReadSite(policy.RFC9309, site)
	name = http.CanonicalHeaderKey(name)
	switch {
	case !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
		return shell.Usagef(`write "SITE NAME: VALUE", such as "https://shop.example X-Key: abc", or @FILE with such lines`)
	case err != nil:
		return err
	case strings.Contains(site, "*"):
		return shell.Usagef("%s is no site: name each", answer.Quoted(site))
	// what was decided on, and what net/http writes itself
	case slices.Contains([]string{"User-Agent", "Host", "Content-Length", "Transfer-Encoding", "Connection"}, name):
		return shell.Usagef("the field %s cannot be set: leave it out", answer.Quoted(name))
	}
	if h[o] == nil {
		h[o] = http.Header{}
	}
	h[o].Add(name, value)
	return nil
}

// Hook returns what adds the fields to a request, and then signs it. signer may be nil; nil: there is nothing to do.
func (h headerFlag) Hook(signer *sign.Signer) func(*http.Request) error {
	if len(h) == 0 && signer == nil {
		return nil
	}
	return func(req *http.Request) error {
		o, err := fetch.OriginOfRequest(req)
		if err != nil {
			return err
		}
		for name, values := range h[o] {
			req.Header[name] = slices.Clone(values)
		}
		if signer == nil {
			return nil
		}
		return signer.Sign(req)
	}
}

// ParseSite reads a URL of an argument, counted from 0, and the origin to ask. Its error tells the argument's place.
func ParseSite(d policy.Dialect, i int, text string) (*url.URL, fetch.Origin, error) {
	u, o, err := answer.ReadSite(d, text)
	if err != nil {
		err = shell.Usagef("argument %d: %w", i+1, err)
	}
	return u, o, err
}

type signing struct {
	Key, Agent string
	Form       string // of the Signature-Agent field
}

var signatureForms = []string{"dictionary", "string"}

// Signer returns what signs requests; nil without --sign-key.
func (s *signing) Signer() (*sign.Signer, error) {
	switch {
	case s.Key == "" && s.Agent == "":
		return nil, nil
	case s.Key == "":
		return nil, shell.Usagef("--sign-agent names whose key signs: give --sign-key, too")
	case s.Agent == "":
		return nil, shell.Usagef("--sign-key needs --sign-agent: the https URL under which sites find the public key")
	}
	signer, err := ReadKey(s.Key)
	if err != nil {
		return nil, err
	}
	signer.Agent, signer.BareAgent = s.Agent, s.Form != signatureForms[0]
	// A wrong --sign-agent shows when something is signed. Here it is wrong usage; later it would be the
	// failure of each request.
	try := httptest.NewRequest(http.MethodGet, "https://example.com/", nil)
	if err := signer.Sign(try); err != nil {
		return nil, shell.Usagef("%s", strings.Replace(err.Error(), "sign: Signer.Agent", "--sign-agent", 1))
	}
	return signer, nil
}

// maxKey bounds what is read of a key file. A PEM of Ed25519 has some hundred bytes.
const maxKey = 16 << 10

// ReadKey returns a Signer with the Ed25519 key of a PEM file (PKCS #8), as keygen and
// openssl write it. Errors hold nothing of the file.
func ReadKey(name string) (*sign.Signer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s holds no PRIVATE KEY in PEM: make one with robots sign keygen", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s holds no Ed25519 key: make one with robots sign keygen", name)
	}
	return &sign.Signer{Key: own}, nil
}
