package turnstest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/memturns"
	"github.com/robotsgate/robotsgate/client/turns"
)

func TestAStoreInMemoryPasses(t *testing.T) {
	for _, c := range claims() {
		synctest.Test(t, func(t *testing.T) {
			s := new(memturns.Store)
			c.test(fleet{t.Fatalf, t.Context(), 0, "https://a0.example", s, s, timesOf(0)})
		})
	}
}

// faulty changes what goes into a store, or what comes out.
type faulty struct {
	turns.Store
	asks   func(*turns.Ask)
	news   func(*turns.Report)
	answer func(*turns.Reply)
	origin string
	never  chan struct{}
}

func (f faulty) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	if f.never != nil {
		<-f.never
	}
	if f.asks != nil {
		f.asks(&a)
	}
	if f.origin != "" {
		origin = f.origin
	}
	got, err := f.Store.Take(ctx, origin, a)
	if f.answer != nil {
		f.answer(&got)
	}
	return got, err
}

func (f faulty) Tell(ctx context.Context, origin string, n turns.Report) error {
	if f.news != nil {
		f.news(&n)
	}
	return f.Store.Tell(ctx, origin, n)
}

func TestEveryFaultIsFound(t *testing.T) {
	count := 0
	short := func(a *turns.Ask) { a.Delay -= a.Delay / 10 }
	type fault struct {
		by string
		faulty
	}
	faults := []fault{
		{"the delay runs from start to start", faulty{asks: short}},
		{"the delay runs from end to start", faulty{asks: short}},
		{"a pause holds for all", faulty{news: func(n *turns.Report) { n.Pause -= n.Pause / 10 }}},
	}
	for by, f := range map[string]faulty{
		"the delay runs from start to start":                                      {asks: func(a *turns.Ask) { a.Delay = 0 }},
		"the delay runs from end to start":                                        {news: func(n *turns.Report) { n.Event = turns.Dropped }},
		"places are bounded, and those who wait hear of one":                      {answer: func(a *turns.Reply) { a.Wake = nil }},
		"a place that is not renewed lapses":                                      {asks: func(a *turns.Ask) { a.Lease = time.Hour }},
		"a place that is renewed lasts":                                           {news: func(n *turns.Report) { n.Event = turns.Dropped }},
		"a turn whose answer was lost waits for the robots.txt that came between": {news: func(n *turns.Report) { n.Event = turns.Dropped }},
		"asking again takes no second place":                                      {asks: func(a *turns.Ask) { count++; a.Turn += string(rune('a' + count)) }},
		"the delay runs from the end of a lease":                                  {asks: func(a *turns.Ask) { a.Lease /= 3 }},
		"robots.txt is remembered for the delay that it asks for":                 {asks: func(a *turns.Ask) { a.Keep = 0 }, news: func(n *turns.Report) { n.Keep = 0 }},
		"robots.txt ends again with the delay that was learned":                   {news: func(n *turns.Report) { n.Delay = 0 }},
		"a turn can be given back":                                                {news: func(n *turns.Report) { n.Turn += "x" }},
		"those who wait go in order":                                              {asks: func(a *turns.Ask) { a.Turn = "all" }},
		"who does not come back does not hold the others up for long":             {answer: func(a *turns.Reply) { a.Taken = false; a.Wait = time.Second }},
		"a visit keeps its turn for the visitor":                                  {asks: func(a *turns.Ask) { a.Kind = turns.Page }},
		"robots.txt goes before a visitor, and a visitor before all others":       {asks: func(a *turns.Ask) { a.Kind %= turns.Robots }},
		"robots.txt waits for no place and takes one":                             {asks: func(a *turns.Ask) { a.Kind = turns.Page }},
		"a pause holds for all":                                                   {news: func(n *turns.Report) { n.Pause = 0 }},
		"pauses grow, and are halved by good answers":                             {answer: func(a *turns.Reply) { a.Strain = 0 }},
		"origins are apart":                                                       {origin: "all"},
		"of many who ask at once, one gets the turn":                              {asks: func(a *turns.Ask) { a.Delay, a.Places = 0, 0 }},
		"calls end with their context":                                            {never: make(chan struct{})},
	} {
		faults = append(faults, fault{by, f})
	}
	for _, f := range faults {
		t.Run(f.by, func(t *testing.T) {
			claim := claims()[slices.IndexFunc(claims(), func(c claim) bool { return c.name == f.by })]
			synctest.Test(t, func(t *testing.T) {
				if f.Store = new(memturns.Store); f.never != nil {
					f.never = make(chan struct{})
					defer close(f.never)
				}
				if claim.try(0, 0, f.faulty, f.faulty) == "" {
					t.Errorf("%q found nothing", f.by)
				}
			})
		})
	}
}
