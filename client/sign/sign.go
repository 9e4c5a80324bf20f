// Package sign signs requests so that sites can tell who sent them: Web Bot Auth, a profile of HTTP
// Message Signatures (RFC 9421). That is a draft, and the package changes with it: it follows revisions
// 00 (2026-09-01) and 01 (2026-10-29) of draft-ietf-webbotauth-httpsig-protocol.
//
//	signer := &sign.Signer{Key: key, Agent: "https://bot.example"}
//	c := &http.Client{Transport: &client.Transport{UserAgent: agent, Sign: signer.Sign}}
//
// Each https request that the gate sends is then signed on its own: every hop of a redirect, every
// retry, and those for robots.txt; http too with PlainHTTP. A site that admits only signed requests
// answers an unsigned one for robots.txt with 403, which RFC 9309 §2.3.1.3 reads as "no
// restrictions". Signing the pages alone would thus open what the site has closed.
//
// The site looks up the public key where Agent says, and the revisions read that differently. To 00 it is an origin
// with the keys at [DirectoryPath]; to 01 it is the URL of the keys, fetched as it is sent. Both are content with an
// origin that serves [Directory] at "/" and at DirectoryPath: give the keys a host of their own. Otherwise choose by
// the receiver: an origin for 00, the full URL for 01. [KeySetURLs] tells what an agent means to each. Some receivers
// still know only the form of Signature-Agent before both, see Signer.BareAgent.
//
// Seen in 2026-11, in both directions, and with a wrong agent refused: the JavaScript library
// http-message-signatures 1.0 agrees on signatures of both revisions, and on those of [Directory].
// Cloudflare's web-bot-auth 0.1.3 agrees on the bare agent; it knows no members of a dictionary
// (RFC 9421 §2.1.2), so that it refuses both revisions, and its directories are signed without their content.
//
// A [Verifier] checks signatures, in tests and at the receiving end.
package sign

import (
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	label        = "sig1" // of our signature, and of the Signature-Agent member
	tag          = "web-bot-auth"
	directoryTag = "http-message-signatures-directory"

	defaultLifetime = time.Minute
	maxLifetime     = 24 * time.Hour // the draft's recommendation

	nonceBytes = 32
)

// Signer signs requests with one key. It is safe for concurrent use, provided that Key is.
// Its fields must not change after the first use.
//
// Logged, printed or encoded as JSON, a Signer shows its KeyID alone. Keep it by pointer: %v of a struct
// with a Signer in an unexported field prints the key.
type Signer struct {
	// Key makes the signatures. Its public key must be an ed25519.PublicKey: Key is an ed25519.PrivateKey, or stands
	// for one that a KMS or a security module holds. If nil, Sign and Directory fail and name it.
	Key crypto.Signer `json:"-" xml:"-" yaml:"-"` // where a struct embeds a Signer and hides its methods

	// Agent is the value of the Signature-Agent field: an https URL, under which receivers find the
	// directory of keys, or the keys themselves. It is sent as given. If empty, or no https URL, Sign
	// fails and says so. A Directory needs none.
	Agent string

	// Lifetime is how long a signature is valid from its making, in whole seconds. If zero, one minute. If negative,
	// Sign fails, for a signature must have an end: it takes from a second to 24 hours.
	Lifetime time.Duration

	// Cover names what the signature covers besides the authority and the Signature-Agent
	// field: "@method", "@target-uri", "@scheme", "@path", "@query", or header fields in
	// lower case, which the request must have. If empty, nothing more.
	Cover []string

	// BareAgent sends Signature-Agent as a plain string, for receivers that know no other form.
	// If false, the dictionary of both revisions is sent.
	BareAgent bool

	// PlainHTTP signs requests over http too. If false, they go out unsigned: the signature
	// does not bind the scheme, so an observer of the wire could use it until it expires.
	PlainHTTP bool
}

// Sign replaces the fields Signature, Signature-Agent and Signature-Input of r by a signature of
// now. It fits client.Transport.Sign. It changes nothing else, but r's header must not be
// shared. A request over plain http loses these fields and gets none, unless PlainHTTP is set.
//
// The authority is signed as the host that goes out, in canonical form: Request.Host if that
// is set, in lower case, without the scheme's own port.
//
// The error says which field of the Signer is wrong, why r cannot be signed, or what Key
// returned. It holds no key material.
func (s *Signer) Sign(r *http.Request) error {
	keyID, err := s.KeyID()
	if err != nil {
		return err
	}
	if section := testKeys[keyID]; section != "" {
		return fmt.Errorf("sign: Signer.Key is the test key that RFC 9421 §%s publishes: use a key of your own", section)
	}
	nonce := make([]byte, nonceBytes)
	rand.Read(nonce) // never fails
	return s.sign(r, keyID, time.Now(), base64.StdEncoding.EncodeToString(nonce))
}

// testKeys has the keys whose private halves RFC 9421 prints, by thumbprint. Those of §B.1.3
// and §B.1.5 are of types that are not read.
var testKeys = map[string]string{
	"BHj8s0GPnMEQtkaULIM-PLgEhLBbuGUQ1vMxmBWZzEo": "B.1.1",
	"oD0HwocPBSfpNy5W3bpJeyFGY_IQ_YpqxSjQ3Yd-CLA": "B.1.2",
	"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U": "B.1.4",
}

func (s *Signer) sign(r *http.Request, keyID string, now time.Time, nonce string) error {
	if err := s.misuse(); err != nil {
		return err
	}
	if r.Header == nil {
		r.Header = make(http.Header, 3)
	}
	// Also where none is added: over plain http, who sees a signature could use it.
	for _, name := range [...]string{"Signature", "Signature-Agent", "Signature-Input"} {
		r.Header.Del(name)
	}
	if strings.EqualFold(r.URL.Scheme, "http") && !s.PlainHTTP {
		return nil
	}
	m, err := sent(r)
	if err != nil {
		return err
	}
	agent, err := httpsfv.Marshal(httpsfv.NewItem(s.Agent))
	if err != nil {
		return fmt.Errorf("sign: Signer.Agent is %q: %w", s.Agent, err)
	}
	if !s.BareAgent { // a dictionary, whose member has the label of the signature that covers it
		agent = label + "=" + agent
	}
	r.Header.Set("Signature-Agent", agent)

	params := parametersOf(now, cmp.Or(s.Lifetime, defaultLifetime), keyID, nonce, tag)
	return s.attach(m, label, httpsfv.InnerList{Items: s.components(), Params: params})
}

// parametersOf returns those of a signature of now.
func parametersOf(now time.Time, lifetime time.Duration, keyID, nonce, tag string) *httpsfv.Params {
	params := httpsfv.NewParams()
	params.Add("created", now.Unix())
	params.Add("expires", now.Add(lifetime).Unix())
	params.Add("keyid", keyID)
	if nonce != "" {
		params.Add("nonce", nonce)
	}
	params.Add("tag", tag)
	return params
}

// attach signs m and adds both fields to its header.
func (s *Signer) attach(m *message, label string, input httpsfv.InnerList) error {
	text, err := base(m, input)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	signature, err := s.Key.Sign(rand.Reader, []byte(text), crypto.Hash(0)) // Ed25519 hashes by itself
	if err != nil {
		return fmt.Errorf("sign: the key does not sign: %w", err)
	}
	params, err := httpsfv.Marshal(input)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	m.header.Add("Signature-Input", label+"="+params)
	m.header.Add("Signature", label+"=:"+base64.StdEncoding.EncodeToString(signature)+":")
	return nil
}

func (s *Signer) misuse() error {
	if agentURL(s.Agent) == nil {
		return fmt.Errorf("sign: Signer.Agent is %q: "+
			"it must be the https URL under which receivers find your keys, without a user or a fragment", s.Agent)
	}
	if s.Lifetime < 0 || s.Lifetime > maxLifetime || s.Lifetime != 0 && s.Lifetime < time.Second {
		return fmt.Errorf("sign: Signer.Lifetime is %v: it must be from 1s to 24h, or 0 for one minute", s.Lifetime)
	}
	return nil
}

// agentURL returns an agent as a URL if it is one of https, else nil. All sites see it: it has no password.
func agentURL(agent string) *url.URL {
	if u, err := url.Parse(agent); err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == "" {
		return u
	}
	return nil
}

// components lists what is covered. The authority comes first: it binds a signature to the site that it is for.
func (s *Signer) components() []httpsfv.Item {
	agent := httpsfv.NewItem("signature-agent")
	if !s.BareAgent {
		agent.Params.Add("key", label)
	}
	items := []httpsfv.Item{httpsfv.NewItem("@authority"), agent}
	for _, name := range s.Cover {
		items = append(items, httpsfv.NewItem(name))
	}
	return items
}

// sent returns r as it goes out.
func sent(r *http.Request) (*message, error) {
	o, err := fetch.OriginOfRequest(r)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return &message{
		header: r.Header, method: cmp.Or(r.Method, http.MethodGet), scheme: strings.ToLower(r.URL.Scheme),
		authority: o.HostField(), target: r.URL.RequestURI(),
	}, nil
}

// KeyID returns the name under which receivers find the key: its JWK thumbprint (RFC 7638,
// RFC 8037 §A.3), in base64url.
func (s *Signer) KeyID() (string, error) {
	x, err := s.public()
	if err != nil {
		return "", err
	}
	return thumbprint(x), nil
}

// public returns the public half of Key.
func (s *Signer) public() (ed25519.PublicKey, error) {
	if s.Key == nil {
		return nil, errors.New("sign: Signer.Key is nil: set an ed25519.PrivateKey")
	}
	// Two halves that do not belong together make signatures that no key verifies, and from which the
	// private key can be computed.
	key, own := s.Key.(ed25519.PrivateKey)
	if own && (len(key) != ed25519.PrivateKeySize || !key.Equal(ed25519.NewKeyFromSeed(key.Seed()))) {
		return nil, fmt.Errorf("sign: Signer.Key is no ed25519.PrivateKey: "+
			"its %d bytes are not a seed of 32 and the public key of that", len(key))
	}
	x, ok := s.Key.Public().(ed25519.PublicKey)
	if !ok || len(x) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("sign: Signer.Key is a %T: its public key must be an ed25519.PublicKey", s.Key)
	}
	return x, nil
}

func thumbprint(x ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(x) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// String returns the KeyID alone, so that a Signer in a log gives away no key.
func (s Signer) String() string { return "sign.Signer " + cmp.Or(s.id(), "without a key") }

// Format writes what String returns, whatever the verb.
func (s Signer) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// LogValue returns the KeyID, or "" if there is no key.
func (s Signer) LogValue() slog.Value { return slog.StringValue(s.id()) }

// MarshalText returns the KeyID, or nothing if there is no key.
func (s Signer) MarshalText() ([]byte, error) { return []byte(s.id()), nil }

func (s *Signer) id() string {
	id, _ := s.KeyID()
	return id
}

// message is what a signature can cover of a request, or of a response with its request.
type message struct {
	header    http.Header
	method    string
	scheme    string
	authority string   // in canonical form
	target    string   // path and query as sent, "/" at least
	request   *message // of a response; nil: this is a request
}

// maxComponents bounds what a signature covers. For each member of a field that is covered, the whole field is read.
const maxComponents = 32

// base returns the signature base (RFC 9421 §2.5): a line for each covered component, and one
// for the signature's own parameters.
func base(m *message, input httpsfv.InnerList) (string, error) {
	if len(input.Items) > maxComponents {
		return "", fmt.Errorf("more than %d components are covered", maxComponents)
	}
	var text strings.Builder
	seen := map[string]bool{}
	for _, component := range input.Items {
		id, err := httpsfv.Marshal(component)
		if err != nil {
			return "", fmt.Errorf("covered component: %w", err)
		}
		value, err := m.value(component)
		switch {
		case seen[id]: // RFC 9421 §2.5
			return "", fmt.Errorf("%s is covered twice", id)
		case err != nil:
			return "", fmt.Errorf("cannot cover %s: %w", id, err)
		case strings.ContainsAny(value, "\r\n"): // which would begin a component of its own
			return "", fmt.Errorf("cannot cover %s: it has a line break", id)
		}
		seen[id] = true
		text.WriteString(id + ": " + value + "\n")
	}
	params, err := httpsfv.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("signature parameters: %w", err)
	}
	text.WriteString(`"@signature-params": ` + params)
	return text.String(), nil
}

var errAbsent = errors.New("the message has no such field")

// value returns the value of a component (RFC 9421 §2.1 and §2.2).
func (m *message) value(component httpsfv.Item) (string, error) {
	name, ok := component.Value.(string)
	if !ok {
		return "", errors.New("its name is no string")
	}
	key, ofRequest, err := parameters(component)
	if err != nil {
		return "", err
	}
	if ofRequest {
		if m = m.request; m == nil {
			return "", errors.New("a request has no request of its own")
		}
	}
	lines := slices.Clone(m.header.Values(name))
	switch {
	case strings.HasPrefix(name, "@") && (key != "" || m.method == ""):
		return "", errors.New("it has no meaning here") // a response has a @status alone (RFC 9421 §2.2.9), which is not known here
	case strings.HasPrefix(name, "@"):
		return m.derived(name)
	case name != strings.ToLower(name):
		return "", errors.New("names of fields are in lower case")
	case len(lines) == 0:
		return "", errAbsent
	case key != "":
		return memberOf(lines, key)
	}
	for i, line := range lines { // RFC 9421 §2.1
		lines[i] = strings.Trim(line, " \t")
	}
	return strings.Join(lines, ", "), nil
}

// parameters returns those of a component that are known here. A signature over others cannot be made or checked.
func parameters(component httpsfv.Item) (key string, ofRequest bool, err error) {
	for _, name := range component.Params.Names() {
		value, _ := component.Params.Get(name)
		switch name {
		case "key":
			if key, _ = value.(string); key == "" {
				err = errors.New("its key is no string")
			}
		case "req":
			if ofRequest, _ = value.(bool); !ofRequest {
				err = errors.New("its req is not true")
			}
		default:
			err = fmt.Errorf("parameter %q is not known here", name)
		}
	}
	return key, ofRequest, err
}

// derived returns a component that is no field (RFC 9421 §2.2).
func (m *message) derived(name string) (string, error) {
	path, query, _ := strings.Cut(m.target, "?")
	switch name {
	case "@method":
		return m.method, nil
	case "@scheme":
		return m.scheme, nil
	case "@authority":
		return m.authority, nil
	case "@target-uri":
		return m.scheme + "://" + m.authority + m.target, nil
	case "@path":
		return path, nil
	case "@query":
		return "?" + query, nil // "?" for none too (RFC 9421 §2.2.7)
	}
	return "", errors.New("it is not known here")
}

// memberOf returns one member of a Dictionary field (RFC 9421 §2.1.2).
func memberOf(lines []string, key string) (string, error) {
	if size(lines) > maxFields {
		return "", fmt.Errorf("the field has more than %d bytes", maxFields)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return "", err
	}
	if member, ok := d.Get(key); ok {
		return httpsfv.Marshal(member)
	}
	return "", errAbsent
}
