package target_test

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client/internal/target"
)

// Decided on is what net/http sends, whether it stands in the URL, in a buffer, or in neither.
func TestTargetIsWhatIsSent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "/", "*", "%", "%2F", "%2f", "%2e", "%C3%A9", "é", "%zz", "%+1", " ", "?", "a", "[", "'", "~", ";", "\xff", strings.Repeat("é", 90)}
	for c := range 256 {
		pieces = append(pieces, string([]byte{byte(c)}))
	}
	some := func() (s string) {
		for range random.IntN(4) {
			s += pieces[random.IntN(len(pieces))]
		}
		return s
	}
	var buf [512]byte
	for range 300_000 {
		u := &url.URL{Path: "/" + some(), ForceQuery: random.IntN(8) == 0}
		switch random.IntN(4) {
		case 0:
			u.RawPath = "/" + some()
			if path, err := url.PathUnescape(u.RawPath); err == nil {
				u.Path = path
			}
		case 1:
			u.RawPath = some()
		case 2:
			u.Path = some()
		}
		if random.IntN(2) == 0 {
			u.RawQuery = "q=" + strings.Repeat("x", random.IntN(300))
		}
		want := u.RequestURI()
		got, err := target.Of(buf[:0], u)
		if want[0] != '/' {
			want = ""
		}
		if got != want || (err != nil) != (want == "") {
			t.Fatalf("%+v: got %q, %v, want %q", *u, got, err, want)
		}
	}
}
