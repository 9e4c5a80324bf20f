package gatebench

import (
	"net/http"
	"testing"
	"time"

	"golang.org/x/oauth2"

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

// BenchmarkFirstExample is README's first one, beside x/oauth2's Transport, which adds a field to the request as well.
// Its floor is a request that has its User-Agent, and a copy of it.
//
//	go test -run XXX -bench FirstExample -benchtime 101x -count 3
func BenchmarkFirstExample(b *testing.B) {
	const perRound, page = 20_000, "http://www.example.com/articles/2026/a-page.html"
	bare, named := request(b, page), request(b, page)
	bare.Header = http.Header{}
	side := func(f func()) func() time.Duration {
		return sides.Took(func() {
			for range perRound {
				f()
			}
		})
	}
	rt := gateOver(newCanned())
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "x"})
	theirs := &oauth2.Transport{Source: token, Base: newCanned()}
	oauth := side(func() { theirs.RoundTrip(bare) })
	b.Run("gate", func(b *testing.B) { sides.Compare(b, perRound, side(func() { rt.RoundTrip(bare) }), oauth) })
	b.Run("floor", func(b *testing.B) {
		sides.Compare(b, perRound, side(func() {
			copied = new(http.Request)
			*copied = *named
			rt.RoundTrip(copied)
		}), oauth)
	})
}

var copied *http.Request
