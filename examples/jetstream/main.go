// Jetstream crawls sites from a queue of URLs in NATS JetStream: it begins with the URLs of a file, one in a line, and
// follows links within each site, until no URL is left.
//
//	go run . -user-agent "ExampleBot/1.0 (+https://example.com/bot)" -seeds urls.txt
//
// The queue is a NATS server in this process. It and the robots.txt files that were read are kept in a folder, so an
// interrupted crawl goes on; without that folder it begins anew. Two machines share a crawl: begin the first with
// -workers 2 -host 0.0.0.0, and the second with -workers 2 -worker 2 -nats nats://FIRST:4222. Each has half of the
// sites; one that ends must be started again. With -nats both may use a cluster of your own, too.
//
// It prints what became of each URL, and counts that in expvar (-metrics). The stream DEAD keeps what was given up.
package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/links"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	stream   = "CRAWL"
	parts    = 60               // a site belongs to one of them, and a part to one worker
	callers  = 64               // URLs under way in a worker
	pageTime = 20 * time.Second // for a page
	maxTries = 20               // failures and put-backs of one URL
)

var counts = expvar.NewMap("urls") // by what became of them

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	base := fetch.PublicOnly(http.DefaultTransport.(*http.Transport)) // links are of strangers
	if err := run(ctx, base, os.Args[1:]...); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "jetstream:", err)
		os.Exit(1)
	}
}

// run crawls over base until no URL is left, or ctx ends.
func run(ctx context.Context, base *http.Transport, args ...string) error {
	flags := flag.NewFlagSet("jetstream", flag.ExitOnError)
	userAgent := flags.String("user-agent", "", "the User-Agent, with the product token and a way to reach you")
	seeds := flags.String("seeds", os.DevNull, "a file of URLs to begin with")
	address := flags.String("nats", "", "URLs of a NATS server or cluster with JetStream; empty: one of its own")
	host := flags.String("host", "127.0.0.1", "where its own server listens")
	port := flags.Int("port", 4222, "the port of its own server")
	number := flags.Int("worker", 1, "which worker this is, from 1 on")
	workers := flags.Int("workers", 1, "how many there are, each with a part of the sites")
	dir := flags.String("dir", "crawl", "the folder to keep")
	metrics := flags.String("metrics", "", "serve /debug/vars at this address")
	replicas := flags.Int("replicas", 1, "on how many servers of a cluster each URL is kept")
	flags.Parse(args)
	if *userAgent == "" {
		return errors.New("-user-agent is missing: sites must know who asks")
	}
	if *metrics != "" { // expvar registers with the default mux
		go http.ListenAndServe(*metrics, nil)
	}
	store, err := dirstore.Open(*dir)
	if err != nil {
		return err
	}
	robots := &cache.Cache{Store: store}
	defer robots.Close()
	if *address == "" {
		own, err := server.NewServer(&server.Options{
			Host: *host, Port: *port, JetStream: true, StoreDir: filepath.Join(*dir, "nats"), NoLog: true, NoSigs: true,
		})
		if err != nil {
			return err
		}
		own.Start()
		defer func() {
			for own.NumClients() > 0 && ctx.Err() == nil { // workers elsewhere have not seen the end yet
				time.Sleep(time.Second)
			}
			own.Shutdown()
			own.WaitForShutdown()
		}()
		if !own.ReadyForConnections(10 * time.Second) {
			return fmt.Errorf("NATS does not start at %s:%d: is that address taken?", *host, *port)
		}
		*address = own.ClientURL()
	}
	conn, err := nats.Connect(*address, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(pageTime)) // NATS may start again
	if err != nil {
		return err
	}
	gate := &client.Transport{Base: base, UserAgent: *userAgent, Cache: robots, Pacer: new(client.Pacer)}
	hops := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a hop is a URL of its own
	w := &worker{
		js: js, gate: gate, http: &http.Client{Transport: gate, Timeout: pageTime, CheckRedirect: hops},
		next: map[string]time.Time{},
	}
	queue, err := w.begin(ctx, *seeds, *replicas)
	if err != nil {
		return err
	}
	return w.work(ctx, queue, *number-1, *workers)
}

// worker visits the pages of its sites. They are no other worker's, so a Pacer in memory keeps their pace.
type worker struct {
	js   jetstream.JetStream
	gate *client.Transport
	http *http.Client

	mu   sync.Mutex
	next map[string]time.Time // by host: when the URL that was put back last comes again
}

// begin makes the streams, if they are not there, and puts the seeds into the queue.
func (w *worker) begin(ctx context.Context, seeds string, replicas int) (queue jetstream.Stream, err error) {
	for _, c := range []jetstream.StreamConfig{{
		Name: "DEAD", Subjects: []string{"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED." + stream + ".>"},
	}, {
		// What is done stays: a NATS server that starts again knows the URLs that are in the stream, and no others.
		Name: stream, Subjects: []string{stream + ".*"},
		Duplicates: 24 * time.Hour, // how long a URL is known; a larger crawler keeps them elsewhere
	}} {
		c.Replicas = replicas
		if queue, err = w.js.CreateOrUpdateStream(ctx, c); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(seeds)
	for line := range strings.FieldsSeq(string(text)) {
		u, err := url.Parse(line)
		if err == nil {
			err = w.put(ctx, u)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", seeds, err)
		}
	}
	return queue, err
}

// put puts a URL into the queue, unless it was there before.
func (w *worker) put(ctx context.Context, u *url.URL) error {
	u.Fragment = ""
	to := fmt.Sprint(stream, ".", crc32.ChecksumIEEE([]byte(u.Host))%parts)
	_, err := w.js.Publish(ctx, to, []byte(u.String()), jetstream.WithMsgID(u.String()))
	return err
}

// work visits the URLs of the parts from first on, step apart, until no part has any left, or ctx ends.
func (w *worker) work(ctx context.Context, queue jetstream.Stream, first, step int) error {
	var visits errgroup.Group
	visits.SetLimit(callers)
	defer visits.Wait()
	for part := first; part < parts; part += step {
		c, err := queue.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: fmt.Sprint("part", part), FilterSubject: fmt.Sprint(stream, ".", part),
			AckWait:       3 * pageTime, // a worker that holds a URL for longer is dead
			MaxAckPending: -1,           // URLs that were put back count
		})
		if err != nil {
			return err
		}
		begin := time.Now()
		if c.CachedInfo().Delivered.Consumer > 0 { // by a worker before this one, whose pace it does not know
			begin = begin.Add(30 * time.Second) // Pacer.MaxDelay
		}
		consuming, err := c.Consume(func(m jetstream.Msg) {
			time.Sleep(time.Until(begin))
			visits.Go(func() error { // waits while 64 are under way; no visit waits for a turn
				what, err := w.visit(ctx, m)
				if err != nil {
					what += ": " + err.Error()
				}
				counts.Add(what, 1)
				fmt.Println(what, string(m.Data()))
				return nil
			})
		}, jetstream.PullMaxMessages(callers))
		if err != nil {
			return err
		}
		defer consuming.Stop()
	}
	for idle := 0; idle < 2 && ctx.Err() == nil; idle++ { // twice: one may have come to a part that was asked
		time.Sleep(time.Second)
		left := parts
		for c := range queue.ListConsumers(ctx).Info() { // a part has one, once its worker has begun
			left += int(c.NumPending) + c.NumAckPending - 1
		}
		if left > 0 {
			idle = -1
		}
	}
	return ctx.Err()
}

// visit fetches a page if its turn has come, and settles what becomes of the URL.
func (w *worker) visit(ctx context.Context, m jetstream.Msg) (what string, err error) {
	u, err := url.Parse(string(m.Data()))
	if err != nil {
		return "refused", m.Ack()
	}
	turn, err := w.gate.Try(ctx, u)
	late, isLate := errors.AsType[*client.LateError](err)
	if isLate && time.Until(late.At) < 500*time.Millisecond { // so soon, it is waited for
		time.Sleep(time.Until(late.At))
		turn, err = w.gate.Try(ctx, u)
		late, isLate = errors.AsType[*client.LateError](err)
	}
	refusal, isRefusal := errors.AsType[*client.DisallowedError](err)
	switch {
	case isLate:
		return "late", m.NakWithDelay(w.later(u, late))
	case isRefusal && refusal.Reason == policy.ReasonUnreachable:
		return again(m, refusal, time.Until(refusal.Until))
	case errors.Is(err, client.ErrNotSent):
		return "refused", m.Ack()
	case err != nil: // ctx
		return "left", m.NakWithDelay(pageTime)
	}
	defer turn.End()
	ctx = context.WithoutCancel(ctx) // what is asked for once is seen to its end
	if err := w.follow(turn.Context(ctx), u); err != nil {
		return again(m, err, pageTime)
	}
	return "sent", m.DoubleAck(ctx)
}

// again puts a URL back that has failed, or gives it up: NATS itself keeps the reason in the stream DEAD.
func again(m jetstream.Msg, why error, after time.Duration) (string, error) {
	if d, err := m.Metadata(); err == nil && d.NumDelivered <= maxTries {
		return "failed", m.NakWithDelay(max(after, time.Second))
	}
	return "dead", m.TermWithReason(fmt.Sprint(string(m.Data()), " ", why))
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

// follow fetches a page and puts what it leads to into the queue: its links within the site, or a redirect's target.
func (w *worker) follow(ctx context.Context, u *url.URL) error {
	resp, err := w.http.Do((&http.Request{URL: u}).WithContext(ctx))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch to, err := resp.Location(); {
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return errors.New(resp.Status)
	case resp.StatusCode/100 == 3 && err == nil:
		return w.put(ctx, to)
	case resp.StatusCode != http.StatusOK:
		return nil // there is no page
	}
	var puts errgroup.Group // at once: a page comes again if its worker dies before they are done
	puts.SetLimit(callers)
	for _, l := range links.Of(u, resp.Body) {
		if l.URL.Host == u.Host && len(l.URL.RequestURI()) <= 16<<10 { // the gate refuses longer ones
			puts.Go(func() error { return w.put(ctx, l.URL) })
		}
	}
	return puts.Wait()
}
