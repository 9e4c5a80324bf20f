package client_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

// line logs in which order requests get through.
type line struct {
	mu    sync.Mutex
	order []string
}

// RoundTrip is a Base: pages have a body that the caller has to close.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order = append(l.order, req.URL.Path[1:])
	if req.URL.Path == "/robots.txt" {
		return answer(404, "", ""), nil
	}
	return answer(200, "", "page"), nil
}

// ask asks for a page in the background and returns when it is in line, or through.
func (l *line) ask(c *http.Client, page string) {
	go func() {
		if res, err := c.Get("http://a.example/" + page); err == nil {
			res.Body.Close()
		}
	}()
	synctest.Wait()
}

func (l *line) check(t *testing.T, want ...string) {
	t.Helper()
	time.Sleep(time.Hour)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.order, want) {
		t.Errorf("got %v, want %v", l.order, want)
	}
}

// Who gives a place back and asks again in the same breath does not overtake.
func TestPacerNoRequestOvertakesOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(line)
		c := paced(&client.Pacer{Delay: -1}, l)
		for range 20 {
			l.order = nil
			first, _ := get(t, c, "http://a.example/1")
			l.ask(c, "2")
			first.Body.Close()
			third, _ := get(t, c, "http://a.example/3")
			third.Body.Close()
			if want := []string{"1", "2", "3"}; !slices.Equal(slices.DeleteFunc(l.order, isRobots), want) {
				t.Fatalf("got %v, want %v", l.order, want)
			}
		}
	})
}

func isRobots(page string) bool { return page == "robots.txt" }

// Robots.txt goes before the pages that wait, since it decides what becomes of them.
func TestPacerRobotsGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := new(line), &client.Pacer{}
		c := paced(p, l)
		for _, page := range []string{"1", "2", "3"} {
			l.ask(c, page)
		}
		l.ask(paced(p, l), "4") // with a cache of its own
		l.check(t, "robots.txt", "robots.txt", "1", "2", "3", "4")
	})
}
