package client_test

import (
	"context"
	"fmt"
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
		c := paced(over(&client.Pacer{Delay: -1}), l)
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
		l, p := new(line), over(&client.Pacer{})
		c := paced(p, l)
		for _, page := range []string{"1", "2", "3"} {
			l.ask(c, page)
		}
		l.ask(paced(p, l), "4") // with a cache of its own
		l.check(t, "robots.txt", "robots.txt", "1", "2", "3", "4")
	})
}

// It goes before the request that a turn of Wait is for as well, although that keeps no delay to the turn.
func TestPacerRobotsGoesBeforeWhoHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := new(line), over(&client.Pacer{})
		c := paced(p, l)
		l.ask(c, "1")
		time.Sleep(time.Minute)
		p.Wait(t.Context(), parse("http://a.example/2"))
		l.ask(paced(p, l), "3") // with a cache of its own
		l.ask(c, "2")
		l.check(t, "robots.txt", "1", "robots.txt", "2", "3")
	})
}

// A turn that Wait has obtained serves one request; all others stand in line.
func TestPacerOneTurnServesOneRequest(t *testing.T) {
	for _, unused := range []int{0, 3} { // turns of long ago that were not used
		synctest.Test(t, func(t *testing.T) {
			l, p := new(line), over(&client.Pacer{})
			c := paced(p, l)
			u := parse("http://a.example/")
			p.Wait(t.Context(), parse("http://a.example/start"))
			l.ask(c, "start")
			time.Sleep(time.Minute)
			for range unused {
				p.Wait(t.Context(), u)
			}
			time.Sleep(time.Minute)
			p.Wait(t.Context(), parse("http://a.example/1"))
			l.ask(c, "1") // at once
			go func() {
				p.Wait(t.Context(), parse("http://a.example/2"))
				l.ask(c, "2")
			}()
			synctest.Wait()
			l.ask(c, "3") // behind the Wait of 2
			l.check(t, "robots.txt", "start", "1", "2", "3")
		})
	}
}

// A request with a turn of Wait goes before those that wait inside RoundTrip.
func TestPacerWhoHasWaitedGoesBeforeWhoHasNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := new(line), over(&client.Pacer{})
		c := paced(p, l)
		l.ask(c, "start")
		time.Sleep(time.Minute)
		p.Wait(t.Context(), parse("http://a.example/2"))
		l.ask(c, "2")
		l.ask(c, "3")
		p.Wait(t.Context(), parse("http://a.example/4")) // behind 3
		l.ask(c, "4")
		l.check(t, "robots.txt", "start", "2", "3", "4")
	})
}

// The turn that Wait obtained is used by a request for its URL, as the gate sees that, by no other, and not
// for ever (design, decision 31).
func TestTheTurnOfWaitBelongsToItsURL(t *testing.T) {
	for _, tt := range []struct {
		waits, asks string
		late        time.Duration
		want        time.Duration // that the request waits
	}{
		{"http://a.example/page", "http://a.example/page", 0, 0},
		{"http://a.example/page", "HTTP://A.example:80/page#part", 0, 0},
		{"http://a.example", "http://a.example/", 0, 0},
		{"http://a.example/é", "http://a.example/%C3%A9", 0, 0},
		{"http://a.example/page", "http://a.example/page", 9900 * time.Millisecond, 0},
		{"http://a.example/page", "http://a.example/other", 0, time.Minute},
		{"http://a.example/page", "http://a.example/page?x", 0, time.Minute},
		{"http://a.example/page", "http://a.example/page?", 0, time.Minute},
		{"http://a.example/page", "http://a.example/page/", 0, time.Minute},
		{"http://a.example/page", "http://a.example/page", 10 * time.Second, 50 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := over(&client.Pacer{Delay: time.Minute})
			c := paced(p, pagesOf(ok))
			get(t, c, "http://a.example/first")
			if err := p.Wait(t.Context(), parse(tt.waits)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(tt.late)
			if _, took := get(t, c, tt.asks); took != tt.want {
				t.Errorf("a turn for %s, %v old: %s waited %v, want %v", tt.waits, tt.late, tt.asks, took, tt.want)
			}
		})
	}
}

// Who polls a site takes no turns from those who wait for them: all of them get their pages.
func TestAPollerTakesNoTurnOfWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(&client.Pacer{Delay: 5 * time.Second})
		gate := &client.Transport{Base: pagesOf(ok), UserAgent: "ExampleBot/1.0", Pacer: p}
		polls := &http.Client{Transport: gate, Timeout: 300 * time.Millisecond}
		works := &http.Client{Transport: gate, Timeout: 10 * time.Second}
		gate.Decide(t.Context(), parse("http://a.example/"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		var workers sync.WaitGroup
		workers.Go(func() {
			for ctx.Err() == nil {
				if res, err := polls.Get("http://a.example/health"); err == nil {
					res.Body.Close()
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		pages := 0
		for i := range 5 {
			u := parse(fmt.Sprint("http://a.example/", i))
			workers.Go(func() {
				for p.Wait(ctx, u) == nil {
					time.Sleep(time.Millisecond)
					res, err := works.Get(u.String())
					if err != nil {
						t.Errorf("after Wait: %v", err)
						continue
					}
					res.Body.Close()
					pages++
				}
			})
		}
		workers.Wait()
		cancel()
		if pages < 55 {
			t.Errorf("%d pages, want nearly 60", pages)
		}
	})
}

// Who waits hears of a delay that has become less.
func TestPacerTellsWaitersOfALesserDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(&client.Pacer{Delay: 10 * time.Minute})
		u := parse("http://a.example/")
		p.Wait(t.Context(), u)
		begin := time.Now()
		time.AfterFunc(time.Minute, func() { p.Learn(u, group("User-agent: *\nCrawl-delay: 20\n")) })
		p.Wait(t.Context(), u)
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("waited %v, want 1m0s, until it was known", took)
		}
	})
}

// A new file without a delay takes none from those who wait, also when the last of them gives up. Who comes after
// that keeps the delay to them, and no other.
func TestPacerWhoGivesUpTakesNoDelayFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, u, begin := over(new(client.Pacer)), parse("http://a.example/"), time.Now()
		p.Learn(u, group("User-agent: *\nCrawl-delay: 30\n"))
		p.Wait(t.Context(), u)
		var mu sync.Mutex
		var turns []time.Duration
		wait := func(ctx context.Context) {
			if p.Wait(ctx, u) == nil {
				mu.Lock()
				turns = append(turns, time.Since(begin))
				mu.Unlock()
			}
		}
		impatient, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{t.Context(), t.Context(), impatient} {
			go wait(ctx)
			time.Sleep(time.Millisecond)
		}
		p.Learn(u, group("User-agent: *\n"))
		go wait(t.Context())
		time.Sleep(time.Second)
		cancel()
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []time.Duration{30 * time.Second, 60 * time.Second, 61 * time.Second}; !slices.Equal(turns, want) {
			t.Errorf("turns at %v, want %v", turns, want)
		}
	})
}

// Whatever happens while they wait, all who wait are served or told in the end.
func TestPacerLeavesNoRequestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(&client.Pacer{Delay: time.Minute})
		u := parse("http://a.example/")
		ctx, cancel := context.WithTimeout(t.Context(), 630*time.Second)
		defer cancel()
		served, late := 0, 0
		var mu sync.Mutex
		var workers sync.WaitGroup
		for range 100 {
			workers.Go(func() {
				err := p.Wait(ctx, u)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					served++
				} else {
					late++
				}
			})
		}
		workers.Wait()
		if served != 11 || late != 89 {
			t.Errorf("%d served and %d told, want 11 and 89", served, late)
		}
	})
}
