package gatebench

import (
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
)

var refused error

// BenchmarkRefusal is a request that a rule forbids, beside one that is let through to a Base that costs nothing.
// Its floor is the permission and the error.
//
//	go test -run XXX -bench Refusal -benchtime 101x -count 3
func BenchmarkRefusal(b *testing.B) {
	const perRound = 20_000
	rt := gateOver(newCanned())
	yes, no := request(b, "http://www.example.com/articles/x"), request(b, "http://www.example.com/private/x")
	allow := func() { rt.RoundTrip(yes) }
	side := func(f func()) func() time.Duration {
		return sides.Took(func() {
			for range perRound {
				f()
			}
		})
	}
	b.Run("gate", func(b *testing.B) {
		sides.Compare(b, perRound, side(func() {
			if _, refused = rt.RoundTrip(no); refused == nil {
				b.Fatal("sent")
			}
		}), side(allow))
	})
	b.Run("floor", func(b *testing.B) {
		sides.Compare(b, perRound, side(func() { allow(); refused = new(client.DisallowedError) }), side(allow))
	})
}
