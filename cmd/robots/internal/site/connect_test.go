package site

import "testing"

func TestConnectToIsReadAsCurlDoes(t *testing.T) {
	for _, c := range []struct{ flag, address, want string }{
		{"example.com:80:127.0.0.1:8080", "example.com:80", "127.0.0.1:8080"},
		{"example.com:80:127.0.0.1:8080", "EXAMPLE.com:80", "127.0.0.1:8080"},
		{"Example.com:80:127.0.0.1:8080", "example.com:80", "127.0.0.1:8080"},
		{"example.com:80:127.0.0.1:8080", "example.com:443", "example.com:443"},
		{"example.com:80:127.0.0.1:8080", "example.org:80", "example.org:80"},
		{"::127.0.0.1:8080", "example.org:443", "127.0.0.1:8080"},
		{":443::8443", "example.org:443", "example.org:8443"},
		{":443::8443", "example.org:80", "example.org:80"},
		{"example.com::[::1]:", "example.com:80", "[::1]:80"},
		{"[2001:db8::1]:80:localhost:8080", "[2001:db8::1]:80", "localhost:8080"},
		{":::", "example.com:80", "example.com:80"},
	} {
		all, err := parseLeads([]string{c.flag})
		if err != nil {
			t.Errorf("--connect-to %s: %v", c.flag, err)
			continue
		}
		if got := all.apply(c.address); got != c.want {
			t.Errorf("--connect-to %s, %s: got %s, want %s", c.flag, c.address, got, c.want)
		}
	}
	for _, flag := range []string{"", "a", "a:1", "a:1:b", "a:1:b:2:c", "[::1:80:b:2"} {
		if all, err := parseLeads([]string{flag}); err == nil {
			t.Errorf("--connect-to %q: got %v, want an error", flag, all)
		}
	}
}
