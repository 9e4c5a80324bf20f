package sign

import (
	"cmp"
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
	"slices"
	"strconv"
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

// Directory returns a handler that publishes the public keys of signers: a JSON Web Key Set (RFC 7517). Each of the
// keys signs it for the hosts of the signers' Agents. A request for any other host gets the keys without signatures, so
// a mirror gets nothing that vouches for it. Receivers accept that: signatures are optional. A proxy in front that
// changes the Host has the same effect. A Signer without an Agent adds its key, but no host. Before you change keys,
// publish both for a while: receivers keep a directory for up to a day.
//
// The error names the first Signer whose key or Agent cannot be used.
func Directory(signers ...*Signer) (http.Handler, error) {
	d := &directory{signers: slices.Clone(signers)}
	keys := []map[string]string{}
	for i, s := range signers {
		x, err := s.public()
		if err == nil && s.Agent != "" {
			err = d.publishAt(s)
		}
		if err != nil {
			return nil, fmt.Errorf("signer %d: %w", i+1, err)
		}
		keys = append(keys, map[string]string{
			"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig",
			"kid": thumbprint(x), "x": base64.RawURLEncoding.EncodeToString(x),
		})
	}
	d.body, _ = json.Marshal(map[string]any{"keys": keys}) // of strings, which never fails
	return d, nil
}

type directory struct {
	signers []*Signer
	names   []string // authorities that it is signed for
	body    []byte
}

// publishAt adds the host of the Agent of s to the names.
func (d *directory) publishAt(s *Signer) error {
	if err := s.misuse(); err != nil {
		return err
	}
	o, err := fetch.OriginOf(agentURL(s.Agent))
	if err != nil {
		return fmt.Errorf("sign: Signer.Agent: %w", err)
	}
	d.names = append(d.names, o.HostField())
	return nil
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
		if !slices.Contains(d.names, asked.authority) {
			break
		}
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
	// Without the digest it would vouch for any keys, and without the request's authority for any mirror.
	authority := httpsfv.NewItem("@authority")
	authority.Params.Add("req", true)
	return s.attach(answer, label, httpsfv.InnerList{
		Items:  []httpsfv.Item{authority, httpsfv.NewItem("content-digest")},
		Params: parametersOf(now, directoryLifetime, keyID, "", directoryTag),
	})
}

// KeySetURLs returns where receivers of each revision look for the keys of an agent. To revision 00 it is an
// origin, whose directory is at DirectoryPath; revision00 is "" for any other URL. To revision 01 it is the
// URL of the key set itself.
func KeySetURLs(agent string) (revision00, revision01 string, err error) {
	u := agentURL(agent)
	if u == nil {
		return "", "", fmt.Errorf("sign: the agent %q is no https URL", agent)
	}
	revision01 = u.String()
	if (u.Path == "" || u.Path == "/") && u.RawQuery == "" {
		u.Path = DirectoryPath
		revision00 = u.String()
	}
	return revision00, revision01, nil
}

// ReadKeys returns the Ed25519 and RSA keys of a directory by their thumbprints, which are their key IDs whatever the
// directory says. Keys of other types are left out (RFC 7517 §5), and so are the test keys of RFC 9421, keys whose use
// or alg is for something else, and those whose nbf is to come or whose exp has passed.
//
// The error says what is wrong with the directory: each key that is left out though its type is known, each kid that is
// not the thumbprint of its key, or that it is no key set at all. The other keys are returned beside it.
func ReadKeys(body []byte) (map[string]crypto.PublicKey, error) {
	keys, err := readKeys(body)
	for id, section := range testKeys {
		if keys[id] != nil {
			delete(keys, id)
			err = errors.Join(err, fmt.Errorf("sign: the directory lists %s, a test key whose private half "+
				"RFC 9421 §%s publishes: it is left out", id, section))
		}
	}
	return keys, err
}

// readKeys is ReadKeys with the test keys of RFC 9421.
func readKeys(body []byte) (map[string]crypto.PublicKey, error) {
	var set map[string]json.RawMessage // a struct would take "Keys", too
	var list []json.RawMessage
	if len(body) > maxDirectory {
		return nil, fmt.Errorf("sign: a directory of more than %d bytes", maxDirectory)
	} else if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("sign: the directory is no JSON Web Key Set: %w", err)
	} else if json.Unmarshal(set["keys"], &list) != nil || list == nil {
		return nil, errors.New(`sign: the directory is no JSON Web Key Set: it has no list of "keys" (RFC 7517 §5)`)
	}
	keys := make(map[string]crypto.PublicKey)
	var problems []error
	for i, raw := range list {
		var k members
		err := json.Unmarshal(raw, &k)
		id, key, wrong := k.key()
		if key != nil {
			wrong = cmp.Or(wrong, k.fit(key, time.Now()))
		}
		if err = cmp.Or(err, wrong); err == nil && key != nil {
			keys[id] = key
			if kid := k.text("kid"); kid != id {
				err = fmt.Errorf("its kid is %q, but its thumbprint is %q", kid, id)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("sign: key %d of the directory: %w", i+1, err))
		}
	}
	return keys, errors.Join(problems...)
}

// members are those of a key that is read (RFC 7517 §4). They are decoded one by one, and only
// where they matter: a directory may list keys of a kind that is not known here.
type members map[string]json.RawMessage

func (m members) text(name string) (s string) {
	json.Unmarshal(m[name], &s)
	return s
}

// key returns a key and its thumbprint; nil for a type that is not known here.
func (m members) key() (id string, key crypto.PublicKey, err error) {
	switch {
	case m.text("kty") == "OKP" && m.text("crv") == "Ed25519":
		x, err := base64.RawURLEncoding.DecodeString(m.text("x"))
		if err != nil || len(x) != ed25519.PublicKeySize {
			return "", nil, errors.New("its x is no Ed25519 key")
		}
		id, key = thumbprint(x), ed25519.PublicKey(x)
	case m.text("kty") == "RSA":
		n, err := base64.RawURLEncoding.DecodeString(m.text("n"))
		e, err2 := base64.RawURLEncoding.DecodeString(m.text("e"))
		modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
		// Shorter keys can be broken, longer ones keep the verifier busy. To the power of 1, a text signs itself.
		bits := modulus.BitLen()
		if err != nil || err2 != nil || bits < 2048 || bits > 8192 || len(e) > 4 ||
			exponent.Bit(0) == 0 || exponent.BitLen() < 2 {
			return "", nil, errors.New("its n and e are no RSA key of 2048 to 8192 bits")
		}
		text := base64.RawURLEncoding.EncodeToString // of the key, whose text in the directory may have zeros in front
		sum := sha256.Sum256([]byte(`{"e":"` + text(exponent.Bytes()) + `","kty":"RSA","n":"` + text(modulus.Bytes()) + `"}`))
		id, key = text(sum[:]), &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}
	}
	return id, key, nil
}

// fit returns why a key is not for signatures, or not for those of now (RFC 7517 §4). nbf and exp are in
// seconds; what would be beyond the year 5000 is in milliseconds, as some directories have it.
func (m members) fit(key crypto.PublicKey, now time.Time) error {
	algs := []string{"EdDSA", "Ed25519", "ed25519"} // of RFC 8037, RFC 9864, RFC 9421
	if _, ok := key.(*rsa.PublicKey); ok {
		algs = []string{"PS512", "rsa-pss-sha512"}
	}
	if m["use"] != nil && m.text("use") != "sig" {
		return fmt.Errorf("its use is %s, not sig", m["use"])
	}
	if m["alg"] != nil && !slices.Contains(algs, m.text("alg")) {
		return fmt.Errorf("its alg is %s, not %s", m["alg"], algs[0])
	}
	for name, holds := range map[string]func(time.Time) bool{"nbf": now.Before, "exp": now.After} {
		if m[name] == nil {
			continue
		}
		var seconds float64
		if json.Unmarshal(m[name], &seconds) != nil {
			return fmt.Errorf("its %s is no number", name)
		}
		if seconds > 1e11 {
			seconds /= 1000
		}
		if t := time.Unix(int64(seconds), 0); holds(t) {
			return fmt.Errorf("its %s is %s", name, t.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// VerifyDirectory checks that each key of a directory that was read from u has signed it for that host. Keys that
// cannot be read do not count. Signatures of a directory are optional: without them the error wraps ErrUnverified.
func VerifyDirectory(u *url.URL, h http.Header, body []byte) error {
	keys, err := readKeys(body)
	if err != nil && len(keys) == 0 {
		return err
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	asked := &message{method: http.MethodGet, scheme: u.Scheme, authority: o.HostField(), target: u.RequestURI()}
	if err = checkSignatures(&message{header: h, request: asked}, keys); err == nil {
		err = compareDigest(h.Values("Content-Digest"), body)
	}
	if err != nil && !errors.Is(err, ErrUnverified) {
		err = fmt.Errorf("%w of the directory: %w", ErrInvalid, err)
	}
	return err
}

// checkSignatures checks the signatures of a directory. Each key has to have made one.
func checkSignatures(m *message, keys map[string]crypto.PublicKey) error {
	if size(m.header.Values("Signature-Input"), m.header.Values("Signature")) > maxDirectory {
		return fmt.Errorf("its fields have more than %d bytes", maxDirectory)
	}
	inputs, err := tagged(m.header.Values("Signature-Input"), directoryTag)
	if err != nil {
		return err
	}
	unsigned := maps.Clone(keys)
	for label, input := range inputs {
		g, err := open(m, label, input)
		if err != nil {
			return err
		}
		if !covers(input.Items, "@authority") || !coversWhole(input.Items, "content-digest") {
			return errors.New("it must cover @authority and content-digest")
		}
		if keys[g.KeyID] == nil {
			return fmt.Errorf("its key %q is not in the directory", g.KeyID)
		}
		if err := g.check(keys[g.KeyID]); err != nil {
			return err
		}
		delete(unsigned, g.KeyID)
	}
	if len(unsigned) > 0 {
		return fmt.Errorf("%w: %d keys have not signed the directory", ErrUnverified, len(unsigned))
	}
	return nil
}
