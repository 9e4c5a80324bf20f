package proxy

// The CA of --ca: certificates for the hosts of tunnels, made when they are asked for, and the CA itself for
// "robots proxy ca".

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	leafLife  = 14 * 24 * time.Hour
	clockSlip = time.Hour // that a client's clock may be behind
)

// Authority makes certificates for hosts. It is safe for concurrent use.
type Authority struct {
	ca    tls.Certificate
	key   *ecdsa.PrivateKey // of all leaves: clients tell them apart by name
	roots *x509.CertPool
}

// NewAuthority makes an Authority of a CA's certificate and key, in PEM. What clients would refuse is refused
// here: no CA, or one out of its time.
func NewAuthority(certificate, key []byte) (*Authority, error) {
	ca, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	if !ca.Leaf.IsCA || !ca.Leaf.BasicConstraintsValid {
		return nil, errors.New("the certificate is not that of a CA")
	}
	if now := time.Now(); now.After(ca.Leaf.NotAfter) || now.Before(ca.Leaf.NotBefore) {
		return nil, fmt.Errorf("the certificate is valid from %s to %s", ca.Leaf.NotBefore, ca.Leaf.NotAfter)
	}
	a := &Authority{ca: ca, roots: x509.NewCertPool()}
	a.roots.AddCert(ca.Leaf)
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // crypto/rand never fails
	return a, nil
}

// Leaf makes the certificate of a host, which is a name in lower case or an IP address: each tunnel has its own, which
// takes a fraction of a millisecond. It is verified as a client would: so the name constraints of the CA are kept by
// the same code that clients have, and no tunnel is opened in which the client would refuse the certificate.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	now := time.Now()
	leaf := &x509.Certificate{
		NotBefore:   slices.MaxFunc([]time.Time{now.Add(-clockSlip), a.ca.Leaf.NotBefore}, time.Time.Compare),
		NotAfter:    slices.MinFunc([]time.Time{now.Add(leafLife), a.ca.Leaf.NotAfter}, time.Time.Compare),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{strings.TrimSuffix(host, ".")} // RFC 5280 §4.2.1.6
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.ca.Leaf, a.key.Public(), a.ca.PrivateKey)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: append([][]byte{der}, a.ca.Certificate...), PrivateKey: a.key}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: a.roots}); err != nil {
		return nil, fmt.Errorf("the CA may not speak for %s: %w", host, err)
	}
	return c, nil
}

// MakeAuthority makes a CA: its certificate and key, in PEM. If only is not empty, the CA speaks for
// these domains and what is below them alone (RFC 5280 §4.2.1.10).
func MakeAuthority(name string, only []string, life time.Duration) (certificate, key []byte, err error) {
	own, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	now := time.Now()
	ca := &x509.Certificate{
		Subject:                     pkix.Name{CommonName: name},
		NotBefore:                   now.Add(-clockSlip),
		NotAfter:                    now.Add(life),
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: len(only) > 0,
		PermittedDNSDomains:         only,
	}
	if len(only) > 0 { // names alone: all addresses are excluded
		ca.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, own.Public(), own)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(own) // such a key can be written
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return certificate, key, nil
}
