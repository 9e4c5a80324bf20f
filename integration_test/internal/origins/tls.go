package origins

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// TLSFault is what is wrong with an origin's port 443.
type TLSFault uint8

// The faults.
const (
	TLSGood TLSFault = iota
	TLSExpired
	TLSWrongHost
	TLSSelfSigned
	TLSUntrusted
	TLSOld        // speaks TLS 1.0 at most
	TLSClientCert // demands a certificate of the client
	TLSManyNames  // a certificate for 5,000 other names
	TLSHTTP2      // offers HTTP/2 and nothing else
	TLSNone       // speaks no TLS at all
)

// authority signs the certificates of a Net.
type authority struct {
	key   *ecdsa.PrivateKey
	cert  *x509.Certificate
	roots *x509.CertPool

	mu     sync.Mutex
	leaves map[string]*tls.Config
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, roots: x509.NewCertPool(), leaves: map[string]*tls.Config{}}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "origins"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.roots.AddCert(a.cert)
	return a, nil
}

// server returns the server's side of TLS over raw, as the origin does it.
func (a *authority) server(raw net.Conn, o *Origin) net.Conn {
	if o.TLS == TLSNone {
		return raw
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	config := a.leaves[o.Name]
	if config == nil {
		config = a.config(o)
		a.leaves[o.Name] = config
	}
	return tls.Server(raw, config)
}

func (a *authority) config(o *Origin) *tls.Config {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: o.Name}, DNSNames: []string{o.Name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	signer, key := a.cert, a.key
	c := &tls.Config{}
	switch o.TLS {
	case TLSExpired:
		leaf.NotBefore, leaf.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	case TLSWrongHost:
		leaf.DNSNames = []string{"another.test"}
	case TLSManyNames:
		leaf.DNSNames = nil
		for i := range 5000 {
			leaf.DNSNames = append(leaf.DNSNames, fmt.Sprintf("n%d.another.test", i))
		}
	case TLSSelfSigned:
		signer = leaf
	case TLSUntrusted:
		other, err := newAuthority()
		if err != nil {
			panic(err)
		}
		signer, key = other.cert, other.key
	case TLSOld:
		c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10
	case TLSClientCert:
		c.ClientAuth = tls.RequireAnyClientCert
	case TLSHTTP2:
		c.NextProtos = []string{"h2"}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, signer, &a.key.PublicKey, key)
	if err != nil {
		panic(err) // the system has no randomness: nothing to test with
	}
	c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: a.key}}
	return c
}
