package policy

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// botName is a name of letters only, since the Google dialect knows no others.
func botName(i int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%04d", i)) + "-bot"
}

// manyNames is a file with a group for each of 5000 names, and a default one.
func manyNames(d Dialect) *Policy {
	var file strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&file, "User-agent: %s\nDisallow: /%d\n\n", botName(i), i)
	}
	file.WriteString("User-agent: *\nDisallow: /\n")
	return d.Parse([]byte(file.String()))
}

// A file of thousands of names is searched once for a crawler.
func TestNamesAreSearchedOnce(t *testing.T) {
	for _, d := range []Dialect{RFC9309, Google, Yandex, Bing, Original} {
		for token, want := range map[string]string{botName(7): botName(7), "ExampleBot": "*"} {
			p := manyNames(d)
			first := p.Group(token)
			if first.Token() != want {
				t.Fatalf("%v: group %q", d, first.Token())
			}
			p.tab = nil // nothing is left to search
			if again := p.Group(token); again != first {
				t.Errorf("%v: %+v, then %+v", d, first, again)
			}
		}
	}
}

// However many crawlers ask one policy at once, each gets its own group, and the policy
// does not grow with them.
func TestMoreCrawlersThanAreRememberedGetTheirGroups(t *testing.T) {
	p := manyNames(RFC9309)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for range 100 {
				for _, token := range []string{botName(i), strings.ToUpper(botName(i))} {
					if got, want := p.Group(token).Token(), botName(i); got != want {
						t.Errorf("%q gets %q, want %q", token, got, want)
					}
				}
			}
		})
	}
	all.Wait()
	if f := p.memo.Load(); f == nil || f.token == "" || len(f.token) > maxToken || f.name != p.search(f.token, nil) {
		t.Errorf("%+v is remembered", f)
	}
	for i := range 2 {
		token := botName(i)
		if allocs := testing.AllocsPerRun(10, func() { p.Group(token) }); allocs > 0 {
			t.Errorf("the group of %q takes %v allocations each time", token, allocs)
		}
	}
}

// What is remembered is not what was asked: that may be a part of a stranger's header, or
// as long as one.
func TestWhatIsRememberedIsShortAndACopy(t *testing.T) {
	p := manyNames(RFC9309)
	for _, token := range []string{"", strings.Repeat("x", maxToken+1), strings.Repeat("x", 1<<20)} {
		if got := p.Group(token); got.Token() != "*" || p.memo.Load() != nil {
			t.Errorf("a token of %d bytes: %q, and remembered", len(token), got.Token())
		}
	}
	header := []byte("ExampleBot/1.0 and a lot more")
	p.Group(view(header[:10]))
	copy(header, "AnotherBot")
	if f := p.memo.Load(); f == nil || f.token != "ExampleBot" {
		t.Errorf("remembered is %+v", f)
	}
}

// A crawler that is remembered without fallbacks may ask with some.
func TestFallbacksCountInAFileOfManyNames(t *testing.T) {
	p := manyNames(RFC9309)
	for range 2 {
		if a, b := p.Group("ExampleBot").Token(), p.Group("ExampleBot", botName(7)).Token(); a != "*" || b != botName(7) {
			t.Errorf("groups %q, and %q with a fallback to %q", a, b, botName(7))
		}
	}
}

// A question about one of many policies waits for each line of memory that it reads.
func TestAPolicyIsALineOfMemory(t *testing.T) {
	if size := unsafe.Sizeof(Policy{}); size > 64 {
		t.Errorf("a Policy takes %d bytes, want 64", size)
	}
}
