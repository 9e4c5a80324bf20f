package turns_test

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/turnstest"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Two processes over one Store keep one pace at a site. Across machines use package redisturns.
func Example() {
	store := new(turnstest.Memory) // &redisturns.Store{Client: client}
	const delay = 100 * time.Millisecond
	crawler := func() *client.Transport {
		return &client.Transport{
			UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
			Pacer:     &client.Pacer{Turns: store, Delay: delay},
			Override:  func(fetch.Origin) *policy.Policy { return policy.Parse(nil) }, // as if each site allowed all
		}
	}
	u := &url.URL{Scheme: "https", Host: "www.example", Path: "/"}
	begin := time.Now()
	for _, process := range []*client.Transport{crawler(), crawler()} {
		turn, err := process.Turn(context.Background(), u)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer turn.End()
	}
	fmt.Println("the second process kept the delay of the first:", time.Since(begin) >= delay)
	// Output:
	// the second process kept the delay of the first: true
}
