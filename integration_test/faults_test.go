package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// visit is what came of asking for two pages of one site through the gate.
type visit struct {
	https   bool
	sites   []*origins.Origin // the first is the one
	fetcher *fetch.Fetcher
	dialect policy.Dialect

	verdict origins.Verdict
	why     error         // the file is unreachable
	took    time.Duration // until the gate had decided on the first page
	bytes   int64         // read by then
	err     error
}

// unhurried is for a busy machine, where what is served is not to be late: half of it is for one answer.
const unhurried = 30 * time.Second

// run makes visits, many at once: most of them wait, and t.Parallel would let two wait at
// a time. Not all at once: healthy answers would be late.
func run(n *origins.Net, visits []*visit) {
	slots := make(chan struct{}, 48)
	var all sync.WaitGroup
	for _, v := range visits {
		n.Add(v.sites...)
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			base := n.Transport()
			if v.fetcher.Timeout == unhurried && v.fetcher.Retries < 0 { // whose only try is as patient as the rest
				base.DialContext, base.TLSHandshakeTimeout, base.ResponseHeaderTimeout = n.DialContext, 0, 0
			}
			v.make(base)
		})
	}
	all.Wait()
}

// make asks the gate, and then sends the pages whatever it said.
func (v *visit) make(base *http.Transport) {
	defer base.CloseIdleConnections()
	v.fetcher.Transport, v.fetcher.UserAgent = base, "examplebot/1.0"
	pages := base.Clone() // is only as patient as the context: a busy machine is late, and the pages are no fault
	defer pages.CloseIdleConnections()
	pages.TLSHandshakeTimeout, pages.ResponseHeaderTimeout = 0, 0
	gate := &client.Transport{Base: pages, UserAgent: v.fetcher.UserAgent, Dialect: v.dialect, Fetcher: v.fetcher}
	ctx, cancel := context.WithTimeout(context.Background(), 2*unhurried)
	defer cancel()
	start := time.Now()
	first, err := gate.Decide(ctx, v.page("/public"))
	v.why, v.took = first.Unreachable, time.Since(start)
	for _, o := range v.sites {
		v.bytes += o.Counts().Bytes
	}
	c := &http.Client{Transport: gate}
	public, err1 := v.send(ctx, c, "/public")
	private, err2 := v.send(ctx, c, "/private/x")
	switch {
	case public != first.Allowed:
		v.verdict = "another for the page than for the question"
	case public && private:
		v.verdict = origins.Allow
	case public:
		v.verdict = origins.Rules
	case !private:
		v.verdict = origins.Disallow
	}
	v.err = errors.Join(err, err1, err2)
}

func (v *visit) page(path string) *url.URL {
	u := &url.URL{Scheme: "http", Host: v.sites[0].Name, Path: path}
	if v.https {
		u.Scheme = "https"
	}
	return u
}

// send reports whether a page was sent. An error is neither that nor a refusal.
func (v *visit) send(ctx context.Context, c *http.Client, path string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.page(path).String(), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Basic c2VjcmV0")
	req.Header.Set("Cookie", "secret=1")
	req.Header.Set("Referer", "http://secret.test/")
	res, err := c.Do(req)
	if _, refused := errors.AsType[*client.DisallowedError](err); refused {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return true, err
}

// check asserts the verdict, by what was sent and by what the site saw, and returns how
// many requests for the file itself there were: of the URL asked most, and of all.
func (v *visit) check(t *testing.T, want origins.Verdict) (most, all int) {
	t.Helper()
	if v.err != nil {
		t.Fatal(v.err)
	}
	if v.verdict != want {
		t.Errorf("got verdict %q, want %q (%v)", v.verdict, want, v.why)
	}
	for i, o := range v.sites {
		c := o.Counts()
		public, private := c.Requests["/public"], c.Requests["/private/x"]
		if i == 0 && ((public > 0) != (want != origins.Disallow) || (private > 0) != (want == origins.Allow)) {
			t.Errorf("the site saw %v", c.Requests)
		}
		if len(c.Leaks) > 0 {
			t.Errorf("a request for robots.txt had %q", c.Leaks)
		}
		for path, n := range c.Requests {
			if path != "/public" && path != "/private/x" {
				most, all = max(most, n), all+n
			}
		}
	}
	return most, all
}

// TestEveryMisbehaviourHasItsVerdict sends two pages of a site through the gate, for each
// way that a site can misbehave, and has the site say what arrived.
func TestEveryMisbehaviourHasItsVerdict(t *testing.T) {
	tier.Gate(t)
	aside(t)
	n, err := origins.Start(4)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	faults, dialects := origins.Faults(), []policy.Dialect{policy.RFC9309, policy.Google}
	var visits []*visit
	for i, f := range faults {
		for _, d := range dialects {
			retries := -1
			if f.Retry {
				retries = 1
			}
			timeout := unhurried
			if f.RFC9309 == origins.Disallow && f.Google == origins.Disallow {
				timeout = 3 * time.Second // what comes too late is disallowed, too
			}
			visits = append(visits, &visit{
				https: f.HTTPS, sites: f.Site(fmt.Sprintf("f%d-%d.test", i, d)),
				fetcher: &fetch.Fetcher{Timeout: timeout, Retries: retries}, dialect: d,
			})
		}
	}
	late := proc.WatchMachine()
	run(n, visits)
	slack := time.Second + 4*late()

	classes := map[int]bool{}
	for i, v := range visits {
		f, d := faults[i/2], dialects[i%2]
		classes[f.Class] = true
		want := f.RFC9309
		if d == policy.Google {
			want = f.Google
		}
		t.Run(fmt.Sprintf("K%d/%s/%v", f.Class, f.Name, d), func(t *testing.T) {
			most, all := v.check(t, want)
			if most > 1 && !f.Retry || most > 2 || all > 6 {
				t.Errorf("asked %d times for the file, %d for one URL", all, most)
			}
			if v.took > v.fetcher.Timeout+slack || v.bytes > 4<<20+64<<10 {
				t.Errorf("took %v and %d bytes", v.took, v.bytes)
			}
		})
	}
	for k := 1; k <= 60; k++ {
		if !classes[k] {
			t.Errorf("no fault of class %d", k)
		}
	}
	if strays := n.Strays(); len(strays) > 0 {
		t.Errorf("dialled %q", strays)
	}
}
