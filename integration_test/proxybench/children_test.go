package proxybench

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"time"
)

// serve says where it listens, and serves h there.
func serve(h http.Handler) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	log.Fatal(http.Serve(l, h))
}

func readCA() tls.Certificate {
	ca, err := tls.LoadX509KeyPair(os.Getenv("CA"), os.Getenv("KEY"))
	if err != nil {
		log.Fatal(err)
	}
	return ca
}

// serveBare is the parts of net/http that "robots proxy" is made of, and nothing else.
func serveBare() {
	reverse := &httputil.ReverseProxy{Transport: transport(), Rewrite: func(p *httputil.ProxyRequest) {
		if p.Out.URL.Host == "" {
			p.Out.URL.Scheme, p.Out.URL.Host = "https", p.In.Host
		}
	}}
	tunnels := make(listener)
	inner := &http.Server{Handler: reverse, TLSConfig: &tls.Config{Certificates: []tls.Certificate{leaf("s.example.com")}}}
	go inner.ServeTLS(tunnels, "", "")
	serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			reverse.ServeHTTP(w, r)
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			tunnels <- c
		}
	}))
}

// leaf is a certificate for host.
func leaf(host string) tls.Certificate {
	ca := readCA()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{DNSNames: []string{host}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// listener is a net.Listener of connections that another has accepted.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) { return <-l, nil }
func (l listener) Close() error              { return nil }
func (l listener) Addr() net.Addr            { return &net.TCPAddr{} }
