package proxy

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"
)

func newAuthority(t testing.TB, only ...string) *Authority {
	certificate, key, err := MakeAuthority("test", only, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAuthority(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLeaves(t *testing.T) {
	a := newAuthority(t)
	for _, host := range []string{"a.example", "b.example.", "192.0.2.1", "2001:db8::1", "localhost"} {
		c, err := a.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Leaf.VerifyHostname(host); err != nil || c.Leaf.IsCA || c.Leaf.NotAfter.After(a.ca.Leaf.NotAfter) {
			t.Errorf("%s: got %v, %v, want a leaf for it, no longer than its CA", host, err, c.Leaf)
		}
		if names := c.Leaf.DNSNames; len(names) > 0 && names[0] != strings.TrimSuffix(host, ".") {
			t.Errorf("%s: OpenSSL finds no %q", host, names)
		}
	}
	some := newAuthority(t, "example.com")
	for host, permitted := range map[string]bool{"example.com": true, "a.example.com": true, "example.org": false,
		"badexample.com": false, "192.0.2.1": false, "2001:db8::1": false} {
		if _, err := some.Leaf(host); (err == nil) != permitted {
			t.Errorf("%s: got %v, want it permitted: %v", host, err, permitted)
		}
	}
	if !some.ca.Leaf.PermittedDNSDomainsCritical {
		t.Error("clients may overlook the constraints")
	}
}

func TestNoAuthorityWithoutACA(t *testing.T) {
	certificate, key, _ := MakeAuthority("a", nil, time.Hour)
	_, other, _ := MakeAuthority("b", nil, time.Hour)
	leaf, err := newAuthority(t).Leaf("a.example")
	if err != nil {
		t.Fatal(err)
	}
	leafKey, _ := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	for name, pair := range map[string][2][]byte{
		"the key of another": {certificate, other}, "nothing": {nil, nil}, "the wrong way round": {key, certificate},
		"no CA": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: leafKey})},
	} {
		if _, err := NewAuthority(pair[0], pair[1]); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
