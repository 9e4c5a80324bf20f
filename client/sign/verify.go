package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"
)

// What Verify finds, apart from a good signature. Its errors wrap one of them.
var (
	// ErrUnverified: the request does not say who it is from in a way that can be checked. It
	// has no signature of this kind, names no agent, or the key cannot be had.
	ErrUnverified = errors.New("sign: not verified")

	// ErrInvalid: the request has a signature that does not hold.
	ErrInvalid = errors.New("sign: invalid signature")
)

const (
	maxFields = 16 << 10         // bytes of all signature fields of a request, and of any other that is taken apart
	maxBody   = 1 << 20          // bytes of a body whose digest is covered
	skew      = 10 * time.Second // how far the signer's clock may differ
)

// Signed is what a good signature says.
type Signed struct {
	Agent   string // of the Signature-Agent field
	KeyID   string
	Nonce   string // "" if it has none
	Created time.Time
	Expires time.Time
}

// Verify checks the signature of a request that a server has received: one that a Signer made, or another of the same
// profile with an Ed25519 key. If r.URL has no scheme, that is https for a request over TLS and http for any other:
// behind a proxy that ends TLS, set it first.
//
// key returns the public key that the directory of agent lists under keyID. Its errors mean "not verified". agent comes
// from the request: if key fetches it, a stranger has chosen the URL.
//
// A good signature vouches for what it covers: the site, the agent, and what else the signer chose, which may leave out
// the method and the path. A covered Content-Digest is compared with the body, up to 1 MiB, and the body can be read
// again. Until ten seconds after it expires, a signature can be used again: to prevent that, keep each KeyID with its
// Nonce for as long.
//
// The error wraps ErrUnverified or ErrInvalid; Signed is then zero.
func Verify(r *http.Request, key func(agent, keyID string) (ed25519.PublicKey, error)) (Signed, error) {
	g, err := read(r)
	if err == nil {
		// key may fetch from where the request says, so what costs nothing was checked before.
		var x ed25519.PublicKey
		if x, err = key(g.Agent, g.KeyID); err != nil {
			err = fmt.Errorf("%w: no key %q of %q: %w", ErrUnverified, g.KeyID, g.Agent, err)
		} else if err = g.check(x); err == nil && covered(g.components, "content-digest") != nil {
			err = checkDigest(r, g.components)
		}
	}
	switch {
	case err == nil:
		return g.Signed, nil
	case errors.Is(err, ErrUnverified):
		return Signed{}, err
	}
	return Signed{}, fmt.Errorf("%w: %w", ErrInvalid, err)
}

// read reads the signature of r, and checks all but that the key made it.
func read(r *http.Request) (g given, err error) {
	label, input, err := find(r.Header)
	if err != nil {
		return g, err
	}
	agent, err := agentOf(r.Header, label, input.Items)
	if err != nil {
		return g, err
	}
	m, err := requestOf(r)
	if err != nil {
		return g, err
	}
	g, err = open(m, label, input)
	g.Agent = agent
	return g, err
}

// find returns the one signature that has our tag.
func find(h http.Header) (label string, input httpsfv.InnerList, err error) {
	inputs, signatures := h.Values("Signature-Input"), h.Values("Signature")
	if len(inputs) == 0 && len(signatures) == 0 {
		return "", input, fmt.Errorf("%w: the request is not signed", ErrUnverified)
	}
	if size(inputs, signatures, h.Values("Signature-Agent")) > maxFields {
		return "", input, fmt.Errorf("its fields have more than %d bytes", maxFields)
	}
	ours, err := tagged(inputs, tag)
	switch {
	case err != nil:
		return "", input, err
	case len(ours) == 0:
		return "", input, fmt.Errorf("%w: no signature has the tag %q", ErrUnverified, tag)
	case len(ours) > 1: // what one reader checks, another might not use
		return "", input, fmt.Errorf("two signatures have the tag %q", tag)
	}
	for label, input = range ours {
	}
	return label, input, nil
}

// tagged returns the members of Signature-Input with a tag.
func tagged(inputs []string, tag string) (map[string]httpsfv.InnerList, error) {
	all, err := httpsfv.UnmarshalDictionary(inputs)
	if err != nil {
		return nil, fmt.Errorf("Signature-Input: %w", err)
	}
	ours := map[string]httpsfv.InnerList{}
	for _, name := range all.Names() {
		member, _ := all.Get(name)
		list, ok := member.(httpsfv.InnerList)
		if !ok {
			return nil, fmt.Errorf("%s in Signature-Input is no list of components", name)
		}
		if t, _ := list.Params.Get("tag"); t == tag {
			ours[name] = list
		}
	}
	return ours, nil
}

// size returns how many bytes fields have. Each line counts for one more: empty ones cost too.
func size(fields ...[]string) (n int) {
	for _, lines := range fields {
		for _, line := range lines {
			n += len(line) + 1
		}
	}
	return n
}

// covered returns the first component of that name, with any parameters, or nil.
func covered(components []httpsfv.Item, name string) *httpsfv.Item {
	if i := slices.IndexFunc(components, func(c httpsfv.Item) bool { return c.Value == name }); i >= 0 {
		return &components[i]
	}
	return nil
}

// agentOf returns what Signature-Agent says in the member that the signature covers, or the plain string of the older
// form. The signature must cover it, and the site that it is for. The draft wants the signature's own label for the
// member, but prints examples with another. Some signers cover the whole field.
func agentOf(h http.Header, label string, components []httpsfv.Item) (string, error) {
	if covered(components, "@authority") == nil && covered(components, "@target-uri") == nil {
		return "", errors.New("it covers neither @authority nor @target-uri, so it is for any site")
	}
	lines := h.Values("Signature-Agent")
	if len(lines) == 0 {
		return "", fmt.Errorf("%w: the request names no Signature-Agent", ErrUnverified)
	}
	component := covered(components, "signature-agent")
	if component == nil {
		return "", errors.New("it does not cover signature-agent")
	}
	item, err := httpsfv.UnmarshalItem(lines)
	if err != nil { // not the older form
		d, err := httpsfv.UnmarshalDictionary(lines)
		if err != nil {
			return "", fmt.Errorf("Signature-Agent: %w", err)
		}
		if key, ok := component.Params.Get("key"); ok {
			label, _ = key.(string)
		}
		member, ok := d.Get(label)
		if !ok {
			return "", errors.New("it covers no member of Signature-Agent that is there")
		}
		item, _ = member.(httpsfv.Item)
	}
	if item.Params != nil && len(item.Params.Names()) > 0 { // to revision 00 a type; revision 01 ignores such an agent
		return "", fmt.Errorf("%w: its agent has parameters", ErrUnverified)
	}
	agent, _ := item.Value.(string)
	if agentURL(agent) == nil {
		return "", fmt.Errorf("its agent is %q, not an https URL", agent)
	}
	return agent, nil
}

// given is what a signature says, what it is over, and its bytes.
type given struct {
	Signed
	components []httpsfv.Item
	text       string
	signature  []byte
}

// open reads a signature of m, and checks all but that the key made it.
func open(m *message, label string, input httpsfv.InnerList) (g given, err error) {
	get := func(name string) any {
		value, _ := input.Params.Get(name)
		return value
	}
	g.components = input.Items
	g.KeyID, _ = get("keyid").(string)
	g.Nonce, _ = get("nonce").(string)
	created, hasCreated := get("created").(int64)
	expires, hasExpires := get("expires").(int64)
	g.Created, g.Expires = time.Unix(created, 0), time.Unix(expires, 0)
	switch now, alg := time.Now(), get("alg"); {
	case g.KeyID == "" || !hasCreated || !hasExpires:
		return g, errors.New("it has no keyid, or no created and expires in whole seconds")
	case alg != nil && alg != "ed25519": // the key decides on the algorithm; HMAC is not allowed: both sides could sign
		return g, fmt.Errorf("its alg is %v, not ed25519", alg)
	case g.Created.After(now.Add(skew)):
		return g, fmt.Errorf("it was created %v from now", g.Created.Sub(now).Round(time.Second))
	case !g.Expires.After(now.Add(-skew)):
		return g, fmt.Errorf("it expired %v ago", now.Sub(g.Expires).Round(time.Second))
	case g.Expires.Before(g.Created):
		return g, errors.New("it expires before it was created")
	}
	if g.text, err = base(m, input); err != nil {
		return g, err
	}
	d, err := httpsfv.UnmarshalDictionary(m.header.Values("Signature"))
	if err != nil {
		return g, fmt.Errorf("its Signature: %w", err)
	}
	member, _ := d.Get(label)
	item, _ := member.(httpsfv.Item)
	if g.signature, _ = item.Value.([]byte); g.signature == nil {
		return g, fmt.Errorf("its Signature has no byte sequence %q", label)
	}
	return g, nil
}

// check checks that a key made the signature.
func (g *given) check(key ed25519.PublicKey) error {
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, []byte(g.text), g.signature) {
		return errors.New("it is not of this request and key")
	}
	return nil
}

// checkDigest compares the Content-Digest of r with its body, which can be read again.
func checkDigest(r *http.Request, components []httpsfv.Item) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return fmt.Errorf("Content-Digest: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return compareDigest(r.Header, components, body)
}

// compareDigest holds a body against the Content-Digest field (RFC 9530 §2) that a signature covers as a whole: beside
// a member of it, anyone may set another.
func compareDigest(h http.Header, components []httpsfv.Item, body []byte) error {
	if c := covered(components, "content-digest"); c == nil || len(c.Params.Names()) > 0 {
		return errors.New("it does not cover Content-Digest as a whole")
	}
	d, err := httpsfv.UnmarshalDictionary(h.Values("Content-Digest"))
	if err != nil {
		return fmt.Errorf("Content-Digest: %w", err)
	}
	known := false
	for name, newHash := range map[string]func() hash.Hash{"sha-256": sha256.New, "sha-512": sha512.New} {
		if member, has := d.Get(name); has {
			known = true
			sum := newHash()
			sum.Write(body)
			item, _ := member.(httpsfv.Item)
			if want, _ := item.Value.([]byte); !bytes.Equal(want, sum.Sum(nil)) {
				return errors.New("the body is not that of its Content-Digest")
			}
		}
	}
	if !known {
		return errors.New("Content-Digest has neither sha-256 nor sha-512")
	}
	return nil
}
