package sign_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client/sign"
)

func newKey(tb testing.TB) ed25519.PrivateKey {
	tb.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// verify checks a signature as a receiver does who knows the key of s.
func verify(tb testing.TB, s *sign.Signer, r *http.Request) (sign.Signed, error) {
	tb.Helper()
	own, err := s.KeyID()
	if err != nil {
		tb.Fatal(err)
	}
	return sign.Verify(r, func(agent, id string) (ed25519.PublicKey, error) {
		if id == own {
			return s.Key.Public().(ed25519.PublicKey), nil
		}
		return nil, fmt.Errorf("%s lists no such key", agent)
	})
}

// received returns r as a server would see it.
func received(r *http.Request) *http.Request {
	in := httptest.NewRequest(r.Method, r.URL.RequestURI(), r.Body)
	in.TLS, in.Host, in.Header = new(tls.ConnectionState), r.URL.Host, r.Header.Clone()
	if r.Host != "" {
		in.Host = r.Host
	}
	return in
}

func TestWhatASignerCannotDoIsAnError(t *testing.T) {
	key := newKey(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU") // RFC 9421 §B.1.4
	if err != nil {
		t.Fatal(err)
	}
	const agent = "https://bot.example"
	for _, c := range []struct {
		name   string
		signer *sign.Signer
		link   string
		want   string // in the error
	}{
		{"no key", &sign.Signer{Agent: agent}, "https://a.example/", "Signer.Key is nil"},
		{"an empty key", &sign.Signer{Key: ed25519.PrivateKey{}, Agent: agent}, "https://a.example/", "its 0 bytes"},
		{"a key cut short", &sign.Signer{Key: key[:40], Agent: agent}, "https://a.example/", "its 40 bytes"},
		{"a key too long", &sign.Signer{Key: append(key[:64:64], 0), Agent: agent}, "https://a.example/", "Signer.Key"},
		{"zeros for a key", &sign.Signer{Key: make(ed25519.PrivateKey, 64), Agent: agent}, "https://a.example/", "its 64 bytes"},
		{"no Ed25519", &sign.Signer{Key: curve, Agent: agent}, "https://a.example/", "must be an ed25519"},
		{"the published key", &sign.Signer{Key: ed25519.NewKeyFromSeed(seed), Agent: agent}, "https://a.example/", "publishes"},
		{"no agent", &sign.Signer{Key: key}, "https://a.example/", `Signer.Agent is ""`},
		{"agent over http", &sign.Signer{Key: key, Agent: "http://bot.example"}, "https://a.example/", "https URL"},
		{"agent with a password", &sign.Signer{Key: key, Agent: "https://u:p@bot.example"}, "https://a.example/", "without a user"},
		{"agent with a fragment", &sign.Signer{Key: key, Agent: "https://bot.example/#keys"}, "https://a.example/", "fragment"},
		{"agent with a line break", &sign.Signer{Key: key, Agent: "https://bot.example/\n"}, "https://a.example/", "Signer.Agent"},
		{"agent beyond ASCII", &sign.Signer{Key: key, Agent: "https://bøt.example/"}, "https://a.example/", "Signer.Agent"},
		{"no host", &sign.Signer{Key: key, Agent: agent}, "https:///x", "sign: "},
		{"another scheme", &sign.Signer{Key: key, Agent: agent}, "mailto:a@b.example", "sign: "},
		{"a key that fails", &sign.Signer{Key: failing{key}, Agent: agent}, "https://a.example/", "key vault away"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.link)
			if err != nil {
				t.Fatal(err)
			}
			r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Accept": {"text/html"}}}
			err = c.signer.Sign(r)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if r.Header.Get("Signature") != "" {
				t.Error("signed all the same")
			}
			if _, err := sign.Directory(c.signer); strings.HasPrefix(c.want, "Signer.Key") && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Directory: error %v, want %q in it", err, c.want)
			}
			_ = fmt.Sprint(c.signer) // does not panic
		})
	}
}

type failing struct{ ed25519.PrivateKey }

func (failing) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("key vault away")
}

func TestPlainHTTPIsNotSigned(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "http://a.example/", nil)
	r.Header.Set("Signature", "sig9=:AAAA:")
	r.Header.Set("Signature-Input", "sig9=()")
	r.Header.Set("Signature-Agent", `sig9="https://other.example"`)
	err := (&sign.Signer{Key: newKey(t), Agent: "https://bot.example"}).Sign(r)
	if err != nil || len(r.Header) != 0 {
		t.Errorf("got %v, header %v, want none", err, r.Header)
	}
}

// The host that is signed is the one that goes out, as a receiver writes it.
func TestAuthority(t *testing.T) {
	s := &sign.Signer{Key: newKey(t), Agent: "https://bot.example"}
	for _, c := range []struct{ link, host, sees string }{
		{"https://Example.COM/", "", "example.com"},
		{"https://example.com:443/", "", "example.com"},
		{"https://example.com:80/", "", "example.com:80"},
		{"https://example.com/", "", "EXAMPLE.com:443"},
		{"https://example.com:8443/", "", "example.com:8443"},
		{"https://[2001:DB8::1]:443/", "", "[2001:db8::1]"},
		{"https://[2001:db8::1]:8443/", "", "[2001:db8::1]:8443"},
		{"https://münchen.example/", "", "xn--mnchen-3ya.example"},
		{"https://10.0.0.1/", "shop.example", "shop.example"},
	} {
		t.Run(c.link, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodGet, c.link, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			if err := s.Sign(r); err != nil {
				t.Fatal(err)
			}
			in := received(r)
			in.Host = c.sees
			if _, err := verify(t, s, in); err != nil {
				t.Error(err)
			}
			in.Host = "x" + c.sees
			if _, err := verify(t, s, in); !errors.Is(err, sign.ErrInvalid) && !strings.HasPrefix(c.sees, "[") {
				t.Errorf("for another host: got %v, want %v", err, sign.ErrInvalid)
			}
		})
	}
}

func TestASignatureExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sign.Signer{Key: newKey(t), Agent: "https://bot.example"}
		r := httptest.NewRequest(http.MethodGet, "https://a.example/", nil)
		if err := s.Sign(r); err != nil {
			t.Fatal(err)
		}
		first, err := verify(t, s, r)
		if err != nil || len(first.Nonce) < 32 || first.Expires.Sub(first.Created) != time.Minute {
			t.Errorf("got %+v, %v, want a nonce of 32 or more, for a minute", first, err)
		}
		for _, want := range []error{nil, sign.ErrInvalid} { // it holds for ten seconds more
			time.Sleep(35 * time.Second)
			if _, err := verify(t, s, r); !errors.Is(err, want) {
				t.Errorf("after %v: %v, want %v", time.Since(first.Created), err, want)
			}
		}
		if err := s.Sign(r); err != nil {
			t.Fatal(err)
		}
		if again, err := verify(t, s, r); err != nil || again.Nonce == first.Nonce {
			t.Errorf("signed anew: got %+v, %v, want another nonce", again, err)
		}
	})
}

func TestDirectory(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	old, young := &sign.Signer{Key: newKey(t), Agent: srv.URL}, &sign.Signer{Key: newKey(t)}
	d, err := sign.Directory(old, young)
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = d
	u, err := url.Parse(srv.URL + sign.DirectoryPath)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Get(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := sign.VerifyDirectory(u, resp.Header, body); err != nil {
		t.Error(err)
	}
	keys, err := sign.ReadKeys(body)
	if err != nil || len(keys) != 2 {
		t.Errorf("got keys %v, %v, want two", keys, err)
	}
	for _, s := range []*sign.Signer{old, young} {
		id, err := s.KeyID()
		if err != nil || !keys[id].Equal(s.Key.Public()) {
			t.Errorf("key %s: got %v, %v, want %v", id, keys[id], err, s.Key.Public())
		}
	}
	h := resp.Header.Clone() // twice by the same keys
	for _, name := range []string{"Signature", "Signature-Input"} {
		for _, line := range resp.Header.Values(name) {
			h.Add(name, "again-"+line)
		}
	}
	if err := sign.VerifyDirectory(u, h, body); err != nil {
		t.Errorf("signed twice by each key: %v", err)
	}
	h.Set("Signature", "x=:"+strings.Repeat("A", 1<<20)+":")
	if err := sign.VerifyDirectory(u, h, body); !errors.Is(err, sign.ErrInvalid) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a megabyte of signatures: got %v, want %v, bytes", err, sign.ErrInvalid)
	}
	resp.Header.Del("Signature")
	resp.Header.Del("Signature-Input")
	if err := sign.VerifyDirectory(u, resp.Header, body); !errors.Is(err, sign.ErrUnverified) {
		t.Errorf("without signatures: got %v, want %v", err, sign.ErrUnverified)
	}
	for want, s := range map[string]*sign.Signer{
		"Signer.Key is nil": {},
		"its 0 bytes":       {Key: ed25519.PrivateKey{}},
		"Signer.Agent":      {Key: newKey(t), Agent: "https://"},
	} {
		if _, err := sign.Directory(old, s); err == nil || !strings.Contains(err.Error(), "signer 2") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want signer 2 and %q", err, want)
		}
	}
}

// A directory vouches for the hosts of its Agents: a mirror, or a stranger who names another
// host, gets no signature for it.
func TestADirectorySignsForItsOwnNamesOnly(t *testing.T) {
	key := newKey(t)
	d, err := sign.Directory(&sign.Signer{Key: key, Agent: "https://Bot.example"},
		&sign.Signer{Key: key, Agent: "https://keys.example:8443/keys.json"}, &sign.Signer{Key: newKey(t)})
	if err != nil {
		t.Fatal(err)
	}
	for host, own := range map[string]bool{
		"bot.example": true, "BOT.example": true, "bot.example:443": true, "keys.example:8443": true,
		"evil.example": false, "keys.example": false, "bot.example:8443": false, "x.bot.example": false, "127.0.0.1": false,
	} {
		// At "/" too, where an Agent of revision 01 is.
		r := httptest.NewRequest(http.MethodGet, "https://"+host+map[bool]string{true: "/", false: sign.DirectoryPath}[len(host)%2 == 0], nil)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		err := sign.VerifyDirectory(r.URL, w.Header(), w.Body.Bytes())
		signed := len(w.Header()["Signature"])+len(w.Header()["Signature-Input"]) > 0
		if w.Code != http.StatusOK || signed != own || own && err != nil || !own && !errors.Is(err, sign.ErrUnverified) {
			t.Errorf("%s: status %d, signed %v, %v, want 200, signed %v", host, w.Code, signed, err, own)
		}
	}
}

func TestADirectoryHoldsForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := sign.Directory(&sign.Signer{Key: newKey(t), Agent: "https://bot.example"})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "https://bot.example"+sign.DirectoryPath, nil)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		for after, want := range []error{nil, sign.ErrInvalid} {
			time.Sleep(23*time.Hour + time.Duration(after)*time.Hour)
			if err := sign.VerifyDirectory(r.URL, w.Header(), w.Body.Bytes()); !errors.Is(err, want) {
				t.Errorf("after %d days: %v, want %v", after, err, want)
			}
		}
	})
}

func TestWhereTheKeysAre(t *testing.T) {
	for _, c := range []struct{ agent, revision00, revision01 string }{
		{"https://bot.example", "https://bot.example" + sign.DirectoryPath, "https://bot.example"},
		{"https://bot.example/", "https://bot.example" + sign.DirectoryPath, "https://bot.example/"},
		{"https://bot.example:8443/", "https://bot.example:8443" + sign.DirectoryPath, "https://bot.example:8443/"},
		{"https://bot.example/keys", "", "https://bot.example/keys"},
		{"https://bot.example/?a", "", "https://bot.example/?a"},
		{"http://bot.example", "", ""},
		{"bot.example", "", ""},
		{"https://", "", ""},
		{"https://:443", "", ""},
	} {
		r00, r01, err := sign.KeySetURLs(c.agent)
		if r00 != c.revision00 || r01 != c.revision01 || (err == nil) != (c.revision01 != "") {
			t.Errorf("%s: %q, %q, %v, want %q, %q", c.agent, r00, r01, err, c.revision00, c.revision01)
		}
	}
}

func TestKeySetsFromStrangers(t *testing.T) {
	good := jwkOf(newKey(t))
	for _, c := range []struct {
		body string
		keys int
		want string // in the error; "": none
	}{
		{`{"keys":[]}`, 0, ""},
		{``, 0, "no JSON Web Key Set"},
		{`[]`, 0, "no JSON Web Key Set"},
		{`{}`, 0, "no JSON Web Key Set"},
		{`null`, 0, "no JSON Web Key Set"},
		{`{"keys":null}`, 0, "no JSON Web Key Set"},
		{`{"keys":{}}`, 0, "no JSON Web Key Set"},
		{`{"keys":[{"kty":"EC","crv":"P-256"}]}`, 0, ""},
		{`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]}`, 0, "key 1"},
		{`{"keys":[` + strings.Repeat(" ", 1<<16) + `]}`, 0, "bytes"},

		// One odd key voids nothing (RFC 7517 §5).
		{`{"keys":[{"kty":"oct"},{"kty":"RSA"},` + good + `]}`, 1, ""},
		{`{"keys":[{"kty":["OKP"]},` + good + `]}`, 1, "key 1"},
		{`{"keys":["a key",` + good + `]}`, 1, "key 1"},
		{`{"keys":[` + good + `,null,7,[]]}`, 1, "key 3"},
		{`{"keys":[{"kty":"OKP","crv":"Ed25519","x":5},` + good + `]}`, 1, "key 1"},

		// Keys for something else, or for another time.
		{`{"keys":[{"use":"sig","alg":"EdDSA","nbf":1,"exp":99999999999,` + good[1:] + `]}`, 1, ""},
		{`{"keys":[{"alg":"Ed25519","nbf":1743465600000,` + good[1:] + `]}`, 1, ""}, // in milliseconds
		{`{"keys":[{"use":"enc",` + good[1:] + `]}`, 0, "its use is"},
		{`{"keys":[{"use":7,` + good[1:] + `]}`, 0, "key 1"},
		{`{"keys":[{"alg":"ES256",` + good[1:] + `]}`, 0, "its alg is"},
		{`{"keys":[{"exp":1735689600,` + good[1:] + `]}`, 0, "its exp is 2025-01-01T00:00:00Z"},
		{`{"keys":[{"exp":"never",` + good[1:] + `]}`, 0, "key 1"},
		{`{"keys":[{"nbf":99999999999,` + good[1:] + `]}`, 0, "its nbf is 5138"},
		{`{"keys":[{"nbf":1e300,` + good[1:] + `]}`, 0, "its nbf is 5138"},
	} {
		keys, err := sign.ReadKeys([]byte(c.body))
		if len(keys) != c.keys || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %d keys, %v, want %d and %q", c.body, len(keys), err, c.keys, c.want)
		}
	}
}

func jwkOf(key ed25519.PrivateKey) string {
	id, err := (&sign.Signer{Key: key}).KeyID()
	if err != nil {
		panic(err)
	}
	x := base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
	return `{"kty":"OKP","crv":"Ed25519","kid":"` + id + `","x":"` + x + `"}`
}

// Whatever a stranger sends, a Verifier does not panic, and verifies only what the Signer made.
func FuzzVerify(f *testing.F) {
	s := &sign.Signer{Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Agent: "https://bot.example"}
	r := httptest.NewRequest(http.MethodGet, "https://a.example/", nil)
	if err := s.Sign(r); err != nil {
		f.Fatal(err)
	}
	f.Add(r.Header.Get("Signature-Input"), r.Header.Get("Signature"), r.Header.Get("Signature-Agent"))
	f.Add(`sig1=("content-digest";req "x";key="y");tag="web-bot-auth"`, "sig1=::", `"https://a.example"`)
	f.Fuzz(func(t *testing.T, input, signature, agent string) {
		r := httptest.NewRequest(http.MethodGet, "https://b.example/", nil) // not the one that is signed
		r.Header.Set("Signature-Input", input)
		r.Header.Set("Signature", signature)
		r.Header.Set("Signature-Agent", agent)
		r.Header.Set("Content-Digest", agent)
		if _, err := verify(t, s, r); err == nil {
			t.Errorf("verified %q, %q, %q, want an error", input, signature, agent)
		}
	})
}
