package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	stream  = "CRAWL"
	subject = "crawl.%d" // of a part
	owner   = "owner"    // the one worker that has a part

	parts    = 16
	callers  = 16                     // pages under way in a worker
	pageTime = 2 * time.Second        // for robots.txt and a page
	ackTime  = 3 * pageTime           // a worker that holds a URL for longer is dead
	soon     = 100 * time.Millisecond // so near, a turn is waited for
	pinTime  = 6 * time.Second        // a worker that asks for nothing for so long has lost its parts: longer than any delay, and than a busy machine makes it late
	maxTries = 20                     // put-backs and failures of one URL, before it is given up
)

// partOf returns the part of all sites that the site of a URL belongs to.
func partOf(u *url.URL) int {
	h := fnv.New32a()
	io.WriteString(h, u.Host)
	return int(h.Sum32() % parts)
}

// put puts URLs into the queue that never were in it: JetStream drops what bears an ID that it
// knows.
func put(ctx context.Context, js jetstream.JetStream, urls ...*url.URL) error {
	for _, u := range urls {
		m := &nats.Msg{Subject: fmt.Sprintf(subject, partOf(u)), Data: []byte(u.String())}
		if _, err := js.PublishMsg(ctx, m, jetstream.WithMsgID(u.String())); err != nil {
			return err
		}
	}
	return nil
}

// worker visits pages. A site belongs to one worker at a time, so a Pacer in memory keeps its
// pace. Where a part gets another worker while the old one lives, as after the election of another NATS
// server, two may visit a site for a moment. Where that must not be, or sites cannot be divided up, Pacer.Turns
// over Redis keeps the pace.
type worker struct {
	js    jetstream.JetStream
	http  *http.Client
	gate  *client.Transport
	pacer *client.Pacer
	slots chan struct{} // a page under way takes one
	all   sync.WaitGroup

	mu   sync.Mutex
	next map[string]time.Time // when the URL of a site that was put back last comes again
}

// work is what each process does until ctx ends.
func work(ctx context.Context, natsURL, site string) error {
	conn, err := nats.Connect(natsURL, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	pacer := new(client.Pacer)
	gate := &client.Transport{
		Base:      toSites(site), // leave it out on the network
		UserAgent: fmt.Sprintf("ExampleBot/1.0 (worker %d; +https://example.com/bot)", os.Getpid()),
		Pacer:     pacer,
	}
	w := &worker{
		js: js, http: &http.Client{Transport: gate, Timeout: pageTime}, gate: gate, pacer: pacer,
		slots: make(chan struct{}, callers), next: map[string]time.Time{},
	}
	defer w.all.Wait()
	for part := range parts {
		c, err := js.Consumer(ctx, stream, consumer(part).Durable)
		if err != nil {
			return err
		}
		consuming, err := c.Consume(w.take, jetstream.PullPriorityGroup(owner), jetstream.PullMaxMessages(callers),
			jetstream.PullExpiry(time.Second))
		if err != nil {
			return err
		}
		defer consuming.Stop()
	}
	<-ctx.Done()
	return nil
}

// consumer is how the URLs of a part are handed out: to one worker, until that worker is gone.
func consumer(part int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        fmt.Sprint("part", part),
		FilterSubject:  fmt.Sprintf(subject, part),
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        ackTime,
		MaxAckPending:  -1, // URLs that were put back count
		PriorityGroups: []string{owner},
		PriorityPolicy: jetstream.PriorityPolicyPinned,
		PinnedTTL:      pinTime,
	}
}

// take visits a URL behind the caller, as soon as a slot is free. No visit waits long for a turn.
func (w *worker) take(m jetstream.Msg) {
	begin := time.Now()
	w.slots <- struct{}{}
	if time.Since(begin) > pinTime/2 { // it has asked for nothing: the part may be another's by now
		<-w.slots
		_ = m.Nak()
		return
	}
	w.all.Go(func() {
		defer func() { <-w.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), 2*pageTime)
		defer cancel()
		what, err := w.visit(ctx, m)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Println(what, string(m.Data()))
	})
}

// visit fetches a page if its site allows that now, and settles what becomes of the URL.
func (w *worker) visit(ctx context.Context, m jetstream.Msg) (what string, err error) {
	u, err := url.Parse(string(m.Data()))
	if err != nil {
		return "dropped", m.TermWithReason(err.Error())
	}
	a, err := w.gate.Decide(ctx, u)
	switch {
	case err != nil && ctx.Err() == nil: // no URL to decide on
		return "dropped", m.TermWithReason(err.Error())
	case err != nil:
		return "failed", m.NakWithDelay(pageTime)
	case !a.Allowed && a.Reason == policy.ReasonUnreachable:
		return "waits", m.NakWithDelay(time.Until(a.Until))
	case !a.Allowed:
		return "refused", m.TermWithReason(a.String())
	}
	if late, err := w.turn(ctx, u); err != nil {
		return "failed", err // comes again
	} else if late > 0 {
		return "waits", m.NakWithDelay(late)
	}
	links, err := w.get(ctx, u)
	switch refusal, _ := errors.AsType[*client.DisallowedError](err); {
	case refusal != nil:
		return "refused", m.TermWithReason(refusal.Error())
	case errors.Is(err, errGone):
		return "gone", m.TermWithReason(err.Error())
	case err != nil:
		if d, err := m.Metadata(); err != nil || d.NumDelivered > maxTries {
			return "dropped", m.TermWithReason("tried too often")
		}
		return "failed", m.NakWithDelay(w.later(u, w.pacer.Next(u)))
	}
	if err := put(ctx, w.js, links...); err != nil {
		return "failed", err // comes again
	}
	return "sent", m.DoubleAck(ctx)
}

// turn waits for a turn that comes soon; otherwise it returns how long the URL has to stay away.
func (w *worker) turn(ctx context.Context, u *url.URL) (late time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	err = w.pacer.Wait(ctx, u)
	if e, ok := errors.AsType[*client.LateError](err); ok {
		return w.later(u, e.At), nil
	}
	return 0, err
}

// later is how long to put u back whose turn comes at a time. URLs of one site come again one
// after the other, a delay apart.
func (w *worker) later(u *url.URL, at time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.next[u.Host]; ok && !last.Add(delay).Before(at) {
		at = last.Add(delay)
	}
	w.next[u.Host] = at
	return time.Until(at)
}

// errGone says that a page does not exist: to ask again would not help.
var errGone = errors.New("gone")

// get returns the links of a page.
func (w *worker) get(ctx context.Context, u *url.URL) (links []*url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500: // the Pacer knows when
		return nil, errors.New(resp.Status)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: %s", errGone, resp.Status)
	}
	return linksOf(u, io.LimitReader(resp.Body, 1<<20)), nil
}

func linksOf(base *url.URL, page io.Reader) (links []*url.URL) {
	for z := html.NewTokenizer(page); ; {
		switch z.Next() {
		case html.ErrorToken:
			return links
		case html.StartTagToken:
			for _, a := range z.Token().Attr {
				if u, err := base.Parse(a.Val); a.Key == "href" && err == nil {
					links = append(links, u)
				}
			}
		}
	}
}

// toSites dials every name to one address.
func toSites(address string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}
