package sign

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
)

// fact is a line of webbotauth.jsonl.
type fact struct {
	ID, Kind, Key, Label, Note, Name, Change, Outcome, Expect string

	JWK      json.RawMessage
	KeyID    string
	Seed     string `json:"private_seed_b64url"`
	X        string `json:"jwk_x"`
	Computed string `json:"kid_computed"`
	Printed  string `json:"kid_printed"`

	TargetURL string `json:"target_url"`
	Input     string `json:"signature_input"`
	Base      string `json:"signature_base"`
	Signature string
	Agent     string `json:"signature_agent"`
	Body      string
	Digest    string `json:"content_digest"`
}

func facts(t *testing.T) map[string]fact {
	t.Helper()
	all := make(map[string]fact)
	for _, f := range vectors.Read[fact](t, "vectors/webbotauth.jsonl", "source", "thumbprint_input", "equal", "components", "verifies",
		"deterministic_reproduced", "content_digest_matches_draft", "method", "same_base_as", "from", "case") {
		all[f.ID] = f
	}
	if len(all) < 30 {
		t.Fatalf("got %d facts, want 30 or more", len(all))
	}
	return all
}

// request is the request of a fact as a server receives it.
func (f fact) request() *http.Request {
	r := httptest.NewRequest(http.MethodGet, f.TargetURL, nil)
	if f.Agent != "" {
		r.Header.Set("Signature-Agent", f.Agent)
	}
	r.Header.Set("Signature-Input", f.Input)
	r.Header.Set("Signature", f.Signature)
	return r
}

func listOf(t *testing.T, field, label string) httpsfv.InnerList {
	t.Helper()
	d, err := httpsfv.UnmarshalDictionary([]string{field})
	if err != nil {
		t.Fatal(err)
	}
	member, _ := d.Get(label)
	return member.(httpsfv.InnerList)
}

// signerOf has the published key, which Sign refuses; sign does not.
func signerOf(t *testing.T, f fact) *Signer {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString(f.Seed)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{Key: ed25519.NewKeyFromSeed(seed), Agent: "https://signature-agent.test"}
}

// lookUp finds one key.
func lookUp(keyID string, x ed25519.PublicKey) func(agent, id string) (ed25519.PublicKey, error) {
	return func(_, id string) (ed25519.PublicKey, error) {
		if id == keyID {
			return x, nil
		}
		return nil, errors.New("no such key")
	}
}

// at runs f at a time of the wall clock.
func at(t *testing.T, seconds int64, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Unix(seconds, 0)))
		f(t)
	})
}

const published = 1735689600 // when the vectors were created

func TestVectors(t *testing.T) {
	all := facts(t)
	for _, f := range all {
		check := map[string]func(*testing.T, fact, map[string]fact){
			"vector": checkVector, "derived-vector": checkVector, "directory-response": checkPublished,
		}[f.Kind]
		if check != nil {
			t.Run(f.ID, func(t *testing.T) { at(t, published, func(t *testing.T) { check(t, f, all) }) })
		}
	}
}

// checkVector builds the signature base of a vector from its request, verifies the signature,
// and where a Signer would make the same, lets it.
func checkVector(t *testing.T, f fact, all map[string]fact) {
	r := f.request()
	m, err := requestOf(r)
	if err != nil {
		t.Fatal(err)
	}
	input := listOf(t, f.Input, f.Label)
	text, err := base(m, input)
	if err != nil || text != f.Base {
		t.Errorf("base\n%s\n%v\nwant\n%s", text, err, f.Base)
	}
	if f.Key == "WBK-2" {
		checkRSA(t, f, all, text)
		return
	}
	s := signerOf(t, all["WBK-1"])
	keyID, _ := s.KeyID()
	x, _ := s.public()
	if keyID != all["WBK-1"].KeyID {
		t.Errorf("thumbprint %s, want %s", keyID, all["WBK-1"].KeyID)
	}
	if g, err := open(m, f.Label, input); err != nil || g.check(x) != nil {
		t.Errorf("got %v, %v, want no error", err, g.check(x))
	}
	_, err = Verify(r, lookUp(keyID, x))
	if f.Agent == "" && !errors.Is(err, ErrUnverified) || f.Agent != "" && err != nil {
		t.Errorf("Verify: got %v, want %v without an agent, else none", err, ErrUnverified)
	}
	if f.Kind != "derived-vector" || !strings.Contains(f.Input, "@authority") {
		return
	}
	agent, err := httpsfv.UnmarshalDictionary([]string{f.Agent})
	if err != nil {
		t.Fatal(err)
	}
	member, _ := agent.Get(f.Label)
	s.Agent = member.(httpsfv.Item).Value.(string)
	out, err := http.NewRequest(http.MethodGet, f.TargetURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	created, _ := input.Params.Get("created")
	if err := s.sign(out, keyID, time.Unix(created.(int64), 0), ""); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Signature": f.Signature, "Signature-Input": f.Input, "Signature-Agent": f.Agent} {
		if got := out.Header.Get(name); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
}

// checkRSA checks a signature of a kind that Verify does not know: the base that it is over is ours.
func checkRSA(t *testing.T, f fact, all map[string]fact, text string) {
	_, value, _ := strings.Cut(f.Signature, "=:")
	signature, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
	if !holdsRSA(t, all["WBK-2"], text, signature) {
		t.Errorf("not of this base:\n%s", text)
	}
	if _, err := Verify(f.request(), lookUp("", nil)); !errors.Is(err, ErrUnverified) {
		t.Errorf("Verify: %v", err)
	}
}

func holdsRSA(t *testing.T, key fact, text string, signature []byte) bool {
	t.Helper()
	var jwk struct{ N string }
	if err := json.Unmarshal(key.JWK, &jwk); err != nil {
		t.Fatal(err)
	}
	n, err := base64.RawURLEncoding.DecodeString(jwk.N)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512([]byte(text))
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: 65537}
	return rsa.VerifyPSS(public, crypto.SHA512, sum[:], signature, &rsa.PSSOptions{SaltLength: 64}) == nil
}

// The requests of RFC 9421 §B.2 that cover what is known here. It prints their signatures, with keys of several kinds.
func TestTheRequestsOfTheRFC(t *testing.T) {
	all := facts(t)
	x, err := signerOf(t, all["WBK-1"]).public()
	if err != nil {
		t.Fatal(err)
	}
	ofRSA := func(text string, signature []byte) bool { return holdsRSA(t, all["WBK-2"], text, signature) }
	ofEd25519 := func(text string, signature []byte) bool {
		return (&given{text: text, signature: signature}).check(x) == nil
	}
	ofHMAC := func(text string, signature []byte) bool {
		secret, _ := base64.StdEncoding.DecodeString("uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==")
		sum := hmac.New(sha256.New, secret)
		sum.Write([]byte(text))
		return hmac.Equal(sum.Sum(nil), signature)
	}
	r := httptest.NewRequest(http.MethodPost, "https://example.com/foo?param=Value&Pet=dog", nil)
	for name, value := range map[string]string{
		"Date": "Tue, 20 Apr 2021 02:07:55 GMT", "Content-Type": "application/json", "Content-Length": "18",
		"Content-Digest": "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
	} {
		r.Header.Set(name, value)
	}
	m, err := requestOf(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		section, input, signature string
		holds                     func(text string, signature []byte) bool
	}{
		{"B.2.1", `();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`,
			"d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==", ofRSA},
		{"B.2.3", `("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"`,
			"bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA==", ofRSA},
		{"B.2.5", `("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
			"pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=", ofHMAC},
		{"B.2.6", `("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			"wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==", ofEd25519},
	} {
		text, err := base(m, listOf(t, "sig="+c.input, "sig"))
		signature, _ := base64.StdEncoding.DecodeString(c.signature)
		if err != nil || !c.holds(text, signature) {
			t.Errorf("§%s: %v, not of this base:\n%s", c.section, err, text)
		}
	}
}

func checkPublished(t *testing.T, f fact, all map[string]fact) {
	s := signerOf(t, all["WBK-1"])
	x, _ := s.public()
	h := http.Header{"Content-Digest": {f.Digest}, "Signature": {f.Signature}, "Signature-Input": {f.Input}}
	for host, own := range map[string]bool{"signature-agent.test": true, "other.test": false} {
		u := &url.URL{Scheme: "https", Host: host, Path: DirectoryPath}
		if err := checkSignatures(u, h, []byte(f.Body), map[string]ed25519.PublicKey{all["WBK-1"].KeyID: x}); (err == nil) != own {
			t.Errorf("for %s: got %v, want none: %v", host, err, own)
		}
	}
	mirrored := http.Header{"Content-Digest": {f.Digest}}
	input := httpsfv.InnerList{
		Items:  []httpsfv.Item{httpsfv.NewItem("content-digest")},
		Params: parametersOf(time.Now(), lifetime, all["WBK-1"].KeyID, "", directoryTag),
	}
	if err := s.attach(&message{header: mirrored}, "a", input); err != nil {
		t.Fatal(err)
	}
	u := &url.URL{Scheme: "https", Host: "signature-agent.test"}
	if err := checkSignatures(u, mirrored, []byte(f.Body), map[string]ed25519.PublicKey{all["WBK-1"].KeyID: x}); err == nil {
		t.Error("signed for any host: no error")
	}
	d, err := Directory(s)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://signature-agent.test"+DirectoryPath, nil))
	if w.Header().Get("Content-Type") != DirectoryType {
		t.Errorf("type %q, want %s", w.Header().Get("Content-Type"), DirectoryType)
	}
	var got, want any
	own := strings.Replace(w.Body.String(), `"alg":"EdDSA",`, "", 1) // which the draft's example has not
	if json.Unmarshal([]byte(own), &got) != nil || json.Unmarshal([]byte(f.Body), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("directory %s, want %s", w.Body, f.Body)
	}
}

func TestADirectoryWhoseKidIsNotTheThumbprintIsTold(t *testing.T) {
	f := facts(t)["WBK-3"]
	x, err := base64.RawURLEncoding.DecodeString(f.X)
	if got := thumbprint(x); err != nil || got != f.Computed || got == f.Printed {
		t.Errorf("thumbprint %s (%v), want %s", got, err, f.Computed)
	}
	own := base64.RawURLEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))
	keys, err := ReadKeys([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"` + f.Printed + `","x":"` + own + `"}]}`))
	if err == nil || !strings.Contains(err.Error(), f.Printed) || len(keys) != 1 {
		t.Errorf("keys %v, error %v", keys, err)
	}
}

// The key of RFC 9421 §B.1.4 is left out of a directory, and named.
func TestTheTestKeyOfTheRFCIsLeftOut(t *testing.T) {
	keys, err := ReadKeys([]byte(`{"keys":[` + string(facts(t)["WBK-1"].JWK) + `]}`))
	if len(keys) != 0 || err == nil || !strings.Contains(err.Error(), testKey) {
		t.Errorf("keys %v, error %v", keys, err)
	}
}

// changes makes the negatives of webbotauth.jsonl, and others, of a request that a Signer has
// signed: by replacement in the fields, signed anew where the change is the signer's.
var changes = []struct {
	name    string
	before  func(*http.Request) // what is signed
	change  func(*http.Request)
	cover   func(*httpsfv.InnerList)
	outcome error // nil: verified
}{
	{name: "none"},
	{name: "target-not-covered", cover: func(l *httpsfv.InnerList) { l.Items = l.Items[1:] }, outcome: ErrInvalid},
	{name: "agent-not-covered", cover: func(l *httpsfv.InnerList) { l.Items = l.Items[:1] }, outcome: ErrInvalid},
	{name: "missing-keyid", cover: func(l *httpsfv.InnerList) { l.Params.Del("keyid") }, outcome: ErrInvalid},
	{name: "missing-created", cover: func(l *httpsfv.InnerList) { l.Params.Del("created") }, outcome: ErrInvalid},
	{name: "missing-expires", cover: func(l *httpsfv.InnerList) { l.Params.Del("expires") }, outcome: ErrInvalid},
	{name: "missing-tag", cover: func(l *httpsfv.InnerList) { l.Params.Del("tag") }, outcome: ErrUnverified},
	{name: "other-tag", cover: func(l *httpsfv.InnerList) { l.Params.Add("tag", "x") }, outcome: ErrUnverified},
	{name: "unknown-key", cover: func(l *httpsfv.InnerList) { l.Params.Add("keyid", "x") }, outcome: ErrUnverified},
	{name: "in-the-future", cover: func(l *httpsfv.InnerList) { l.Params.Add("created", int64(published+30)) }, outcome: ErrInvalid},
	{name: "expired", cover: func(l *httpsfv.InnerList) { l.Params.Add("expires", int64(published-10)) }, outcome: ErrInvalid},
	{name: "within-the-skew", cover: func(l *httpsfv.InnerList) { l.Params.Add("created", int64(published+9)) }},
	{name: "expires-before-created", cover: func(l *httpsfv.InnerList) {
		l.Params.Add("created", int64(published+5))
		l.Params.Add("expires", int64(published+4))
	}, outcome: ErrInvalid},
	{name: "hmac", cover: func(l *httpsfv.InnerList) { l.Params.Add("alg", "hmac-sha256") }, outcome: ErrInvalid},
	{name: "alg-of-the-key", cover: func(l *httpsfv.InnerList) { l.Params.Add("alg", "ed25519") }},
	{name: "unknown-parameter-of-a-component", cover: func(l *httpsfv.InnerList) { l.Items[0].Params.Add("sf", true) }, outcome: ErrInvalid},
	{name: "field-in-capitals", cover: func(l *httpsfv.InnerList) { l.Items = append(l.Items, httpsfv.NewItem("Content-Digest")) }, outcome: ErrInvalid},
	{name: "unknown-component", cover: func(l *httpsfv.InnerList) { l.Items = append(l.Items, httpsfv.NewItem("@status")) }, outcome: ErrInvalid},
	{name: "bad-signature", change: func(r *http.Request) {
		s := []byte(r.Header.Get("Signature"))
		s[10] ^= 1 // another digit of base64, for all of A to Z, a to z, 0 to 9
		r.Header.Set("Signature", string(s))
	}, outcome: ErrInvalid},
	{name: "duplicate-component", change: func(r *http.Request) {
		r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), `"@authority"`, `"@authority" "@authority"`, 1))
	}, outcome: ErrInvalid},
	{name: "agent-member-missing", before: setTo("Signature-Agent", `other="https://signature-agent.test"`), outcome: ErrInvalid},
	{name: "agent-not-https", before: setTo("Signature-Agent", `sig1="http://signature-agent.test"`), outcome: ErrInvalid},
	{name: "agent-absent", change: func(r *http.Request) { r.Header.Del("Signature-Agent") }, outcome: ErrUnverified},
	{name: "agent-bare-string", before: setTo("Signature-Agent", `"https://signature-agent.test"`), outcome: ErrInvalid},
	{name: "agent-with-a-type", before: setTo("Signature-Agent", `sig1="https://signature-agent.test";type=cimd`), outcome: ErrUnverified},
	{name: "other-agent", change: setTo("Signature-Agent", `sig1="https://other.test"`), outcome: ErrInvalid},
	{name: "value-unreadable", change: setTo("Signature", "sig1=abc"), outcome: ErrInvalid},
	{name: "label-only-in-one", change: setTo("Signature", "sig2=:AAAA:"), outcome: ErrInvalid},
	{name: "no-input", change: func(r *http.Request) { r.Header.Del("Signature-Input") }, outcome: ErrUnverified},
	{name: "no-signature", change: func(r *http.Request) { r.Header.Del("Signature") }, outcome: ErrInvalid},
	{name: "input-unreadable", change: setTo("Signature-Input", "sig1=("), outcome: ErrInvalid},
	{name: "input-no-list", change: setTo("Signature-Input", "sig1=1"), outcome: ErrInvalid},
	{name: "other-host", change: func(r *http.Request) { r.Host = "other.example" }, outcome: ErrInvalid},
	{name: "host-in-capitals", change: func(r *http.Request) { r.Host = "EXAMPLE.com:443" }},
	{name: "other-path", change: func(r *http.Request) { r.RequestURI = "/x" }}, // not covered
	// Of two that both hold neither counts: the second may be added by anyone who has seen another request.
	{name: "two-of-our-tag", change: func(r *http.Request) {
		for _, name := range []string{"Signature", "Signature-Input"} {
			r.Header.Add(name, strings.Replace(r.Header.Get(name), "sig1=", "sig2=", 1))
		}
	}, outcome: ErrInvalid},
	{name: "another-signature-beside", change: func(r *http.Request) {
		r.Header.Add("Signature-Input", `sig0=("@method");tag="x"`)
		r.Header.Add("Signature", "sig0=:AAAA:")
	}},
	{name: "too-long", change: func(r *http.Request) { r.Header.Add("Signature", "x=:"+strings.Repeat("A", maxFields)+":") }, outcome: ErrInvalid},
	{name: "content-digest-mismatch", change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("other")) }, cover: coverDigest, outcome: ErrInvalid},
	{name: "content-digest", change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}")) }, cover: coverDigest},
	{name: "content-digest-of-a-long-body", change: func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(strings.Repeat(" ", maxBody+1)))
	}, cover: coverDigest, outcome: ErrInvalid},
	{name: "content-digest-of-another-member", change: func(r *http.Request) {
		r.Header.Set("Content-Digest", "md5=:AAAA:, sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:")
		r.Body = io.NopCloser(strings.NewReader("{}"))
	}, cover: func(l *httpsfv.InnerList) {
		digest := httpsfv.NewItem("content-digest")
		digest.Params.Add("key", "sha-256")
		l.Items = append(l.Items, digest)
	}, outcome: ErrInvalid},
	{name: "more-components-than-a-request-has", cover: func(l *httpsfv.InnerList) {
		for i := range maxComponents {
			member := httpsfv.NewItem("signature-agent")
			member.Params.Add("key", "m"+strconv.Itoa(i))
			l.Items = append(l.Items, member)
		}
	}, change: func(r *http.Request) {
		for i := range maxComponents {
			r.Header.Add("Signature-Agent", "m"+strconv.Itoa(i))
		}
	}, outcome: ErrInvalid},
}

func setTo(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func coverDigest(l *httpsfv.InnerList) {
	l.Items = append(l.Items, httpsfv.NewItem("content-digest"))
}

// Signatures of other implementations, made for a clock that begins with the year 2000: of http-message-signatures 1.0.6
// in both revisions, and of web-bot-auth 0.1.3, which covers the field as a whole.
func TestSignaturesOfOthers(t *testing.T) {
	const keyID = "6k4Q5u5QWI31HFbmkS4k_6l-RRWkHZ_wZAii5OnCb3Y"
	x, err := base64.RawURLEncoding.DecodeString("VIyFkjuVzYr4FvmZiSYjHu1tM19ABA879TQ-N56M88k")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ agent, field, components, params, signature string }{
		{"https://bot.example", `sig1="https://bot.example"`, `"@authority" "signature-agent";key="sig1" "@method"`, `;expires=946771200;keyid="` + keyID + `"`,
			"0sRQSm7GAYBLnzva0nDHL308oizVrbtGjGHtLTZRloASuUUpv+7H23w4udlcCZNZLHwTMQLSbt3M4TR9Aj/FDQ=="},
		{"https://bot.example/keys.json", `x="https://other.example", sig1="https://bot.example/keys.json"`, `"@authority" "signature-agent";key="sig1" "@method"`,
			`;expires=946771200;keyid="` + keyID + `"`, "BNPxUVuEMv1nyivO8qd67wEABUKbBRHybQcaOxgqLoXJTRDf8gxbUNl9hGqQWYpaJiYMBc7JiqlaV/A96/wnAg=="},
		{"https://bot.example", `"https://bot.example"`, `"@authority" "signature-agent"`, `;keyid="` + keyID + `";alg="ed25519";expires=946771200;` +
			`nonce="YAjv/J9bWzVNqA21Ab12vTw5Qfe+AV+U2MxD0tZKWim3TXr0mUU+fwDL4ESkFuKokri2pA1ZzDN3egDMkMMaoQ=="`,
			"QFBYOJI2c1z2R1ciD+WifHGhFlCyBX8QJfTLvSQTb8U2orM0e2/sC8y3fl4h4+hRbldKWQEVRedqZkY0Zi2oDw=="},
		{"https://bot.example", `sig1="https://bot.example"`, `"@authority" "signature-agent"`, `;keyid="` + keyID + `";alg="ed25519";expires=946771200;` +
			`nonce="j4GXtANeQJe/CTr2/eQT9jNhRqxAJ9h+B/KugTYnOYb3W7ecCtNsbSgvahSA5cEQEvpcPC2C6X4JfulJdv2InQ=="`,
			"9weK8bgjfS2b/maFDxSwW5DGR0b7MF2sBj3lJghxeEbij2tHWK55ghtH6YskutO2LKih2xHVNMfEPZwMPLdRAw=="},
	} {
		at(t, 946684801, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "https://www.example.com/a?b=c", nil)
			r.Header.Set("Signature-Agent", c.field)
			r.Header.Set("Signature-Input", "sig1=("+c.components+");created=946684800"+c.params+`;tag="web-bot-auth"`)
			r.Header.Set("Signature", "sig1=:"+c.signature+":")
			if got, err := Verify(r, lookUp(keyID, x)); err != nil || got.Agent != c.agent {
				t.Errorf("%s: got %+v, %v, want the agent %s", c.field, got, err, c.agent)
			}
			r.Header.Set("Signature-Agent", strings.Replace(c.field, "bot", "bad", 1))
			if _, err := Verify(r, lookUp(keyID, x)); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s of another agent: got %v, want %v", c.field, err, ErrInvalid)
			}
		})
	}
}

// What a signature cannot cover is an error of its base, whatever signed it.
func TestWhatCannotBeCovered(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/a|b?", nil)
	r.Header = http.Header{"X-A": {"a=1"}, "X-Line": {"a\n\"@method\": DELETE"}, "X-Cr": {"a\rb"}, "X-Long": {"k" + strings.Repeat(",k", maxFields/2)}}
	m, err := requestOf(r)
	if err != nil {
		t.Fatal(err)
	}
	for components, want := range map[string]string{
		`"x-a" "x-a"`:                            "covered twice",
		`"x-a" "x-a";key="a"`:                    "",
		`"X-A"`:                                  "lower case",
		`"x-b"`:                                  "no such field",
		`"x-a";key="b"`:                          "no such field",
		`"x-a";key=""`:                           "not known",
		`"x-a";sf`:                               "not known",
		`"x-a";req`:                              "not known",
		`"@method";key="a"`:                      "not known",
		`"@status"`:                              "not known",
		`x-a`:                                    "no such field",
		`"x-line"`:                               "line break", // which would begin another component
		`"x-cr"`:                                 "line break",
		`"x-long";key="k"`:                       "bytes", // of which no member is read
		strings.Repeat(`"@a" `, maxComponents+1): "components",
	} {
		text, err := base(m, listOf(t, "sig1=("+components+")", "sig1"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", components, text, err, want)
		}
	}
	if got := m.derived["@target-uri"]; got != "http://example.com/a|b?" { // as sent
		t.Errorf("the target is %s, want http://example.com/a|b?", got)
	}
	answer := &message{header: r.Header, request: m}
	if text, err := base(answer, listOf(t, `sig1=("x-a";req=?0)`, "sig1")); err == nil {
		t.Errorf("req is false: got %q, want an error", text)
	}
}

func TestNegatives(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	s := &Signer{Key: ed25519.NewKeyFromSeed(seed), Agent: "https://signature-agent.test"}
	keyID, _ := s.KeyID()
	public, _ := s.public()
	seen := make(map[string]bool)
	for _, c := range changes {
		seen[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			at(t, published, func(t *testing.T) {
				r := httptest.NewRequest(http.MethodGet, "https://example.com/page?q=1", nil)
				r.Header.Set("Content-Digest", "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:")
				agent := httpsfv.NewItem("signature-agent")
				agent.Params.Add("key", label)
				input := httpsfv.InnerList{
					Items:  []httpsfv.Item{httpsfv.NewItem("@authority"), agent},
					Params: parametersOf(time.Now(), lifetime, keyID, "", tag),
				}
				if c.cover != nil {
					c.cover(&input)
				}
				r.Header.Set("Signature-Agent", `sig1="https://signature-agent.test"`)
				if c.before != nil {
					c.before(r)
				}
				m, err := requestOf(r)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.attach(m, label, input); err != nil { // the change is one that cannot be signed
					params, _ := httpsfv.Marshal(input)
					r.Header.Set("Signature-Input", "sig1="+params)
					r.Header.Set("Signature", "sig1=:AAAA:")
				}
				if c.change != nil {
					c.change(r)
				}
				got, err := Verify(r, lookUp(keyID, public))
				if c.outcome == nil {
					if err != nil || got.KeyID != keyID || got.Agent != "https://signature-agent.test" {
						t.Errorf("got %+v, %v, want key %s of https://signature-agent.test", got, err, keyID)
					}
					if body, _ := io.ReadAll(r.Body); c.name == "content-digest" && string(body) != "{}" {
						t.Errorf("the body is %q once it is checked, want {}", body)
					}
					return
				}
				if got != (Signed{}) {
					t.Errorf("says %+v, want nothing of what is not verified", got)
				}
				if n := strings.Count(fmt.Sprint(err), "sign: "); n != 1 {
					t.Errorf("error %v names the package %d times, want once", err, n)
				}
				if !errors.Is(err, c.outcome) || errors.Is(err, ErrInvalid) && errors.Is(err, ErrUnverified) {
					t.Errorf("error %v, want %v", err, c.outcome)
				}
			})
		})
	}
	for _, f := range facts(t) {
		if f.Kind == "negative" && !seen[f.Name] {
			t.Errorf("%s (%s): %s, %s: no row", f.ID, f.Name, f.Change, f.Outcome)
		}
	}
}
