package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/net/html"
	"golang.org/x/sync/errgroup"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	stream, dead = "CRAWL", "DEAD"

	parts    = 60                     // a site belongs to one of them, and a part to one worker
	callers  = 64                     // URLs under way in a worker
	pageTime = 20 * time.Second       // for a page
	ackTime  = 3 * pageTime           // a worker that holds a URL for longer is dead
	longest  = 30 * time.Second       // Pacer.MaxDelay
	maxTries = 20                     // failures and put-backs of one URL
	soon     = 500 * time.Millisecond // so near, a turn is waited for
)

// worker visits the pages of its sites. They are no other worker's, so a Pacer in memory keeps their pace.
type worker struct {
	js     jetstream.JetStream
	first  int // of its parts; they are step apart
	step   int
	http   *http.Client
	gate   *client.Transport
	robots *cache.Cache
	log    *log.Logger
	visits errgroup.Group

	mu   sync.Mutex
	next map[string]time.Time // by host: when the URL that was put back last comes again
}

func newWorker(js jetstream.JetStream, out io.Writer, s settings) (*worker, error) {
	store, err := dirstore.Open(filepath.Join(s.dir, "robots"))
	if err != nil {
		return nil, err
	}
	base := fetch.PublicOnly(http.DefaultTransport.(*http.Transport)) // links are of strangers
	if s.connectTo != "" {
		base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.connectTo)
		}
	}
	robots := &cache.Cache{Store: store}
	gate := &client.Transport{Base: base, UserAgent: s.userAgent, Cache: robots, Pacer: new(client.Pacer)}
	hops := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a hop is a URL of its own
	w := &worker{
		js: js, first: s.worker - 1, step: s.workers, http: &http.Client{Transport: gate, Timeout: pageTime, CheckRedirect: hops}, gate: gate, robots: robots,
		log: log.New(out, "", 0), next: map[string]time.Time{},
	}
	w.visits.SetLimit(callers)
	return w, nil
}

// end leaves nothing behind.
func (w *worker) end() error {
	w.visits.Wait()
	return errors.Join(w.gate.Close(), w.robots.Close())
}

// work takes URLs until none is left, or ctx ends.
func (w *worker) work(ctx context.Context) error {
	for part := w.first; part < parts; part += w.step {
		c, err := w.js.Consumer(ctx, stream, consumer(part).Durable)
		if err != nil {
			return err
		}
		begin := time.Now()
		if c.CachedInfo().Delivered.Consumer > 0 { // by a worker before this one, whose pace it does not know
			begin = begin.Add(longest)
		}
		consuming, err := c.Consume(func(m jetstream.Msg) {
			time.Sleep(time.Until(begin))
			w.take(ctx, m)
		}, jetstream.PullMaxMessages(callers))
		if err != nil {
			return err
		}
		defer consuming.Stop()
	}
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
		queue, err := w.js.Stream(ctx, stream)
		if err == nil && queue.CachedInfo().State.Msgs == 0 {
			return nil
		}
	}
}

// consumer is how the URLs of a part are handed out.
func consumer(part int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: fmt.Sprint("part", part), FilterSubject: fmt.Sprint(stream, ".", part),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackTime,
		MaxAckPending: -1, // URLs that were put back count
	}
}

// put puts a URL into the queue, unless it was there before.
func put(ctx context.Context, js jetstream.JetStream, u *url.URL) error {
	u.Fragment = ""
	h := fnv.New32a()
	io.WriteString(h, u.Host)
	m := &nats.Msg{Subject: fmt.Sprint(stream, ".", h.Sum32()%parts), Data: []byte(u.String())}
	_, err := js.PublishMsg(ctx, m, jetstream.WithMsgID(u.String()))
	return err
}

// take visits a URL behind the caller, as soon as less than 64 are under way. No visit waits for a turn.
func (w *worker) take(ctx context.Context, m jetstream.Msg) {
	w.visits.Go(func() error {
		what, err := w.visit(ctx, m)
		if err != nil {
			what += ": " + err.Error()
		}
		counts.Add(what, 1)
		w.log.Println(what, string(m.Data()))
		return nil
	})
}

// visit fetches a page if its turn has come, and settles what becomes of the URL.
func (w *worker) visit(ctx context.Context, m jetstream.Msg) (what string, err error) {
	u, err := url.Parse(string(m.Data()))
	if err != nil {
		return "refused", m.TermWithReason(err.Error())
	}
	turn, err := w.turn(ctx, u)
	late, isLate := errors.AsType[*client.LateError](err)
	refusal, isRefusal := errors.AsType[*client.DisallowedError](err)
	switch {
	case isLate:
		return "late", m.NakWithDelay(w.later(u, late))
	case isRefusal && refusal.Reason == policy.ReasonUnreachable:
		return w.again(ctx, m, refusal, time.Until(refusal.Until))
	case errors.Is(err, client.ErrNotSent):
		return "refused", m.TermWithReason(err.Error())
	case err != nil: // ctx
		return "left", m.Nak()
	}
	defer turn.End()
	found, err := w.get(turn.Context(ctx), u)
	if err != nil {
		return w.again(ctx, m, err, pageTime)
	}
	for _, u := range found {
		if err := put(ctx, w.js, u); err != nil {
			return "left", m.Nak()
		}
	}
	return "sent", m.DoubleAck(ctx)
}

// turn asks for the turn of u, and waits for one that comes soon.
func (w *worker) turn(ctx context.Context, u *url.URL) (*client.Turn, error) {
	turn, err := w.gate.Try(ctx, u)
	if late, ok := errors.AsType[*client.LateError](err); ok && time.Until(late.At) < soon {
		ctx, cancel := context.WithTimeout(ctx, 2*soon)
		defer cancel()
		return w.gate.Turn(ctx, u)
	}
	return turn, err
}

// again puts a URL back that has failed, or gives it up: the stream DEAD keeps it, with the reason.
func (w *worker) again(ctx context.Context, m jetstream.Msg, why error, after time.Duration) (string, error) {
	if d, err := m.Metadata(); err == nil && d.NumDelivered <= maxTries {
		return "failed", m.NakWithDelay(max(after, time.Second))
	}
	if _, err := w.js.Publish(ctx, dead, fmt.Append(nil, string(m.Data()), " ", why)); err != nil {
		return "left", err // it comes again
	}
	return "dead", m.TermWithReason(why.Error())
}

// later is how long to put u back. URLs of one site come again one after the other, a delay apart.
func (w *worker) later(u *url.URL, late *client.LateError) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := late.At
	if next := w.next[u.Host].Add(late.Delay); next.After(at) {
		at = next
	}
	w.next[u.Host] = at
	return time.Until(at)
}

// get returns what a page leads to: its links within the site, or the target of a redirect.
func (w *worker) get(ctx context.Context, u *url.URL) (found []*url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch to, err := resp.Location(); {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return nil, errors.New(resp.Status)
	case resp.StatusCode/100 == 3 && err == nil:
		return []*url.URL{to}, nil
	case resp.StatusCode != http.StatusOK:
		return nil, nil // there is no page
	}
	return linksOf(u, io.LimitReader(resp.Body, 1<<20)), nil
}

// linksOf returns the links of a page within its site.
func linksOf(base *url.URL, page io.Reader) (links []*url.URL) {
	for z := html.NewTokenizer(page); ; {
		switch z.Next() {
		case html.ErrorToken:
			return links
		case html.StartTagToken:
			for _, a := range z.Token().Attr {
				if u, err := base.Parse(a.Val); a.Key == "href" && err == nil && u.Host == base.Host {
					links = append(links, u)
				}
			}
		}
	}
}
