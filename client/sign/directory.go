package sign

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/fetch"
)

const (
	// DirectoryPath is where an Agent that is an origin has its directory.
	DirectoryPath = "/.well-known/http-message-signatures-directory"

	// DirectoryType is the media type of a directory.
	DirectoryType = "application/http-message-signatures-directory+json"

	directoryLifetime = 24 * time.Hour
	maxDirectory      = 64 << 10 // bytes that ReadDirectory reads
)

// jwk is a public key (RFC 7517, RFC 8037).
type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv,omitempty"`
	Kid string `json:"kid,omitempty"`
	X   string `json:"x,omitempty"`
	Use string `json:"use,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
}

type jwks struct {
	Keys []jwk `json:"keys"`
}

// Directory returns a handler that publishes the public keys of signers: a JSON Web Key Set
// (RFC 7517), which each of the keys signs for the name that it was asked by. Before you
// change keys, publish both for a while: receivers keep a directory for up to a day.
//
// The error names the first Signer without a usable key.
func Directory(signers ...*Signer) (http.Handler, error) {
	set := jwks{Keys: []jwk{}}
	for i, s := range signers {
		x, err := s.public()
		if err != nil {
			return nil, fmt.Errorf("signer %d: %w", i+1, err)
		}
		set.Keys = append(set.Keys, jwk{
			Kty: "OKP", Crv: "Ed25519", Kid: thumbprint(x), X: base64.RawURLEncoding.EncodeToString(x), Use: "sig",
		})
	}
	body, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return &directory{signers: signers, body: body}, nil
}

type directory struct {
	signers []*Signer
	body    []byte
}

func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "a directory is read with GET", http.StatusMethodNotAllowed)
		return
	}
	asked, err := received(r)
	if err != nil {
		http.Error(w, "no such host", http.StatusBadRequest)
		return
	}
	h, sum := w.Header(), sha256.Sum256(d.body)
	h.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	answer := &message{header: h, request: asked}
	for i, s := range d.signers {
		if err := s.signDirectory(answer, "key"+strconv.Itoa(i+1), time.Now()); err != nil {
			http.Error(w, "the directory cannot be signed", http.StatusInternalServerError)
			return
		}
	}
	h.Set("Content-Type", DirectoryType)
	h.Set("Cache-Control", "max-age="+strconv.Itoa(int(directoryLifetime/time.Second)))
	h.Set("Content-Length", strconv.Itoa(len(d.body)))
	if r.Method == http.MethodGet {
		w.Write(d.body)
	}
}

// signDirectory says that the keys are published by the host that was asked.
func (s *Signer) signDirectory(answer *message, label string, now time.Time) error {
	keyID, err := s.KeyID()
	if err != nil {
		return err
	}
	authority := httpsfv.NewItem("@authority")
	authority.Params.Add("req", true)
	input := httpsfv.InnerList{
		Items:  []httpsfv.Item{authority, httpsfv.NewItem("content-digest")},
		Params: httpsfv.NewParams(),
	}
	input.Params.Add("created", now.Unix())
	input.Params.Add("expires", now.Add(directoryLifetime).Unix())
	input.Params.Add("keyid", keyID)
	input.Params.Add("tag", directoryTag)
	return s.attach(answer.header, answer, label, input)
}

// DirectoryURL returns where the directory of an Agent is, if that is an origin or the URL of
// the directory itself.
func DirectoryURL(agent string) (string, error) {
	u, err := url.Parse(agent)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("sign: the agent %q is no https URL", agent)
	}
	if strings.Trim(u.Path, "/") == "" && u.RawQuery == "" {
		u.Path = DirectoryPath
	}
	return u.String(), nil
}

// ReadKeys returns the Ed25519 and RSA keys of a directory by their thumbprints, which are
// their key IDs whatever the directory says. Keys of other types are left out. The error says
// what is wrong with the directory: each key that cannot be read, each kid that is not the
// thumbprint of its key, or that it is no key set at all. The other keys are returned beside it.
func ReadKeys(body []byte) (map[string]crypto.PublicKey, error) {
	if len(body) > maxDirectory {
		return nil, fmt.Errorf("sign: a directory of more than %d bytes", maxDirectory)
	}
	var set jwks
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("sign: the directory is no JSON Web Key Set: %w", err)
	}
	keys := make(map[string]crypto.PublicKey)
	var problems []error
	for i, k := range set.Keys {
		id, key, err := k.read()
		if err != nil {
			problems = append(problems, fmt.Errorf("sign: key %d of the directory: %w", i+1, err))
			continue
		}
		if key == nil {
			continue
		}
		keys[id] = key
		if k.Kid != id {
			problems = append(problems,
				fmt.Errorf("sign: key %d of the directory has the kid %q, but its thumbprint is %q", i+1, k.Kid, id))
		}
	}
	return keys, errors.Join(problems...)
}

// read returns a key and its thumbprint; nil for a type that is not known here.
func (k jwk) read() (id string, key crypto.PublicKey, err error) {
	switch {
	case k.Kty == "OKP" && k.Crv == "Ed25519":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return "", nil, errors.New("its x is no Ed25519 key")
		}
		return thumbprint(x), ed25519.PublicKey(x), nil
	case k.Kty == "RSA":
		n, err := base64.RawURLEncoding.DecodeString(k.N)
		e, err2 := base64.RawURLEncoding.DecodeString(k.E)
		modulus := new(big.Int).SetBytes(n)
		bits := modulus.BitLen()
		if err != nil || err2 != nil || bits < 2048 || bits > 8192 || len(e) == 0 || len(e) > 4 {
			return "", nil, errors.New("its n and e are no RSA key of 2048 to 8192 bits")
		}
		sum := sha256.Sum256([]byte(`{"e":"` + k.E + `","kty":"RSA","n":"` + k.N + `"}`))
		exponent := int(new(big.Int).SetBytes(e).Int64())
		return base64.RawURLEncoding.EncodeToString(sum[:]), &rsa.PublicKey{N: modulus, E: exponent}, nil
	}
	return "", nil, nil
}

// VerifyDirectory checks that each key of a directory that was read from u has signed it for
// that host. Signatures of a directory are optional: without them the error wraps
// ErrUnverified.
func VerifyDirectory(u *url.URL, h http.Header, body []byte) error {
	keys, err := ReadKeys(body)
	if err != nil {
		return err
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	err = checkSignatures(u, o, h, keys)
	if err == nil {
		err = compareDigest(h.Values("Content-Digest"), body)
	}
	if err != nil && !errors.Is(err, ErrUnverified) {
		err = fmt.Errorf("%w of the directory: %w", ErrInvalid, err)
	}
	return err
}

// checkSignatures checks the signatures of a directory at u, whose origin is o. Each key has to
// have made one.
func checkSignatures(u *url.URL, o fetch.Origin, h http.Header, keys map[string]crypto.PublicKey) error {
	asked := &message{method: http.MethodGet, scheme: u.Scheme, authority: o.HostField(), target: u.RequestURI()}
	if size(h.Values("Signature-Input"), h.Values("Signature")) > maxDirectory {
		return fmt.Errorf("its fields have more than %d bytes", maxDirectory)
	}
	inputs, err := httpsfv.UnmarshalDictionary(h.Values("Signature-Input"))
	if err != nil {
		return fmt.Errorf("Signature-Input: %w", err)
	}
	unsigned := maps.Clone(keys)
	for _, label := range inputs.Names() {
		member, _ := inputs.Get(label)
		input, ok := member.(httpsfv.InnerList)
		if !ok {
			continue
		}
		if t, _ := input.Params.Get("tag"); t != directoryTag {
			continue
		}
		keyID, err := checkSignature(&message{header: h, request: asked}, label, input, keys)
		if err != nil {
			return err
		}
		delete(unsigned, keyID)
	}
	if len(unsigned) > 0 {
		return fmt.Errorf("%w: %d keys have not signed the directory", ErrUnverified, len(unsigned))
	}
	return nil
}

// checkSignature checks one signature of a directory, and returns whose it is.
func checkSignature(m *message, label string, input httpsfv.InnerList, keys map[string]crypto.PublicKey,
) (keyID string, err error) {
	var s Signed
	alg, _, err := new(Verifier).times(input.Params, &s)
	if err != nil {
		return "", err
	}
	if !covers(input.Items, "@authority") || !coversWhole(input.Items, "content-digest") {
		return "", errors.New("it must cover @authority and content-digest")
	}
	text, err := base(m, input)
	if err != nil {
		return "", err
	}
	signature, err := bytesOf(m.header.Values("Signature"), label)
	if err != nil {
		return "", err
	}
	key, ok := keys[s.KeyID]
	if !ok {
		return "", fmt.Errorf("its key %q is not in the directory", s.KeyID)
	}
	return s.KeyID, check(key, alg, text, signature)
}
