package sign

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/fetch"
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

// Verifier checks signatures that Signers make, and others of the same profile with an
// Ed25519 or RSA-PSS key. It is safe for concurrent use, if its functions are.
type Verifier struct {
	// Key returns the public key that the directory of agent lists under keyID: an ed25519.PublicKey or a
	// *rsa.PublicKey. Its errors mean "not verified". agent comes from the request: if Key fetches it, a stranger has
	// chosen the URL. If nil, nothing is verified, and the error names Key.
	Key func(ctx context.Context, agent, keyID string) (crypto.PublicKey, error)

	// Replayed reports whether it was called with the same nonce of the same key before. It may
	// forget a nonce after until: by then the signature has expired. If it is set, a
	// signature without a nonce is invalid. If nil, a signature may be used again until it expires.
	Replayed func(keyID, nonce string, until time.Time) bool
}

// Signed is what a good signature says.
type Signed struct {
	Agent   string // of the Signature-Agent field
	KeyID   string
	Created time.Time
	Expires time.Time
}

// Verify checks the signature of a request that a server has received. If r.URL has no scheme, that is https for a
// request over TLS and http for any other: behind a proxy that ends TLS, set it first.
//
// A good signature vouches for what it covers: the site, the agent, and what else the signer
// chose, which may leave out the method and the path. A covered Content-Digest is compared
// with the body, up to 1 MiB, and the body can be read again.
//
// The error wraps ErrUnverified or ErrInvalid; Signed is then zero.
func (v *Verifier) Verify(r *http.Request) (Signed, error) {
	s, err := v.verify(r)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, ErrUnverified):
		return Signed{}, err
	}
	return Signed{}, fmt.Errorf("%w: %w", ErrInvalid, err)
}

func (v *Verifier) verify(r *http.Request) (s Signed, err error) {
	if v.Key == nil {
		return s, fmt.Errorf("%w: Verifier.Key is nil: set what looks up keys", ErrUnverified)
	}
	label, input, err := find(r.Header)
	if err != nil {
		return s, err
	}
	agent, err := agentOf(r.Header, label, input.Items)
	if err != nil {
		return s, err
	}
	m, err := received(r)
	if err != nil {
		return s, err
	}
	g, err := open(m, label, input)
	if err != nil {
		return s, err
	}
	// Key may fetch from where the request says, so what costs nothing was checked before.
	key, err := v.Key(r.Context(), agent, g.KeyID)
	if err != nil {
		return s, fmt.Errorf("%w: no key %q of %q: %w", ErrUnverified, g.KeyID, agent, err)
	}
	if err := g.check(key); err != nil {
		return s, err
	}
	if covers(input.Items, "content-digest") {
		if !coversWhole(input.Items, "content-digest") { // beside one digest, anyone may set another
			return s, errors.New("it covers only a member of Content-Digest")
		}
		if err := checkDigest(r); err != nil {
			return s, err
		}
	}
	// Last: a forged request must not use up the nonce of a good one.
	if v.Replayed != nil && (g.nonce == "" || v.Replayed(g.KeyID, g.nonce, g.Expires.Add(skew))) {
		return s, errors.New("its nonce was used before, or is missing")
	}
	g.Agent = agent
	return g.Signed, nil
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

// bytesOf returns a member of a Dictionary that is a Byte Sequence.
func bytesOf(lines []string, key string) ([]byte, error) {
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, fmt.Errorf("its Signature: %w", err)
	}
	member, _ := d.Get(key)
	item, _ := member.(httpsfv.Item)
	if b, ok := item.Value.([]byte); ok {
		return b, nil
	}
	return nil, fmt.Errorf("its Signature has no byte sequence %q", key)
}

// given is what a signature says, what it is over, and its bytes.
type given struct {
	Signed
	alg, nonce string
	text       string
	signature  []byte
}

// open reads a signature of m, and checks all but that the key made it.
func open(m *message, label string, input httpsfv.InnerList) (g given, err error) {
	for name, to := range map[string]*string{"keyid": &g.KeyID, "alg": &g.alg, "nonce": &g.nonce} {
		value, ok := input.Params.Get(name)
		text, isText := value.(string)
		if ok && !isText || name == "keyid" && text == "" {
			return g, fmt.Errorf("its %s is no string, or missing", name)
		}
		*to = text
	}
	for name, to := range map[string]*time.Time{"created": &g.Created, "expires": &g.Expires} {
		value, _ := input.Params.Get(name)
		seconds, ok := value.(int64)
		if !ok {
			return g, fmt.Errorf("it has no %s in whole seconds", name)
		}
		*to = time.Unix(seconds, 0)
	}
	switch now := time.Now(); {
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
	g.signature, err = bytesOf(m.header.Values("Signature"), label)
	return g, err
}

// agentOf returns what Signature-Agent says under a signature's label, or the plain string of
// the older form. The signature must cover it, and the site that it is for.
func agentOf(h http.Header, label string, components []httpsfv.Item) (string, error) {
	if !covers(components, "@authority") && !covers(components, "@target-uri") {
		return "", errors.New("it covers neither @authority nor @target-uri, so it is for any site")
	}
	lines := h.Values("Signature-Agent")
	if len(lines) == 0 {
		return "", fmt.Errorf("%w: the request names no Signature-Agent", ErrUnverified)
	}
	if !covers(components, "signature-agent") {
		return "", errors.New("it does not cover signature-agent")
	}
	item, err := httpsfv.UnmarshalItem(lines)
	if err != nil { // not the older form
		d, err := httpsfv.UnmarshalDictionary(lines)
		if err != nil {
			return "", fmt.Errorf("Signature-Agent: %w", err)
		}
		member, ok := d.Get(agentKey(components, label))
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

// covers reports whether a component of that name, with any parameters, is covered.
func covers(components []httpsfv.Item, name string) bool {
	return slices.ContainsFunc(components, func(c httpsfv.Item) bool { return c.Value == name })
}

// coversWhole reports whether a field of the message itself is covered, and not only a member.
func coversWhole(components []httpsfv.Item, name string) bool {
	return slices.ContainsFunc(components, func(c httpsfv.Item) bool { return c.Value == name && len(c.Params.Names()) == 0 })
}

// agentKey returns the member of signature-agent that is covered. The draft wants the
// signature's own label there, but prints examples with another. Some signers cover the whole field.
func agentKey(components []httpsfv.Item, label string) (key string) {
	if coversWhole(components, "signature-agent") {
		return label
	}
	for _, c := range components {
		if k, _ := c.Params.Get("key"); c.Value == "signature-agent" && key != label {
			key, _ = k.(string)
		}
	}
	return key
}

// received returns r as it came.
func received(r *http.Request) (*message, error) {
	m := &message{header: r.Header, method: r.Method, scheme: r.URL.Scheme, target: r.RequestURI}
	if m.scheme == "" {
		m.scheme = "http"
		if r.TLS != nil {
			m.scheme = "https"
		}
	}
	if m.target == "" || m.target[0] != '/' { // made by hand, or absolute
		m.target = r.URL.RequestURI()
	}
	o, err := fetch.OriginOf(&url.URL{Scheme: m.scheme, Host: cmp.Or(r.Host, r.URL.Host)})
	if err != nil {
		return nil, err
	}
	m.authority = o.HostField()
	return m, nil
}

// check checks that a key made the signature. The key decides on the algorithm; a parameter that names another is an
// error. HMAC is not allowed: both sides could sign.
func (g *given) check(key crypto.PublicKey) error {
	alg, holds := "", false
	switch key := key.(type) {
	case ed25519.PublicKey:
		alg, holds = "ed25519", len(key) == ed25519.PublicKeySize && ed25519.Verify(key, []byte(g.text), g.signature)
	case *rsa.PublicKey:
		sum := sha512.Sum512([]byte(g.text)) // with 64 bytes of salt (RFC 9421 §3.3.1)
		alg, holds = "rsa-pss-sha512", rsa.VerifyPSS(key, crypto.SHA512, sum[:], g.signature, &rsa.PSSOptions{SaltLength: 64}) == nil
	default:
		return fmt.Errorf("%w: a key of type %T", ErrUnverified, key)
	}
	if g.alg != "" && g.alg != alg {
		return fmt.Errorf("its alg is %q, its key is for %s", g.alg, alg)
	}
	if !holds {
		return errors.New("it is not of this request and key")
	}
	return nil
}

// checkDigest compares the Content-Digest of r with its body, which can be read again.
func checkDigest(r *http.Request) error {
	rest := cmp.Or(r.Body, io.ReadCloser(http.NoBody))
	body, err := io.ReadAll(io.LimitReader(rest, maxBody+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	switch {
	case err != nil:
		return fmt.Errorf("Content-Digest: %w", err)
	case len(body) > maxBody:
		return fmt.Errorf("Content-Digest: the body has more than %d bytes", maxBody)
	}
	return compareDigest(r.Header.Values("Content-Digest"), body)
}

// compareDigest holds a body against a Content-Digest field (RFC 9530 §2).
func compareDigest(lines []string, body []byte) error {
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return fmt.Errorf("Content-Digest: %w", err)
	}
	known := false
	for name, alg := range map[string]crypto.Hash{"sha-256": crypto.SHA256, "sha-512": crypto.SHA512} {
		if member, has := d.Get(name); has {
			known = true
			sum := alg.New()
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
