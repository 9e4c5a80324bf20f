package policy

import (
	"slices"
	"sync/atomic"
)

// A Crawler is who asks: the product token of a program, and where it has them, the
// fallbacks of Policy.Group. The first Crawler that asks a Policy for its group is
// remembered there, so that the names of a file, of which there can be thousands, are
// searched once and not for every question.
//
// Make one for the program, not one for each question. It is safe for concurrent use.
type Crawler struct {
	token     string
	fallbacks []string
	id        uint32 // never that of another Crawler; 0: not remembered
}

// crawlers counts them, so that each has an id of its own.
var crawlers atomic.Uint64

// NewCrawler returns the crawler with the product token, as Policy.Group takes it.
func NewCrawler(token string, fallbacks ...string) *Crawler {
	c := &Crawler{token: token, fallbacks: slices.Clone(fallbacks)}
	if id := crawlers.Add(1); id == uint64(uint32(id)) {
		c.id = uint32(id)
	}
	return c
}

// Token returns the product token.
func (c *Crawler) Token() string { return c.token }

// Group is p.Group(token, fallbacks...).
func (c *Crawler) Group(p *Policy) Group {
	if p != nil {
		if memo := p.memo.Load(); memo>>32 == uint64(c.id) && c.id != 0 {
			return Group{p, uint32(memo) - 1}
		}
	}
	return c.resolve(p)
}

func (c *Crawler) resolve(p *Policy) Group {
	g := p.Group(c.token, c.fallbacks...)
	// Not for another Crawler's: where two take turns, neither should write each time.
	// And not into a policy that is shared, whose group is found without a search.
	if c.id != 0 && g.p != nil && g.p.names > 0 {
		g.p.memo.CompareAndSwap(0, uint64(c.id)<<32|uint64(g.name+1))
	}
	return g
}
