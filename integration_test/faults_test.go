package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/origins"
	"github.com/robotsgate/robotsgate/policy"
)

// visit is what came of two pages of one site, asked for through the gate.
type visit struct {
	fault   origins.Fault
	dialect policy.Dialect
	sites   []*origins.Origin
	verdict origins.Verdict
	took    time.Duration
	err     error
}

// TestEveryMisbehaviourHasItsVerdict sends two pages of a site through the gate, for each
// way that a site can misbehave, and has the site say what arrived.
func TestEveryMisbehaviourHasItsVerdict(t *testing.T) {
	n, err := origins.Start(4)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()

	// Many at once: most of them wait, and t.Parallel would let two wait at a time. Not all:
	// healthy answers would be late.
	slots := make(chan struct{}, 48)
	var visits []*visit
	for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
		for i, f := range origins.Faults() {
			v := &visit{fault: f, dialect: d, sites: f.Site(fmt.Sprintf("f%d-%d.test", i, d))}
			n.Add(v.sites...)
			visits = append(visits, v)
		}
	}
	var all sync.WaitGroup
	for _, v := range visits {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			v.make(n)
		})
	}
	all.Wait()

	classes := map[int]bool{}
	for _, v := range visits {
		classes[v.fault.Class] = true
		t.Run(fmt.Sprintf("K%d/%s/%v", v.fault.Class, v.fault.Name, v.dialect), v.check)
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

func (v *visit) make(n *origins.Net) {
	base := n.Transport()
	base.TLSHandshakeTimeout, base.ResponseHeaderTimeout = 3*time.Second, 3*time.Second // patience for a busy machine
	defer base.CloseIdleConnections()
	retries := -1
	if v.fault.Retry {
		retries = 1
	}
	c := http.Client{Transport: &client.Transport{
		Base: base, UserAgent: "examplebot/1.0",
		Fetcher: &fetch.Fetcher{Dialect: v.dialect, Timeout: 6 * time.Second, AttemptTimeout: 4 * time.Second, Retries: retries},
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	start := time.Now()
	public, err := v.send(ctx, &c, "/public")
	v.took, v.err = time.Since(start), err
	private, err := v.send(ctx, &c, "/private/x")
	v.err = errors.Join(v.err, err)
	switch {
	case public && private:
		v.verdict = origins.Allow
	case public:
		v.verdict = origins.Rules
	case !private:
		v.verdict = origins.Disallow
	}
}

// send reports whether a page was sent. An error is neither that nor a refusal.
func (v *visit) send(ctx context.Context, c *http.Client, path string) (bool, error) {
	scheme := "http://"
	if v.fault.HTTPS {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+v.sites[0].Name+path, nil)
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

func (v *visit) check(t *testing.T) {
	want := v.fault.RFC9309
	if v.dialect == policy.Google {
		want = v.fault.Google
	}
	if v.err != nil {
		t.Fatal(v.err)
	}
	if v.verdict != want {
		t.Errorf("got verdict %q, want %q", v.verdict, want)
	}
	if v.took > 7*time.Second {
		t.Errorf("took %v", v.took)
	}
	hops := 0
	for i, o := range v.sites {
		c := o.Counts()
		if i == 0 && ((c.Requests["/public"] > 0) != (want != origins.Disallow) || (c.Requests["/private/x"] > 0) != (want == origins.Allow)) {
			t.Errorf("the site saw %v", c.Requests)
		}
		if len(c.Leaks) > 0 {
			t.Errorf("a request for robots.txt had %q", c.Leaks)
		}
		if c.Octets > 4<<20+64<<10 {
			t.Errorf("read %d octets", c.Octets)
		}
		for path, n := range c.Requests {
			if path != "/public" && path != "/private/x" {
				hops += n
			}
			if n > 1 && !v.fault.Retry {
				t.Errorf("%d requests for %s of %s", n, path, o.Name)
			}
		}
		if pages := c.Requests["/public"] + c.Requests["/private/x"]; c.Dials > 1+pages+len(o.Paths) {
			t.Errorf("%d dials for %v", c.Dials, c.Requests)
		}
	}
	if hops > 6 {
		t.Errorf("%d requests", hops)
	}
}
