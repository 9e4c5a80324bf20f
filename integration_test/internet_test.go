package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// corpusQuery is a question about a real robots.txt, with the answer of Google's library.
type corpusQuery struct{ vectors.Query }

// internet serves the real files, each under a host of its own: s0001.txt at s0001.test.
type internet struct {
	files map[string][]byte
	hosts map[string]*hostCount
}

type hostCount struct{ robots, pages atomic.Int32 }

func (i *internet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSuffix(r.Host, ".test")
	count := i.hosts[name]
	if r.RequestURI == "/robots.txt" {
		count.robots.Add(1)
		w.Write(i.files[name+".txt"])
		return
	}
	count.pages.Add(1)
	w.Header().Set("Target", r.RequestURI)
}

var dotSegment = regexp.MustCompile(`(?i)/(\.|%2e){1,2}([/;?]|$)`)

// askable is the URL that asks for q's target on the host of q's file, and why it
// cannot be asked, where net/http would send another target than the one written, or
// the gate is stricter than the library on purpose.
func (q corpusQuery) askable() (u *url.URL, why string) {
	target := vectors.Target(q.URL)
	u, err := url.Parse("http://" + strings.TrimSuffix(q.File, ".txt") + ".test" + target)
	switch {
	case err != nil:
		return nil, "no URL for net/url"
	case u.RequestURI() != target:
		return nil, "sent in another spelling"
	case strings.Contains(u.RawQuery, " "):
		return nil, "a space in the query"
	case dotSegment.MatchString(target):
		return nil, "a dot segment is refused"
	case target == "/robots.txt":
		return nil, "robots.txt is implicitly allowed (RFC 9309 §2.2.2)"
	case len(q.Agents) != 1:
		return nil, "a request has one product token"
	case strings.ContainsAny(q.Agents[0], " */("):
		return nil, "a User-Agent or a pattern is refused as a product token"
	}
	return u, ""
}

// The 500 files of the corpus as 500 hosts: 64 workers ask every question through one http.Client.
func TestASimulatedInternetIsCrawledAsGoogleWould(t *testing.T) {
	tier.Gate(t)
	queries := vectors.Queries(t)
	web := &internet{files: vectors.Corpus(t), hosts: map[string]*hostCount{}}
	for name := range web.files {
		web.hosts[strings.TrimSuffix(name, ".txt")] = new(hostCount)
	}
	server := httptest.NewServer(web)
	defer server.Close()
	base := &http.Transport{
		MaxIdleConnsPerHost: 4,
		DialContext:         dialTo(server.Listener.Addr().String()),
	}
	defer base.CloseIdleConnections()
	c := &http.Client{Transport: &client.Transport{
		Base: base, UserAgent: userAgent, Dialect: policy.Google,
	}}

	work, unasked, asked := make(chan corpusQuery), map[string]int{}, map[string]bool{}
	var workers sync.WaitGroup
	for range 64 {
		workers.Go(func() {
			for q := range work {
				if err := q.askOver(t.Context(), c); err != nil {
					t.Errorf("%s: %v", q.ID, err)
				}
			}
		})
	}
	allowed := map[string]int32{}
	for _, query := range queries {
		q := corpusQuery{query}
		if _, why := q.askable(); why != "" {
			unasked[why]++
			continue
		}
		host := strings.TrimSuffix(q.File, ".txt")
		asked[host] = true
		if q.Allowed {
			allowed[host]++
		}
		work <- q
	}
	close(work)
	workers.Wait()

	for host, n := range web.hosts {
		if got := n.robots.Load(); asked[host] && got != 1 {
			t.Errorf("%s: robots.txt was fetched %d times, want once", host, got)
		}
		if got := n.pages.Load(); got != allowed[host] {
			t.Errorf("%s: %d pages were asked for, want the %d allowed ones", host, got, allowed[host])
		}
	}
	t.Logf("%d questions, not asked: %v", len(queries), unasked)
}

// askOver sends the request and compares what happens with the library's answer.
func (q corpusQuery) askOver(ctx context.Context, c *http.Client) error {
	u, _ := q.askable()
	req, err := http.NewRequestWithContext(client.WithToken(ctx, q.Agents[0]), http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.URL = u // as it is, not as it prints
	resp, err := c.Do(req)
	if err != nil {
		refusal, ok := errors.AsType[*client.DisallowedError](err)
		if !ok || refusal.Decision.Reason != policy.ReasonRule || q.Allowed {
			return fmt.Errorf("%s for %s: %w, want allowed = %t", q.URL, q.Agents[0], err, q.Allowed)
		}
		return nil
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if !q.Allowed {
		return fmt.Errorf("%s for %s was sent, want it refused", q.URL, q.Agents[0])
	}
	if got := resp.Header.Get("Target"); got != u.RequestURI() {
		return fmt.Errorf("the server received %q, want %q", got, u.RequestURI())
	}
	return nil
}
