package policy

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Two crawlers that ask one policy, in turns and at once, get their own groups, however
// often they ask, and the first one's is found without a search.
func TestACrawlerHasItsOwnGroup(t *testing.T) {
	p := Parse([]byte("User-agent: a\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n\nUser-agent: *\nDisallow: /c\n"))
	for name, p := range map[string]*Policy{
		"of a file": p, "nil": nil, "empty": Parse(nil), "zero": {}, "unavailable": Unavailable(), "unreachable": Unreachable(),
		"no default group": Parse([]byte("User-agent: b\nDisallow: /")),
	} {
		crawlers := map[*Crawler]Group{
			NewCrawler("a"): p.Group("a"), NewCrawler("b"): p.Group("b"), NewCrawler("x"): p.Group("x"),
			NewCrawler("x", "b"): p.Group("x", "b"), NewCrawler(""): p.Group(""),
		}
		var all sync.WaitGroup
		for c, want := range crawlers {
			all.Go(func() {
				for range 100 {
					if got := c.Group(p); got != want {
						t.Errorf("%s: group %+v for %q, want %+v", name, got, c.Token(), want)
					}
				}
			})
		}
		all.Wait()
		if p == nil {
			continue
		}
		if remembered := p.memo.Load(); (remembered != 0) != (p.names > 0) {
			t.Errorf("%s: memo is %#x", name, remembered)
		}
	}
}

// A file of thousands of names is searched once, also in the dialects that look for parts.
func TestNamesAreSearchedOnce(t *testing.T) {
	var file strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&file, "User-agent: bot%dx\n", i)
	}
	file.WriteString("Disallow: /\n")
	p, c := Original.Parse([]byte(file.String())), NewCrawler("ExampleBot")
	want := c.Group(p)
	p.names = 0 // there is nothing to be searched any more
	if got := c.Group(p); got != want || p.memo.Load() == 0 {
		t.Errorf("group %+v, then %+v", want, got)
	}
}

// More crawlers than there are ids are served all the same.
func TestACrawlerWithoutIdIsNotRemembered(t *testing.T) {
	before := crawlers.Swap(1 << 32)
	defer crawlers.Store(before)
	p := Parse([]byte("User-agent: a\nDisallow: /a\n"))
	for range 2 {
		if a, b := NewCrawler("a"), NewCrawler("b"); a.Group(p) != p.Group("a") || b.Group(p) != p.Group("b") || a.id != 0 || p.memo.Load() != 0 {
			t.Errorf("groups %+v and %+v, id %d, memo %#x", a.Group(p), b.Group(p), a.id, p.memo.Load())
		}
	}
}
