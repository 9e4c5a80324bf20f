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
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/ftp"
	"github.com/robotsgate/robotsgate/policy"
)

// way finishes a transport of the command: it leads its connections elsewhere, and reads over FTP. With --connect-to no
// proxy is used: it would connect in our place, and know nothing of that.
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

// leads are those of --connect-to.
type leads []lead

// lead has the parts of the address asked for, and of the one to use.
type lead struct{ host, port, toHost, toPort string }

// place is HOST1:PORT1:HOST2:PORT2, in which an IPv6 address stands in brackets.
var place = regexp.MustCompile(`^(\[[^]]*\]|[^:[]*):([^:]*):(\[[^]]*\]|[^:[]*):([^:]*)$`)

func parseLeads(flags []string) (all leads, err error) {
	for _, text := range flags {
		m := place.FindStringSubmatch(text)
		if m == nil {
			return nil, shell.Usagef("--connect-to %q is not of the form HOST1:PORT1:HOST2:PORT2", text)
		}
		for _, port := range []string{m[2], m[4]} {
			if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
				return nil, shell.Usagef("--connect-to %q: port %q is not within 1 to 65535", text, port)
			}
		}
		all = append(all, lead{strings.Trim(m[1], "[]"), m[2], strings.Trim(m[3], "[]"), m[4]})
	}
	return all, nil
}

// apply returns the address to connect to instead of address. The first that fits is the one, as with curl. Hosts
// compare without regard to case; their names are ASCII by now.
func (all leads) apply(address string) string {
	host, port, err := net.SplitHostPort(address)
	for _, l := range all {
		if err == nil && (l.host == "" || strings.EqualFold(l.host, host)) && (l.port == "" || l.port == port) {
			return net.JoinHostPort(cmp.Or(l.toHost, host), cmp.Or(l.toPort, port))
		}
	}
	return address
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
		if is, missing := os.Stat(text); missing == nil && is.Mode().IsRegular() {
			err = fmt.Errorf("%s is a file: robots match --robots and robots lint read files", answer.Quoted(text))
		}
		err = shell.Usagef("argument %d: %w", i+1, err)
	}
	return u, o, err
}

// One has cmd take one URL, about which run asks by a gate that is ended behind it.
func (n *Network) One(cmd *cobra.Command, a *shell.App, run func(context.Context, *Gate, *url.URL, fetch.Origin) error) {
	cmd.Args, cmd.ValidArgsFunction = shell.Args(1, 1, "one URL"), cobra.NoFileCompletions // else shells offer files
	cmd.RunE = shell.Runs(func(ctx context.Context, args []string) error {
		u, o, err := ParseSite(n.Dialect, 0, args[0])
		if err != nil {
			return err
		}
		g, err := n.Open(a.Err)
		if err != nil {
			return err
		}
		defer g.End(ctx, a)
		return run(ctx, g, u, o)
	})
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
	try, _ := http.NewRequest(http.MethodGet, "https://example.com/", nil)
	if err := signer.Sign(try); err != nil {
		return nil, shell.Usagef("%s", strings.Replace(err.Error(), "sign: Signer.Agent", "--sign-agent", 1))
	}
	return signer, nil
}

// ReadKey returns a Signer with the Ed25519 key of a PEM file (PKCS #8), as keygen and
// openssl write it. Errors hold nothing of the file.
func ReadKey(name string) (*sign.Signer, error) {
	data, err := os.ReadFile(name)
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
