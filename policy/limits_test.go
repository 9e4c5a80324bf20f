package policy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/robotsgate/robotsgate/policy"
)

const parsingLimit = 500 << 10

// padded returns a file whose last line begins so that its n-th byte is the last
// within the parsing limit.
func padded(last string, n int) []byte {
	const head = "user-agent: *\ndisallow: /early\n"
	return []byte(head + strings.Repeat("#", parsingLimit-len(head)-n-1) + "\n" + last)
}

func TestParsingLimit(t *testing.T) {
	const rule = "disallow: /private/x"
	for _, c := range []struct {
		name    string
		file    []byte
		allowed bool // of /private/x
	}{
		{"the file ends at the limit", padded(rule, len(rule)), false},
		{"the line ends at the limit", padded(rule+"\n"+"disallow: /late\n", len(rule)), false},
		{"the line ends at the limit with CR LF", padded(rule+"\r\n"+"disallow: /late\n", len(rule)), false},
		{"the line end is the last byte", padded(rule+"\n"+"disallow: /late\n", len(rule)+1), false},
		{"the limit cuts the line", padded(rule+"\n", len(rule)-1), true},
		{"the limit cuts the line that is last", padded(rule, len(rule)-1), true},
		{"the limit leaves a broader rule of the line", padded(rule, len("disallow: /")), true},
		{"the line is past the limit", padded(rule, 0), true},
	} {
		for _, d := range []policy.Dialect{policy.RFC9309, policy.Google, policy.Bing, policy.Original} {
			p := d.Parse(c.file)
			for target, allowed := range map[string]bool{"/private/x": c.allowed, "/early": false, "/late": true, "/other": true} {
				if got := p.Decide("a", target).Allowed; got != allowed {
					t.Errorf("%v: %s: %s: got allowed %v, want %v", d, c.name, target, got, allowed)
				}
			}
		}
	}
}

// To look for a token in all names takes the product of their lengths, and both may be a stranger's.
func TestATokenIsLookedForInNamesUpTo256Bytes(t *testing.T) {
	file := []byte("user-agent: " + strings.Repeat("a", 300) + "\ndisallow: /\n")
	for _, d := range []policy.Dialect{policy.Yandex, policy.Original} {
		for n, allowed := range map[int]bool{1: false, 256: false, 257: true, 300: false, 301: true} {
			if got := d.Parse(file).Decide(strings.Repeat("a", n), "/x").Allowed; got != allowed {
				t.Errorf("%v: a token of %d bytes: got allowed %v, want %v", d, n, got, allowed)
			}
		}
	}
}

func TestOversizeForYandexIsPermission(t *testing.T) {
	file := append([]byte("user-agent: *\ndisallow: /\n"), make([]byte, parsingLimit)...)
	if d := policy.Yandex.Parse(file[:parsingLimit]).Decide("Yandex", "/x"); d.Allowed {
		t.Errorf("at the limit: got %v, want it disallowed", d)
	}
	if d := policy.Yandex.Parse(file[:parsingLimit+1]).Decide("Yandex", "/x"); d.Reason != policy.ReasonUnavailable {
		t.Errorf("above the limit: got %v, want reason %v", d, policy.ReasonUnavailable)
	}
}

func TestYandexLimitsRules(t *testing.T) {
	var b strings.Builder
	b.WriteString("user-agent: *\ndisallow: /" + strings.Repeat("x", 1023) + "\ndisallow: /" + strings.Repeat("y", 1024) +
		"\ndisallow: /" + strings.Repeat("é", 1023) + "\ndisallow: /" + strings.Repeat("ö", 1024) + "\n")
	for i := 5; i <= 2049; i++ {
		fmt.Fprintf(&b, "disallow: /rule%d$\n", i)
	}
	p := policy.Yandex.Parse([]byte(b.String()))
	for target, allowed := range map[string]bool{
		"/" + strings.Repeat("x", 1023): false,
		"/" + strings.Repeat("y", 1024): true, // longer than 1,024 characters
		"/" + strings.Repeat("é", 1023): false,
		"/" + strings.Repeat("ö", 1024): true,
		"/rule2048":                     false,
		"/rule2049":                     true, // the 2,049th
	} {
		if got := p.Decide("Yandex", target).Allowed; got != allowed {
			t.Errorf("%.20s: got allowed %v, want %v", target, got, allowed)
		}
		if policy.RFC9309.Parse([]byte(b.String())).Decide("Yandex", target).Allowed {
			t.Errorf("RFC9309: %.20s: allowed, there is no such limit", target)
		}
	}
}

func TestUTF16(t *testing.T) {
	const text = "user-agent: *\r\ndisallow: /\u30c4/\U0001F916\nallow: /\u30c4/\U0001F916/ok\n"
	for name, order := range map[string]binary.AppendByteOrder{"big": binary.BigEndian, "little": binary.LittleEndian} {
		file := order.AppendUint16(nil, 0xFEFF)
		for _, unit := range utf16.Encode([]rune(text)) {
			file = order.AppendUint16(file, unit)
		}
		for _, d := range dialects {
			p := d.Parse(file)
			// F-9: Google's parser sees bytes, and no rule among them.
			if got, want := p.Decide("a", "/%E3%83%84/%F0%9F%A4%96/x").Allowed, d == policy.Google; got != want {
				t.Errorf("%v, %s endian: got allowed %v, want %v", d, name, got, want)
			}
			if d != policy.Original && !p.Decide("a", "/%E3%83%84/%F0%9F%A4%96/ok").Allowed {
				t.Errorf("%v, %s endian: the exception is lost", d, name)
			}
			if !d.Parse(file[2:]).Decide("a", "/%E3%83%84/%F0%9F%A4%96/x").Allowed {
				t.Errorf("%v, %s endian: decoded without a byte order mark", d, name)
			}
		}
		broken := append(order.AppendUint16(order.AppendUint16(nil, 0xFEFF), 0xD800), file[2:]...)
		if got := policy.Parse(append(broken, 0x41)).Decide("a", "/%E3%83%84/%F0%9F%A4%96/x").Allowed; !got {
			t.Errorf("%s endian: half a surrogate pair spoils its line", name)
		}
	}
}

// A Policy keeps nothing of the bytes it was parsed from.
func TestParseCopiesWhatItKeeps(t *testing.T) {
	for _, d := range dialects {
		body := []byte(recordsFile)
		p := d.Parse(body)
		want := p.String()
		for i := range body {
			body[i] = 'X'
		}
		d.Parse([]byte(strings.Repeat("user-agent: y\ndisallow: /z\n", 50))) // the scratch space is used again
		if got := p.String(); got != want {
			t.Errorf("%v: got %q after the file was overwritten, want %q", d, got, want)
		}
	}
}
