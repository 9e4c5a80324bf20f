package listen

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// pair is a certificate in two files, and is read again when one of them has changed.
type pair struct {
	files [2]string // of the certificate with its chain, and of the key
	log   *slog.Logger

	mu      sync.Mutex // guards all below
	stamps  [2]fs.FileInfo
	current *tls.Certificate
}

// TLS makes the configuration of a server whose certificate and key are in files of PEM. They may change while it
// runs: the next handshake sees what is in them then, or, if that is no pair, what was last. protocols are those
// of ALPN (RFC 7301).
func TLS(log *slog.Logger, certificate, key string, protocols ...string) (*tls.Config, error) {
	p := &pair{files: [2]string{certificate, key}, log: log}
	if err := p.load(); err != nil {
		return nil, err
	}
	return &tls.Config{NextProtos: protocols, GetCertificate: p.get}, nil
}

func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(); err != nil {
		p.log.Warn("the certificate was not read again, and the last one stays", "error", err)
	}
	return p.current, nil
}

// load reads the files if they have changed. What failed is tried again with their next change.
func (p *pair) load() error {
	var now [2]fs.FileInfo
	for i, name := range p.files {
		now[i], _ = os.Stat(name) // or nil, and reading tells why
	}
	if p.current != nil && same(p.stamps[0], now[0]) && same(p.stamps[1], now[1]) {
		return nil
	}
	p.stamps = now
	read, err := tls.LoadX509KeyPair(p.files[0], p.files[1])
	if err != nil {
		return err
	}
	p.current = &read
	return nil
}

func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
