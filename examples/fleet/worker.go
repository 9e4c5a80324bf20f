package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/examples/internal/links"
	"github.com/robotsgate/robotsgate/examples/internal/site"
)

const (
	stream = "{fleet}:urls"  // the next URL of each site; the braces keep all keys on one node of a cluster
	lists  = "{fleet}:site:" // and the name of a site: its URLs that are left, that in the stream first
	seen   = "{fleet}:seen"  // all URLs that ever were in a list
	group  = "workers"

	callers    = 16              // pages under way in a worker
	pageTime   = 2 * time.Second // for robots.txt, the wait for a turn, and a page
	claimAfter = 5 * time.Second // a worker that holds a URL for longer is dead; more than twice pageTime
)

// worker visits pages whose URLs it takes from the stream.
type worker struct {
	name  string
	redis redis.UniversalClient
	http  *http.Client
}

// work is what each process of the fleet does until ctx ends.
func work(ctx context.Context, name, redisURL, web string) error {
	store, err := redisstore.Open(redisURL)
	if err != nil {
		return err
	}
	robots := &cache.Cache{Store: store}
	gate := &client.Transport{
		Base:      site.Transport(web), // leave it out on the network
		UserAgent: "ExampleBot/1.0 (+https://example.com/bot)",
		Cache:     robots,
		Pacer: &client.Pacer{
			Turns: &redisturns.Store{Client: store.Client},
			Delay: delay, // leave it out on the network: one second
		},
	}
	w := &worker{name: name, redis: store.Client, http: &http.Client{Transport: gate}}
	urls := make(chan redis.XMessage)
	var all sync.WaitGroup
	all.Go(func() { w.read(ctx, urls) })
	for range callers {
		all.Go(func() {
			for m := range urls {
				if err := w.visit(ctx, m); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "worker", name, "failed:", err)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(gate.Shutdown(ctx), robots.Shutdown(ctx)) // the last closes store
}

// read passes on what the stream has for this worker.
func (w *worker) read(ctx context.Context, urls chan<- redis.XMessage) {
	defer close(urls)
	for ctx.Err() == nil {
		messages, err := w.next(ctx)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "worker", w.name, err)
			time.Sleep(time.Second) // Redis may come back
		}
		for _, m := range messages {
			urls <- m
		}
	}
}

// next returns a URL that a dead worker held, or else the next of the stream.
func (w *worker) next(ctx context.Context) ([]redis.XMessage, error) {
	abandoned, _, err := w.redis.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: stream, Group: group, Consumer: w.name, MinIdle: claimAfter, Start: "0-0", Count: 1,
	}).Result()
	if err != nil || len(abandoned) > 0 {
		return abandoned, err
	}
	read, err := w.redis.XReadGroup(ctx, &redis.XReadGroupArgs{
		Streams: []string{stream, ">"}, Group: group, Consumer: w.name, Count: 1, Block: 200 * time.Millisecond,
	}).Result()
	if err != nil || len(read) == 0 {
		if err == redis.Nil {
			err = nil // nothing new
		}
		return nil, err
	}
	return read[0].Messages, nil
}

// visit fetches a page, if its site allows that. After an error the URL stays with this worker,
// until one of the fleet claims it and tries again. (A crawler gives up after some times, which
// XPENDING counts.)
func (w *worker) visit(ctx context.Context, m redis.XMessage) error {
	page, _ := m.Values["url"].(string)
	found, err := w.get(ctx, page)
	refusal, refused := errors.AsType[*client.DisallowedError](err)
	if err != nil && (!refused || refusal.Unreachable != nil) { // with Unreachable, robots.txt could not be read now
		return err
	}
	args := append([]any{group, m.ID, siteOf(page)}, found...)
	return finish.Run(ctx, w.redis, []string{stream, seen, lists}, args...).Err()
}

// get returns the links of a page, each after its site. The gate asks robots.txt and waits for a turn.
func (w *worker) get(ctx context.Context, page string) (found []any, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for _, l := range links.Of(req.URL, resp.Body) {
		found = append(found, l.URL.Host, l.URL.String())
	}
	return found, nil
}

// finish adds links that were never seen, and ends the visit of a page: all or nothing, so a worker
// that dies loses none. A site has one URL in the stream at a time. So no worker stands in line
// for one site while another could be asked.
var finish = redis.NewScript(`
	local stream, seen, lists = KEYS[1], KEYS[2], KEYS[3]
	local group, id, site = ARGV[1], ARGV[2], ARGV[3]
	for i = 4, #ARGV, 2 do
		local its, url = lists .. ARGV[i], ARGV[i + 1]
		if redis.call('SADD', seen, url) == 1 and redis.call('RPUSH', its, url) == 1 then
			redis.call('XADD', stream, '*', 'url', url)
		end
	end
	if id ~= '' and redis.call('XACK', stream, group, id) == 1 then
		redis.call('XDEL', stream, id)
		redis.call('LPOP', lists .. site)
		local url = redis.call('LINDEX', lists .. site, 0)
		if url then redis.call('XADD', stream, '*', 'url', url) end
	end
	return 0`)

// begin makes the stream, with the first URLs, each after its site.
func begin(ctx context.Context, c redis.UniversalClient, urls []any) error {
	if err := c.XGroupCreateMkStream(ctx, stream, group, "0").Err(); err != nil {
		return err
	}
	return finish.Run(ctx, c, []string{stream, seen, lists}, append([]any{group, "", ""}, urls...)...).Err()
}

func siteOf(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	return u.Host
}
