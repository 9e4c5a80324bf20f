package sign

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	maxDirectory      = 64 << 10 // bytes of a directory that is read, and of its signature fields
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
	keys := []jwk{}
	for i, s := range signers {
		x, err := s.public()
		if err == nil && s.Agent != "" {
			err = d.publishAt(s)
		}
		if err != nil {
			return nil, fmt.Errorf("signer %d: %w", i+1, err)
		}
		text := base64.RawURLEncoding.EncodeToString(x)
		keys = append(keys, jwk{Alg: "EdDSA", Crv: "Ed25519", Kid: thumbprint(x), Kty: "OKP", Use: "sig", X: text})
	}
	d.body, _ = json.Marshal(map[string][]jwk{"keys": keys}) // of strings, which never fails
	return d, nil
}

type directory struct {
	signers []*Signer
	hosts   []string // that it is signed for
	body    []byte
}

// publishAt adds the host of the Agent of s.
func (d *directory) publishAt(s *Signer) error {
	u := agentURL(s.Agent)
	if u == nil {
		return s.wrongAgent()
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		return fmt.Errorf("sign: Signer.Agent: %w", err)
	}
	d.hosts = append(d.hosts, o.HostField())
	return nil
}

func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, err := requestOf(r)
	if err != nil {
		http.Error(w, "no such host", http.StatusBadRequest)
		return
	}
	h, sum := w.Header(), sha256.Sum256(d.body)
	h.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	if slices.Contains(d.hosts, asked.derived["@authority"]) {
		if err := d.sign(&message{header: h, request: asked}, time.Now()); err != nil {
			http.Error(w, "the directory cannot be signed", http.StatusInternalServerError)
			return
		}
	}
	h.Set("Content-Type", DirectoryType)
	h.Set("Cache-Control", "max-age="+strconv.Itoa(int(directoryLifetime/time.Second)))
	h.Set("Content-Length", strconv.Itoa(len(d.body)))
	w.Write(d.body)
}

// sign adds the signatures to an answer: the keys are published by the host that was asked.
func (d *directory) sign(answer *message, now time.Time) error {
	// Without the digest it would vouch for any keys, and without the request's authority for any mirror.
	authority := httpsfv.NewItem("@authority")
	authority.Params.Add("req", true)
	for i, s := range d.signers {
		keyID, err := s.KeyID()
		if err == nil {
			err = s.attach(answer, "key"+strconv.Itoa(i+1), httpsfv.InnerList{
				Items:  []httpsfv.Item{authority, httpsfv.NewItem("content-digest")},
				Params: parametersOf(now, directoryLifetime, keyID, "", directoryTag),
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// ReadKeys returns the Ed25519 keys of a directory by their thumbprints, which are their key IDs whatever the
// directory says. Keys of other types are left out (RFC 7517 §5), and so are the test key of RFC 9421, keys whose use
// or alg is for something else, and those whose nbf is to come or whose exp has passed.
//
// The error says what is wrong with the directory: each key that is left out though its type is known, each kid that is
// not the thumbprint of its key, or that it is no key set at all. The other keys are returned beside it.
func ReadKeys(body []byte) (map[string]ed25519.PublicKey, error) {
	var set struct{ Keys []json.RawMessage }
	if len(body) > maxDirectory {
		return nil, fmt.Errorf("sign: a directory of more than %d bytes", maxDirectory)
	} else if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("sign: the directory is no JSON Web Key Set: %w", err)
	} else if set.Keys == nil {
		return nil, errors.New(`sign: the directory is no JSON Web Key Set: it has no list of "keys" (RFC 7517 §5)`)
	}
	keys := map[string]ed25519.PublicKey{}
	var problems []error
	for i, raw := range set.Keys {
		var k jwk
		err := json.Unmarshal(raw, &k) // one by one: one odd key voids no other
		if err == nil && k.Kty == "OKP" && k.Crv == "Ed25519" {
			var x ed25519.PublicKey
			if x, err = k.key(time.Now()); err == nil {
				id := thumbprint(x)
				if keys[id] = x; k.Kid != id {
					err = fmt.Errorf("its kid is %q, but its thumbprint is %q", k.Kid, id)
				}
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("sign: key %d of the directory: %w", i+1, err))
		}
	}
	return keys, errors.Join(problems...)
}

// jwk is a key of a directory (RFC 7517 §4, RFC 8037 §2).
type jwk struct {
	Alg string   `json:"alg"`
	Crv string   `json:"crv"`
	Exp *float64 `json:"exp,omitempty"`
	Kid string   `json:"kid"`
	Kty string   `json:"kty"`
	Nbf *float64 `json:"nbf,omitempty"`
	Use string   `json:"use"`
	X   string   `json:"x"`
}

// key returns the key, or why it is not for signatures of now.
func (k *jwk) key(now time.Time) (ed25519.PublicKey, error) {
	algs := []string{"EdDSA", "Ed25519", "ed25519"} // of RFC 8037, RFC 9864, RFC 9421
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	switch {
	case err != nil || len(x) != ed25519.PublicKeySize:
		return nil, errors.New("its x is no Ed25519 key")
	case thumbprint(x) == testKey:
		return nil, fmt.Errorf("it is %s, a test key whose private half RFC 9421 §B.1.4 publishes", testKey)
	case k.Use != "" && k.Use != "sig":
		return nil, fmt.Errorf("its use is %s, not sig", k.Use)
	case k.Alg != "" && !slices.Contains(algs, k.Alg):
		return nil, fmt.Errorf("its alg is %s, not %s", k.Alg, algs[0])
	case k.Nbf != nil && instant(*k.Nbf).After(now):
		return nil, fmt.Errorf("its nbf is %s", instant(*k.Nbf).Format(time.RFC3339))
	case k.Exp != nil && !instant(*k.Exp).After(now):
		return nil, fmt.Errorf("its exp is %s", instant(*k.Exp).Format(time.RFC3339))
	}
	return x, nil
}

// instant reads nbf and exp, which are in seconds. What would be beyond the year 5138 is in milliseconds, as some
// directories have it, and no later than that.
func instant(seconds float64) time.Time {
	if seconds > 1e11 {
		seconds /= 1000
	}
	return time.Unix(int64(min(seconds, 1e11)), 0).UTC()
}

// VerifyDirectory checks that each key of a directory that was read from u has signed it for that host. Keys that
// cannot be read do not count. Signatures of a directory are optional: without them the error wraps ErrUnverified.
func VerifyDirectory(u *url.URL, h http.Header, body []byte) error {
	keys, err := ReadKeys(body)
	if err != nil && len(keys) == 0 {
		return err
	}
	err = checkSignatures(u, h, body, keys)
	if err != nil && !errors.Is(err, ErrUnverified) {
		err = fmt.Errorf("%w of the directory: %w", ErrInvalid, err)
	}
	return err
}

// checkSignatures checks the signatures of a directory. Each key has to have made one.
func checkSignatures(u *url.URL, h http.Header, body []byte, keys map[string]ed25519.PublicKey) error {
	asked, err := requestOf(&http.Request{URL: u})
	if err != nil {
		return err
	}
	if size(h.Values("Signature-Input"), h.Values("Signature")) > maxDirectory {
		return fmt.Errorf("its fields have more than %d bytes", maxDirectory)
	}
	inputs, err := tagged(h.Values("Signature-Input"), directoryTag)
	if err != nil {
		return err
	}
	unsigned := maps.Clone(keys)
	for label, input := range inputs {
		g, err := open(&message{header: h, request: asked}, label, input)
		switch {
		case err != nil:
			return err
		case covered(input.Items, "@authority") == nil:
			return errors.New("it does not cover @authority")
		}
		if err = cmp.Or(g.check(keys[g.KeyID]), compareDigest(h, input.Items, body)); err != nil {
			return err
		}
		delete(unsigned, g.KeyID)
	}
	if len(unsigned) > 0 {
		return fmt.Errorf("%w: %d keys have not signed the directory", ErrUnverified, len(unsigned))
	}
	return nil
}
