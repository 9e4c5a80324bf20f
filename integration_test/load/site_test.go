package load_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
)

// loadSite is a site, what is asked of it, and what has to come of that.
type loadSite struct {
	kind    string // of misbehaviour
	verdict origins.Verdict
	scheme  string
	origins []*origins.Origin // the first is the site
	pages   []loadPage
}

type loadPage struct {
	path    string
	allowed bool
}

// healthySite has rules of its own for us, others for everybody else, and a page that
// only the rules of its neighbour forbid.
func healthySite(i int) *loadSite {
	file := fmt.Sprintf("User-agent: *\nDisallow: /\n\nUser-agent: ExampleBot\nDisallow: /private\nDisallow: /only-%d/\n", i)
	return &loadSite{
		kind: "a healthy site", verdict: origins.Rules, scheme: "http",
		origins: []*origins.Origin{{
			Name:  fmt.Sprintf("o%d.test", i),
			Paths: map[string][]origins.Program{"/robots.txt": {{origins.Write(origins.Reply(200, file))}}},
		}},
		pages: []loadPage{
			{"/", true}, {"/public", true}, {fmt.Sprintf("/only-%d/x", i+1), true},
			{"/private/x", false}, {fmt.Sprintf("/only-%d/x", i), false},
		},
	}
}

// hostileSites are n sites that misbehave, spread evenly over all classes and within
// each over its variants.
func hostileSites(n int) []*loadSite {
	classes := map[int][]origins.Fault{}
	for _, f := range origins.Faults() {
		classes[f.Class] = append(classes[f.Class], f)
	}
	var sites []*loadSite
	for i := range n {
		variants := classes[1+i%len(classes)]
		f := variants[i/len(classes)%len(variants)]
		sites = append(sites, faultSite(f, fmt.Sprintf("k%d-%d.test", f.Class, i)))
	}
	return sites
}

func faultSite(f origins.Fault, name string) *loadSite {
	s := &loadSite{kind: fmt.Sprintf("K-%d (%s)", f.Class, f.Name), scheme: "http", origins: f.Site(name)}
	if f.HTTPS {
		s.scheme = "https"
	}
	return s.turned(f.RFC9309)
}

// turned is the site under another verdict, where that is rules those of origins.File.
func (s *loadSite) turned(v origins.Verdict) *loadSite {
	turned := *s
	turned.verdict, turned.pages = v, nil
	for _, path := range []string{"/", "/public", "/public/x", "/private", "/private/x"} {
		allowed := v == origins.Allow || v == origins.Rules && !strings.HasPrefix(path, "/private")
		turned.pages = append(turned.pages, loadPage{path, allowed})
	}
	return &turned
}

func (s *loadSite) String() string { return s.kind }

// checkSites looks at what the servers saw in the time that a phase took: they know best
// what was sent.
func checkSites(t *testing.T, sites []*loadSite, took time.Duration) {
	t.Helper()
	forbidden := 0
	// The first time that a site is unreachable it is left alone for 30 s, give or take a fifth.
	resolutions := 1 + int(took/(24*time.Second))
	for _, s := range sites {
		for _, o := range s.origins {
			c, pages := o.Counts(), 0
			for path, n := range c.Requests {
				if _, robots := o.Paths[path]; robots || path == "/robots.txt" {
					continue
				}
				pages += n
				if o != s.origins[0] || !slices.Contains(s.pages, loadPage{path, true}) {
					forbidden += n
					t.Errorf("%s: %s saw %d requests for %s", s, o.Name, n, path)
				}
			}
			if len(c.Leaks) > 0 {
				t.Errorf("%s: a request for robots.txt had %q", s, c.Leaks)
			}
			// Each URL may be asked for twice, and each page needs one connection at most; callers who gave up may have
			// had one as well, of which a site has few.
			const gaveUp = 3
			if most := resolutions*2*max(1, len(o.Paths)) + pages + gaveUp; c.Dials > most {
				t.Errorf("%s: %s was dialled %d times, want %d at most", s, o.Name, c.Dials, most)
			}
		}
	}
	t.Logf("forbidden requests that the servers saw: %d", forbidden)
}
