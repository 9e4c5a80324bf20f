package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/policy"
)

// patience is the deadline of a caller who is to have his answer.
const patience = 5 * time.Minute

// hurries are the deadlines of callers who would rather have no answer than a late one.
var hurries = [...]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// errand is a page to be asked for.
type errand struct {
	site     *loadSite
	page     loadPage
	deadline time.Duration
}

func (e errand) String() string {
	return fmt.Sprintf("%s%s of %s, within %v", e.site.origins[0].Name, e.page.path, e.site, e.deadline)
}

// crowd are callers that ask for pages through one client, and check what they get.
type crowd struct {
	client http.Client

	sent, refused, unreachable, gaveUp atomic.Int64
}

func (c *crowd) String() string {
	return fmt.Sprintf("sent %d, refused by a rule %d, refused as unreachable %d, given up %d",
		c.sent.Load(), c.refused.Load(), c.unreachable.Load(), c.gaveUp.Load())
}

// run does all work and returns how long it took.
func (c *crowd) run(t *testing.T, callers int, work []errand) time.Duration {
	start := time.Now()
	queue := make(chan errand)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for e := range queue {
				c.ask(t, e)
			}
		})
	}
	for _, e := range work {
		queue <- e
	}
	close(queue)
	all.Wait()
	return time.Since(start).Round(time.Millisecond)
}

// ask does one errand, and compares what comes of it with what has to.
func (c *crowd) ask(t *testing.T, e errand) {
	ctx, cancel := context.WithTimeout(context.Background(), e.deadline)
	defer cancel()
	err := c.send(ctx, e.site.scheme+"://"+e.site.origins[0].Name+e.page.path)

	refusal, _ := errors.AsType[*client.DisallowedError](err)
	switch {
	case err == nil:
		c.sent.Add(1)
		if !e.page.allowed {
			t.Errorf("%s was sent", e)
		}
	case refusal != nil && e.site.verdict == origins.Disallow:
		c.unreachable.Add(1)
		if refusal.Decision.Reason != policy.ReasonUnreachable {
			t.Errorf("%s: %v, want it unreachable", e, refusal)
		}
	case refusal != nil:
		c.refused.Add(1)
		if e.page.allowed || refusal.Decision.Reason != policy.ReasonRule {
			t.Errorf("%s: %v", e, refusal)
		}
	case ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) && e.deadline < patience:
		c.gaveUp.Add(1)
	default:
		t.Errorf("%s: %v", e, err)
	}
}

// send asks for a page, with credentials that are for it alone, and reads it.
func (c *crowd) send(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for _, field := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Referer"} {
		req.Header.Set(field, "http://secret.test/")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && string(body) != "a page\n" {
		err = fmt.Errorf("body is %q", body)
	}
	return err
}
