package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

// How long a site is left alone after an answer. Each row is a request after the other; without a Retry-After a pause is
// as long as the row says, give or take a fifth.
func TestBackOff(t *testing.T) {
	type answer struct {
		status int
		retry  time.Duration
		robots bool
		pause  time.Duration // 0: no more than the delay
	}
	page := func(status int, retry, pause time.Duration) answer { return answer{status, retry, false, pause} }
	robots := func(status int, pause time.Duration) answer { return answer{status, 0, true, pause} }
	const m, h = time.Minute, time.Hour
	for _, tt := range []struct {
		name    string
		delay   time.Duration
		answers []answer
	}{
		{"good answers", s, []answer{page(200, 0, 0), page(404, 0, 0), page(304, h, 0), page(101, 0, 0)}},
		{"Retry-After", s, []answer{page(429, m, m), page(503, 2*m, 2*m), page(500, h, h), page(200, 0, 0)}},
		{"a day at most", s, []answer{page(503, 1000*h, 24*h)}},
		{"without one, pauses grow and are halved", s, []answer{page(503, 0, 2*s), page(429, 0, 4*s), page(0, 0, 8*s), page(200, 0, 4*s), page(599, 0, 8*s), page(200, 0, 4*s), page(200, 0, 2*s), page(200, 0, 0)}},
		{"from twice the delay", 10 * s, []answer{page(503, 0, 20*s), page(503, 0, 40*s)}},
		{"without a delay", 0, []answer{page(503, 0, 2*s), page(503, 0, 4*s)}},
		{"to an hour", 10 * m, []answer{page(503, 0, 20*m), page(503, 0, 40*m), page(503, 0, h), page(503, 0, h), page(200, 0, 40*m), page(200, 0, 20*m), page(200, 0, 0)}},
		{"Retry-After lets no pause grow", s, []answer{page(503, 0, 2*s), page(503, m, m), page(503, 0, 4*s)}},
		{"failures of robots.txt in a row are one", s, []answer{robots(503, 2*s), robots(503, 2*s), robots(0, 2*s), page(503, 0, 4*s), robots(429, 4*s)}},
		{"which a good one ends", s, []answer{robots(503, 2*s), robots(200, 0), robots(503, 2*s)}},
		{"a good page does not", s, []answer{robots(503, 2*s), page(200, 0, 0), robots(503, 2*s), robots(503, 2*s)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := keeper()
				k.Delay = tt.delay
				for i, a := range tt.answers {
					p, err := k.Take(t.Context(), Ask{Origin: site, Robots: a.robots})
					if err != nil {
						t.Fatal(err)
					}
					p.Start()
					p.Answered(a.status, a.retry)
					p.End()
					late := k.Next(site)
					got := time.Until(late.At)
					low, high := a.pause*4/5, a.pause*6/5
					if a.retry > 0 {
						low, high = a.pause, a.pause
					}
					if low, high = max(low, tt.delay), max(high, tt.delay); got < low || got > high || late.Paused != (a.pause > 0) {
						t.Errorf("answer %d, %+v: next in %v, paused %t; want %v to %v", i, a, got, late.Paused, low, high)
					}
				}
			})
		})
	}
}

func TestWhatFailsTogetherIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.MaxUnderway = 0
		var all []*Place
		for range 5 {
			p, _ := k.Take(t.Context(), Ask{Origin: site})
			p.Start()
			all = append(all, p)
		}
		time.Sleep(s)
		for _, p := range all {
			p.Answered(503, 0)
			p.End()
			time.Sleep(time.Nanosecond)
		}
		if got := time.Until(k.Next(site).At); got < 1600*time.Millisecond-5 || got > 2400*time.Millisecond {
			t.Errorf("next in %v, want some 2s", got)
		}
		if got := k.known(site).failures; got != 1 {
			t.Errorf("%d failures", got)
		}
	})
}

// Those who wait learn of a pause at once, and of its end.
func TestAPauseHoldsForAll(t *testing.T) {
	robots := Ask{Robots: true}
	inWorld(t, keeper(), func(w *world) {
		w.send(request{name: "a", status: 503, retry: 10 * s})
		w.send(request{name: "b", after: 1, within: 5 * s})
		w.send(request{name: "try", after: 2 * s, try: true})
		w.send(request{name: "c", after: 2*s + 1})
		w.send(request{name: "robots", after: 3 * s, ask: robots})
		w.send(request{name: "other", after: 3 * s, ask: Ask{Origin: originOf("other.example")}})
	}, "0 a", "1 b late until 11, delay 1s, paused", "2 try late until 11, delay 1s, paused", "3 other", "11 robots", "13 c")
}

func TestAShorterRetryAfterEndsNoLongerOne(t *testing.T) {
	k := keeper()
	k.MaxUnderway = 2
	inWorld(t, k, func(w *world) {
		w.send(request{name: "a", header: 2 * s, status: 503, retry: 60 * s})
		w.send(request{name: "b", after: 1, header: 2 * s, status: 503, retry: 5 * s})
		w.send(request{name: "c", after: 2})
	}, "0 a", "1 b", "62 c")
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		p, _ := k.Take(t.Context(), Ask{Origin: site})
		before := p.Delay()
		k.learn("bot", "user-agent: *\ncrawl-delay: 5")
		if after := p.Delay(); before != s || after != 5*s {
			t.Errorf("%v, and %v when learned", before, after)
		}
		p.End()
	})
}
