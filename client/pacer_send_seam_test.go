package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// paused is a site whose first page takes long and then asks for a pause, and whose
// robots.txt forbids everything from some time on.
type paused struct {
	begin  time.Time
	change time.Duration
	mu     sync.Mutex
	late   []time.Duration // pages sent after the change
	pages  int
	log    []string
}

func (b *paused) RoundTrip(req *http.Request) (*http.Response, error) {
	now := time.Since(b.begin)
	b.mu.Lock()
	b.log = append(b.log, fmt.Sprint(now.Round(time.Second), req.URL.Path))
	b.mu.Unlock()
	if req.URL.Path == "/robots.txt" {
		body := slowly
		if now >= b.change {
			body = "User-agent: *\nDisallow: /\n"
		}
		res := answer(200, "", body)
		res.Header.Set("Cache-Control", "max-age=60")
		return res, nil
	}
	b.mu.Lock()
	if now >= b.change {
		b.late = append(b.late, now)
	}
	b.pages++
	first := b.pages == 1
	b.mu.Unlock()
	if first {
		time.Sleep(100 * time.Second)
		return answer(429, "3600", ""), nil
	}
	return answer(200, "", ""), nil
}

// A request that has looked up robots.txt and is then put off by a pause of the site's is
// decided on once more when that is over: an hour is longer than what it read was good for.
func TestPacerDecidesAgainAfterAPause(t *testing.T) {
	for shift := range 12 {
		synctest.Test(t, func(t *testing.T) {
			web := &paused{begin: time.Now(), change: 200 * time.Second}
			rt := &client.Transport{Base: web, UserAgent: "ExampleBot/1.0", Cache: &cache.Cache{NoRefresh: true}, Pacer: &client.Pacer{MaxUnderway: 2}}
			var workers sync.WaitGroup
			for i := range 6 {
				workers.Go(func() {
					if i > 0 {
						time.Sleep(time.Duration(shift) * time.Second)
					}
					_, err := (&http.Client{Transport: rt}).Get(fmt.Sprint("http://a.example/", i))
					if _, no := errors.AsType[*client.DisallowedError](err); err != nil && !no {
						t.Error(err)
					}
				})
			}
			workers.Wait()
			if len(web.late) > 0 {
				t.Errorf("shift %d: sent at %v, robots.txt forbids it since %v: %v", shift, web.late, web.change, web.log)
			}
		})
	}
}

// A robots.txt that asks for more than MaxDelay while a request waits is refused to it, too.
func TestPacerRefusesWhatWaitsAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &changing{lifetime: "max-age=60", before: slowly, after: "User-agent: *\nCrawl-delay: 3600\n", change: 45 * time.Second, begin: time.Now()}
		rt := &client.Transport{Base: web, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{RefuseLongDelays: true}}
		var refused atomic.Int32
		var workers sync.WaitGroup
		for i := range 20 {
			workers.Go(func() {
				_, err := (&http.Client{Transport: rt}).Get(fmt.Sprint("http://a.example/", i))
				if _, ok := errors.AsType[*client.DelayError](err); ok {
					refused.Add(1)
				}
			})
		}
		workers.Wait()
		if n := refused.Load(); n == 0 || web.last > web.change+90*time.Second {
			t.Errorf("%d refused; a page was sent at %v, more than MaxDelay is asked for since %v", n, web.last, web.change)
		}
	})
}

// A robots.txt that goes on to answer 429, which allows, puts a request off by a pause, not for ever.
func TestPacerAPauseThatRobotsAsksForEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		web := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/robots.txt" {
				reads++
				return answer(429, "120", ""), nil
			}
			return answer(200, "", ""), nil
		})
		rt := &client.Transport{Base: web, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{}}
		defer rt.Shutdown(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
		begin := time.Now()
		_, err := (&http.Client{Transport: rt}).Do(req)
		if err != nil || time.Since(begin) > 10*time.Minute {
			t.Errorf("after %v: %v; robots.txt was read %d times", time.Since(begin), err, reads)
		}
	})
}
