package policy_test

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/robotsgate/robotsgate/policy"
)

// A blank at the end of a path stays escaped in Policy.String: it would be cut as white space.
func TestABlankAtTheEndOfAPathIsPrintedEscaped(t *testing.T) {
	p := policy.Original.Parse([]byte("User-agent: *\nDisallow: /a%20\n"))
	again := policy.Original.Parse([]byte(p.String()))
	if !again.Decide("a", "/ab").Allowed || again.Decide("a", "/a%20b").Allowed {
		t.Errorf("read back, it is another rule:\n%s", p)
	}
}

// Of two names of one group that contain the token, the one that has another group counts.
func TestAPartOfTwoNamesFindsAllGroupsOfTheFirst(t *testing.T) {
	p := policy.Yandex.Parse([]byte("User-agent: abot\nUser-agent: bbot\nDisallow: /1\n\nUser-agent: abot\nDisallow: /2\n"))
	for _, target := range []string{"/1", "/2"} {
		if p.Decide("bot", target).Allowed {
			t.Errorf("%s is allowed", target)
		}
	}
}

func TestASurrogatePairEndsAFile(t *testing.T) {
	file := []byte{0xFF, 0xFE}
	for _, unit := range utf16.Encode([]rune("User-agent: *\nDisallow: /\U0001F600")) {
		file = binary.LittleEndian.AppendUint16(file, unit)
	}
	if d := policy.Parse(file).Decide("a", "/%F0%9F%98%80"); d.Allowed || d.Rule.Pattern != "/\U0001F600" {
		t.Errorf("got %v, want it disallowed as it is written", d)
	}
}
