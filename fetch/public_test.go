package fetch_test

import (
	"net/netip"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
)

func TestPublic(t *testing.T) {
	for text, public := range map[string]bool{
		"93.184.215.14": true, "2606:4700::1": true, "::ffff:93.184.215.14": true, "64:ff9b::5db8:d70e": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "10.0.0.1": false, "169.254.169.254": false,
		"fe80::1%eth0": false, "fd00::1": false, "100.64.0.1": false, "0.0.0.0": false, "64:ff9b::a00:1": false,
	} {
		if got := fetch.Public(netip.MustParseAddr(text)); got != public {
			t.Errorf("%s: %v", text, got)
		}
	}
	if fetch.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}
