package gatebench

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/temoto/robotstxt"

	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
	"github.com/robotsgate/robotsgate/policy"
)

// BenchmarkRandom is the warm question in random order over so many origins that both sides
// wait for memory: the gate beside the usual check over temoto/robotstxt, in turns. The find
// is what both have in common at the least, a map of the hosts that holds nothing else. The
// floor is such a map of our policies, which answers: no lifetime, no bound, no schemes.
//
//	go test -run XXX -bench Random/.*/200000 -benchtime 7x -count 3
func BenchmarkRandom(b *testing.B) {
	const perRound = 100_000
	for _, size := range []int{4_000, 200_000} {
		ours, theirs := newCanned(), newCanned()
		ours.bodies, theirs.bodies = realFiles(b), realFiles(b)
		peer := &mapCheck{hosts: make(map[string]*robotstxt.RobotsData, size)}
		rt, reqs := gateOver(ours), origins(b, size)
		bare, policies := make(map[string]*http.Request, size), make(map[string]*policy.Policy, size)
		for _, req := range reqs {
			data, err := robotstxt.FromBytes(theirs.bodies())
			if err != nil {
				b.Fatal(err)
			}
			peer.hosts[req.URL.Host], bare[req.URL.Host] = data, req
			if policies[req.URL.Host], err = rt.Lookup(b.Context(), req.URL); err != nil {
				b.Fatal(err)
			}
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(size, func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
		at := 0 // both sides go on where the last one stopped: they meet every origin equally often
		each := func(f func(*http.Request)) func() {
			return func() {
				for range perRound {
					f(reqs[at%size])
					at++
				}
			}
		}
		check := sides.Took(each(func(req *http.Request) { peer.allows(req.URL) }))
		b.Run(fmt.Sprintf("gate/%d", size), func(b *testing.B) {
			sides.Compare(b, perRound, sides.Took(each(func(req *http.Request) {
				if _, err := rt.Decide(b.Context(), req.URL); err != nil {
					b.Fatal(err)
				}
			})), check)
		})
		b.Run(fmt.Sprintf("floor/%d", size), func(b *testing.B) {
			sides.Compare(b, perRound, sides.Took(each(func(req *http.Request) {
				policies[req.URL.Host].Decide("ExampleBot", req.URL.EscapedPath())
			})), check)
		})
		b.Run(fmt.Sprintf("find/%d", size), func(b *testing.B) {
			sides.Compare(b, perRound, sides.Took(each(func(req *http.Request) {
				if bare[req.URL.Host] == nil {
					b.Fatal("lost")
				}
			})), check)
		})
	}
}
