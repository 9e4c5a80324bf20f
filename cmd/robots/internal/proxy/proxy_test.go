package proxy

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
)

// full makes the test of certificates ask for 100,000 names, which takes a machine half a minute.
var full = flag.Bool("full", false, "make certificates for 100,000 names")

var targets = map[string]string{ // "" is refused
	"a.example:443": "a.example:443", "A.Example.:8443": "a.example.:8443", "a_b-c.example:80": "a_b-c.example:80",
	"192.0.2.1:443": "192.0.2.1:443", "[2001:DB8::1]:443": "[2001:db8::1]:443",
	"[::ffff:192.0.2.1]:1":      "[::ffff:192.0.2.1]:1",
	"xn--bcher-kva.example:443": "xn--bcher-kva.example:443", "127.1:443": "127.1:443",
	"": "", "a.example": "", ":443": "", "a.example:": "", "a.example:0": "", "a.example:65536": "", "a.example:+443": "",
	"a.example:0443": "", "a.example:https": "", "a.example:443:443": "", "2001:db8::1:443": "", "[2001:db8::1]": "",
	"[192.0.2.1]:443": "", "[a.example]:443": "", "[fe80::1%25eth0]:443": "", "[fe80::1%eth0]:443": "",
	"u@a.example:443": "", "a.example/:443": "", "a.example:443/": "", "/a.example:443": "", "a.example?:443": "",
	"http://a.example:443": "", "a.example#:443": "", "a%2eexample:443": "", "bücher.example:443": "",
	"a.example:443\r\nX: y": "", "a.example\r\nX: y:443": "", "a.example :443": "", "a.example: 443": "", "a\x00b:443": "",
	".example:443": "", "*.example:443": "", "a\\b:443": "", strings.Repeat("a", 255) + ":443": "",
}

func TestParseTarget(t *testing.T) {
	for text, want := range targets {
		got, err := ParseTarget(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v, want %q", text, got, err, want)
		}
	}
}

// What passes names one host and one port, and in one way only.
func FuzzParseTarget(f *testing.F) {
	for text := range targets {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := ParseTarget(text)
		if err != nil {
			if len(err.Error()) > 1500 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again, err := ParseTarget(to.String())
		if err != nil || again != to || strings.ContainsAny(to.Host, "\r\n\t /\\?#@%*") || to.Port == 0 {
			t.Errorf("%q: %q, then %q, %v", text, to, again, err)
		}
		if _, err := netip.ParseAddr(to.Host); err != nil && strings.Contains(to.Host, ":") {
			t.Errorf("%q: host %q", text, to.Host)
		}
	})
}

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
			t.Errorf("%s: %v, %v", host, err, c.Leaf)
		}
		if names := c.Leaf.DNSNames; len(names) > 0 && names[0] != strings.TrimSuffix(host, ".") {
			t.Errorf("%s: OpenSSL finds no %q", host, names)
		}
		if again, _ := a.Leaf(host); again != c {
			t.Errorf("%s: made again", host)
		}
	}
	some := newAuthority(t, "example.com")
	for host, permitted := range map[string]bool{"example.com": true, "a.example.com": true, "example.org": false,
		"badexample.com": false, "192.0.2.1": false, "2001:db8::1": false} {
		if _, err := some.Leaf(host); (err == nil) != permitted || err != nil && !errors.Is(err, ErrNotPermitted) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if !some.ca.Leaf.PermittedDNSDomainsCritical {
		t.Error("clients may overlook the constraints")
	}
}

// Long-running proxies outlive their leaves.
func TestLeavesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		certificate, key, err := MakeAuthority("test", nil, 365*24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAuthority(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		first, err := a.Leaf("a.example")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(leafLife/2 - time.Hour)
		if c, err := a.Leaf("a.example"); err != nil || c != first {
			t.Errorf("half its life is not over: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if c, err := a.Leaf("a.example"); err != nil || c == first {
			t.Errorf("half its life is over: %v", err)
		}
		time.Sleep(366 * 24 * time.Hour)
		if _, err := NewAuthority(certificate, key); err == nil {
			t.Error("a CA is used that is no longer valid")
		}
	})
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
			t.Error(name)
		}
	}
}

func TestLeavesAreBounded(t *testing.T) {
	names := maxLeaves + 500
	if *full {
		names = 100_000
	}
	a := newAuthority(t)
	before := proc.Heap()
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(names); i = next.Add(1) {
				if _, err := a.Leaf(fmt.Sprintf("n%d.example", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	grown := proc.Heap() - before
	t.Logf("%d names: %d leaves, %d KiB", names, a.leaves.Len(), grown>>10)
	if a.leaves.Len() != maxLeaves || grown > 32<<20 {
		t.Errorf("%d names: %d leaves of %d bytes are kept", names, a.leaves.Len(), grown)
	}
	runtime.KeepAlive(a)
}

func TestVia(t *testing.T) {
	for proto, want := range map[[2]int]string{{1, 0}: "1.0 robotsgate", {1, 1}: "1.1 robotsgate", {2,
		0}: "2 robotsgate"} {
		if got := via(proto[0], proto[1]); got != want {
			t.Errorf("%v: %s", proto, got)
		}
	}
}
