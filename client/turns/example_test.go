package turns_test

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/internal/memturns"
)

// Two processes over one Store keep one pace at a site. This Store is in memory, and only for tests:
// across processes use package redisturns.
func ExampleStore() {
	store := new(memturns.Store) // &redisturns.Store{Client: client}
	const delay = 100 * time.Millisecond
	first, second := &client.Pacer{Turns: store, Delay: delay}, &client.Pacer{Turns: store, Delay: delay}

	u := &url.URL{Scheme: "https", Host: "www.example", Path: "/"}
	begin := time.Now()
	if err := first.Wait(context.Background(), u); err != nil {
		fmt.Println(err)
		return
	}
	if err := second.Wait(context.Background(), u); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the second process kept the delay of the first:", time.Since(begin) >= delay)
	// Output:
	// the second process kept the delay of the first: true
}
