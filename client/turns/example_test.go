package turns_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns"
)

// delays is the least of a Store: it keeps delays. It knows no places, no order and no pauses, and forgets nothing;
// package turnstest says what is missing.
type delays struct {
	mu   sync.Mutex // guards next
	next map[string]time.Time
}

func (s *delays) Take(_ context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait := time.Until(s.next[origin]); wait > 0 {
		return turns.Reply{Wait: wait, Least: wait}, nil
	}
	s.next[origin] = time.Now().Add(a.Delay)
	return turns.Reply{Taken: true}, nil
}

func (s *delays) Tell(_ context.Context, origin string, n turns.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Event == turns.Ended {
		s.next[origin] = time.Now().Add(n.Delay)
	}
	return nil
}

// Two processes over one Store keep one pace at a site. Across machines use package redisturns.
func ExampleStore() {
	store := &delays{next: map[string]time.Time{}} // &redisturns.Store{Client: client}
	const delay = 100 * time.Millisecond
	first, second := &client.Pacer{Turns: store, Delay: delay}, &client.Pacer{Turns: store, Delay: delay}

	u := &url.URL{Scheme: "https", Host: "www.example", Path: "/"}
	begin := time.Now()
	for _, process := range []*client.Pacer{first, second} {
		if err := process.Wait(context.Background(), u); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("the second process kept the delay of the first:", time.Since(begin) >= delay)
	// Output:
	// the second process kept the delay of the first: true
}
