package client

import (
	"fmt"
	"testing"
)

// Who is in line before whom: robots.txt is before a request that has a turn of Wait, which
// may be waiting for it.
func TestPacerLineOrder(t *testing.T) {
	l := new(lane)
	for _, as := range []asking{asPage, asHolder, asWait, asRobots, asHolder, asRobots, asPage} {
		l.join(&waiter{as: as})
	}
	var got []asking
	for e := l.waiting.Front(); e != nil; e = e.Next() {
		got = append(got, e.Value.(*waiter).as)
	}
	if want := []asking{asRobots, asRobots, asHolder, asHolder, asPage, asWait, asPage}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
