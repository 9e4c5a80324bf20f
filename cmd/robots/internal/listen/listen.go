// Package listen opens what a program that runs on listens at, and tells the service manager of it: a TCP
// address or a socket of systemd's, with or without TLS. It knows nothing of HTTP.
package listen

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// TCP listens at an address, HOST:PORT. With an IPv4 address as the host, 0.0.0.0 too, that is IPv4 alone.
func TCP(address string) (net.Listener, error) {
	network := "tcp"
	if host, _, err := net.SplitHostPort(address); err == nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
			network = "tcp4"
		}
	}
	return net.Listen(network, address)
}

// Passed returns the sockets that systemd listens at for this program (sd_listen_fds(3)), by those of their names
// (FileDescriptorName=) that are in names; the one with any other name is under "". It must be called once.
func Passed(names ...string) (map[string]net.Listener, error) {
	passed := make(map[string]net.Listener)
	for _, f := range activation.Files(true) {
		name := f.Name()
		if !slices.Contains(names, name) {
			name = ""
		}
		l, err := net.FileListener(f) // a copy
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("the socket %q of systemd: %w", f.Name(), err)
		}
		if _, tcp := l.Addr().(*net.TCPAddr); !tcp || passed[name] != nil {
			return nil, fmt.Errorf("the socket %q of systemd (%s %s): give one, of TCP", f.Name(), l.Addr().Network(), l.Addr())
		}
		passed[name] = l
	}
	return passed, nil
}

// IsLoopback reports whether only this machine reaches l.
func IsLoopback(l net.Listener) bool { return l.Addr().(*net.TCPAddr).IP.IsLoopback() }

// What a service manager is told (sd_notify(3)).
const (
	Ready    = daemon.SdNotifyReady
	Stopping = daemon.SdNotifyStopping
)

// Notify tells the service manager, if there is one that asks to be told. That it could not be told ends
// nothing.
func Notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("the service manager was not told", "state", state, "error", err)
	}
}

// WarnIfShared warns of the file of a secret that others than its owner may use, as ssh does. name is the value
// of a flag; if empty, there is no file.
func WarnIfShared(log *slog.Logger, flag, name string) {
	if name == "" || runtime.GOOS == "windows" { // there, the mode tells nothing
		return
	}
	const others = fs.FileMode(0o077)
	if info, err := os.Stat(name); err == nil && info.Mode()&others != 0 {
		log.Warn("a secret is in a file that others may use: chmod 600 it", "flag", flag, "file", name,
			"mode", info.Mode().Perm().String())
	}
}

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

// get is called for each handshake. To look at two files costs less than the handshake.
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

// same reports whether a file is the one that was read. A renewal may write into it, or put another in its
// place.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
