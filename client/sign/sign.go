// Package sign signs requests so that sites can tell who sent them: Web Bot Auth, a profile of HTTP
// Message Signatures (RFC 9421). That is a draft, and the package changes with it: it follows revisions
// 00 (2026-09-01) and 01 (2026-10-29) of draft-ietf-webbotauth-httpsig-protocol.
//
//	signer := &sign.Signer{Key: key, Agent: "https://bot.example"}
//	c := &http.Client{Transport: &client.Transport{UserAgent: agent, Sign: signer.Sign}}
//
// Each https request that the gate sends is then signed on its own: every hop of a redirect, every
// retry, and those for robots.txt. A site that admits only signed requests answers an unsigned one
// for robots.txt with 403, which RFC 9309 §2.3.1.3 reads as "no restrictions". Signing the pages
// alone would thus open what the site has closed.
//
// The site looks up the public key where Agent says, and the revisions read that differently. For 00 it is an origin
// with the keys at [DirectoryPath]; for 01 it is the URL of the keys, fetched as it is sent. An origin that serves
// [Directory] both at "/" and at DirectoryPath suits both: give the keys their own host. Otherwise choose by the
// receiver: an origin for 00, the full URL for 01. [KeySetURLs] returns what an agent means to each. Some receivers
// know only the form of Signature-Agent before both, see Signer.BareAgent.
//
// Tested every night, in both directions, with a wrong agent refused: the JavaScript library http-message-signatures
// 1.0.6 agrees on signatures of both revisions, and on those of [Directory]. Cloudflare's web-bot-auth 0.1.3 agrees on
// the bare agent; it knows no members of a dictionary (RFC 9421 §2.1.2), so it refuses both revisions, and its
// directories are signed without their content.
//
// [Verify] checks signatures, in tests and at the receiving end. Keys are of Ed25519.
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
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	label        = "sig1" // of our signature, and of the Signature-Agent member
	tag          = "web-bot-auth"
	directoryTag = "http-message-signatures-directory"

	lifetime   = time.Minute // of the signature of a request
	nonceBytes = 32

	// testKey is the key whose private half RFC 9421 §B.1.4 prints.
	testKey = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
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

	// BareAgent sends Signature-Agent as a plain string, for receivers that know no other form.
	// If false, the dictionary of both revisions is sent.
	BareAgent bool
}

// Sign replaces the fields Signature, Signature-Agent and Signature-Input of r by a signature of now, which holds for
// a minute. It fits client.Transport.Sign. It changes nothing else, but r's header must not be shared. A request over
// plain http loses these fields and gets none: the signature does not bind the scheme, so an observer of the wire could
// use it until it expires.
//
// The authority is signed as the host that goes out, in canonical form: Request.Host if that
// is set, in lower case, without the scheme's own port.
//
// The error says which field of the Signer is wrong, why r cannot be signed, or what Key
// returned. It holds no key material.
func (s *Signer) Sign(r *http.Request) error {
	keyID, err := s.KeyID()
	switch {
	case err != nil:
		return err
	case keyID == testKey:
		return errors.New("sign: Signer.Key is the test key that RFC 9421 §B.1.4 publishes: use a key of your own")
	case agentURL(s.Agent) == nil:
		return s.wrongAgent()
	}
	if r.Header == nil {
		r.Header = make(http.Header, 3)
	}
	// Also where none is added: over plain http, an observer could use a signature.
	for _, name := range [...]string{"Signature", "Signature-Agent", "Signature-Input"} {
		r.Header.Del(name)
	}
	if strings.EqualFold(r.URL.Scheme, "http") {
		return nil
	}
	nonce := make([]byte, nonceBytes)
	rand.Read(nonce) // never fails
	return s.sign(r, keyID, time.Now(), base64.StdEncoding.EncodeToString(nonce))
}

func (s *Signer) sign(r *http.Request, keyID string, now time.Time, nonce string) error {
	m, err := requestOf(r)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	value, err := httpsfv.Marshal(httpsfv.NewItem(s.Agent))
	if err != nil {
		return fmt.Errorf("sign: Signer.Agent is %q: %w", s.Agent, err)
	}
	agent := httpsfv.NewItem("signature-agent")
	if !s.BareAgent { // a dictionary, whose member has the label of the signature that covers it
		agent.Params.Add("key", label)
		value = label + "=" + value
	}
	r.Header.Set("Signature-Agent", value)
	// The authority binds a signature to the site that it is for.
	return s.attach(m, label, httpsfv.InnerList{
		Items:  []httpsfv.Item{httpsfv.NewItem("@authority"), agent},
		Params: parametersOf(now, lifetime, keyID, nonce, tag),
	})
}

// parametersOf returns the parameters of a signature made now.
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
	params, _ := httpsfv.Marshal(input) // as base has done
	m.header.Add("Signature-Input", label+"="+params)
	m.header.Add("Signature", label+"=:"+base64.StdEncoding.EncodeToString(signature)+":")
	return nil
}

// agentURL returns an agent as a URL if it is one of https, else nil. All sites see it: it has no password.
func agentURL(agent string) *url.URL {
	u, err := url.Parse(agent)
	if err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && u.Fragment == "" {
		return u
	}
	return nil
}

func (s *Signer) wrongAgent() error {
	return fmt.Errorf("sign: Signer.Agent is %q: "+
		"it must be the https URL under which receivers find your keys, without a user or a fragment", s.Agent)
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
	if !ok {
		return nil, fmt.Errorf("sign: Signer.Key is a %T: its public key must be an ed25519.PublicKey", s.Key)
	}
	return x, nil
}

func thumbprint(x ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(x) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// String returns the KeyID, or "no key": a Signer in a log gives away no key.
func (s Signer) String() string {
	id, _ := s.KeyID()
	return cmp.Or(id, "no key")
}

// Format writes what String returns, whatever the verb.
func (s Signer) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalText returns what String does.
func (s Signer) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// message is what a signature can cover of a request, or of a response with its request.
type message struct {
	header  http.Header
	derived map[string]string // components of a request that are no fields (RFC 9421 §2.2)
	request *message          // of a response; nil: this is a request
}

// requestOf returns r as it goes out, or as a server has received it.
func requestOf(r *http.Request) (*message, error) {
	u := *r.URL // which has no host in a server, and mostly no scheme
	u.Host = cmp.Or(u.Host, r.Host)
	if u.Scheme == "" {
		u.Scheme = "http"
		if r.TLS != nil {
			u.Scheme = "https"
		}
	}
	o, err := fetch.OriginOfRequest(&http.Request{URL: &u, Host: r.Host})
	if err != nil {
		return nil, err
	}
	target := r.RequestURI // of a server
	if !strings.HasPrefix(target, "/") {
		target = u.RequestURI()
	}
	scheme, authority := strings.ToLower(u.Scheme), o.HostField()
	path, query, _ := strings.Cut(target, "?")
	return &message{header: r.Header, derived: map[string]string{
		"@method": cmp.Or(r.Method, http.MethodGet), "@scheme": scheme, "@authority": authority,
		"@target-uri": scheme + "://" + authority + target,
		"@path":       path,
		"@query":      "?" + query, // "?" for none too (RFC 9421 §2.2.7)
	}}, nil
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
		case strings.ContainsAny(value, "\r\n"): // which would begin another component
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

// value returns the value of a component (RFC 9421 §2.1 and §2.2). A signature over what is not known here can neither
// be made nor checked.
func (m *message) value(component httpsfv.Item) (string, error) {
	name, _ := component.Value.(string)
	key := ""
	for _, p := range component.Params.Names() {
		value, _ := component.Params.Get(p)
		switch text, _ := value.(string); {
		case p == "key" && text != "":
			key = text
		case p == "req" && value == true && m.request != nil:
			m = m.request
		default:
			return "", fmt.Errorf("parameter %q is not known here", p)
		}
	}
	if strings.HasPrefix(name, "@") {
		value, known := m.derived[name]
		if !known || key != "" {
			return "", errors.New("it is not known here")
		}
		return value, nil
	}
	lines := m.header.Values(name) // without white space around, as net/http sends and receives them
	switch {
	case name != strings.ToLower(name):
		return "", errors.New("names of fields are in lower case")
	case len(lines) == 0:
		return "", errAbsent
	case key != "":
		return memberOf(lines, key)
	}
	return strings.Join(lines, ", "), nil
}

var errAbsent = errors.New("the message has no such field")

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
