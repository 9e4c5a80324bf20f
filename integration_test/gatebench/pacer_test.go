package gatebench

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
)

// BenchmarkCrowd is a Turn that nothing delays, at a Pacer that has met 100,000 origins, with 10,000 callers that wait
// for a place at as many of them, beside one at a Pacer that has met nothing else.
//
//	go test -run XXX -bench Crowd -benchtime 101x -count 3
func BenchmarkCrowd(b *testing.B) {
	const met, waiting, perRound = 100_000, 10_000, 10_000
	site := func(kind string, i int) *url.URL {
		return &url.URL{Scheme: "http", Host: fmt.Sprintf("www.%s-%d.example", kind, i), Path: "/"}
	}
	free := make([]*url.URL, perRound)
	for i := range free {
		free[i] = site("free", i)
	}
	gate := func() *client.Transport {
		rt := gateOver(newCanned())
		rt.Pacer = &client.Pacer{Delay: -1}
		return rt
	}
	take := func(rt *client.Transport, u *url.URL) {
		turn, err := rt.Turn(b.Context(), u)
		if err != nil {
			b.Fatal(err)
		}
		turn.End()
	}
	idle, rt := gate(), gate()
	for i := range met {
		take(rt, site("met", i))
	}
	var turns []*client.Turn
	var callers sync.WaitGroup
	for i := range waiting {
		u := site("busy", i)
		turn, err := rt.Turn(b.Context(), u)
		if err != nil {
			b.Fatal(err)
		}
		turns = append(turns, turn)
		callers.Go(func() {
			if turn, err := rt.Turn(b.Context(), u); err == nil {
				turn.End()
			}
		})
	}
	time.Sleep(time.Second) // until all of them wait
	wait := func(rt *client.Transport) func() time.Duration {
		round := sides.Took(func() {
			for _, u := range free {
				take(rt, u)
			}
		})
		round()
		return round
	}
	sides.Compare(b, perRound, wait(rt), wait(idle))
	for _, turn := range turns {
		turn.End()
	}
	callers.Wait()
}
