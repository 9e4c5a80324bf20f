// Jetstream crawls sites from a queue of URLs in NATS JetStream: it begins with the URLs of a file, one in a line, and
// follows links within each site, until no URL is left.
//
//	go run . -user-agent "ExampleBot/1.0 (+https://example.com/bot)" -seeds urls.txt
//
// The queue is a NATS server in this process. It and the robots.txt files that were read are kept in a folder, so a crawl
// that was interrupted goes on without -seeds. Two machines share a crawl in two steps: begin the first with
// -workers 2 -host 0.0.0.0, and the second with -workers 2 -worker 2 -nats nats://FIRST:4222. Each has half of the sites;
// one that ends must be started again. With -nats both may use a cluster of your own, too.
//
// It prints what became of each URL, and counts that in expvar (-metrics). What was given up is kept in the stream DEAD.
package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// settings are the flags.
type settings struct {
	userAgent, seeds, nats, host, dir, metrics, connectTo string
	port, replicas, worker, workers                       int
}

func main() {
	var s settings
	flag.StringVar(&s.userAgent, "user-agent", "", "the User-Agent, with the product token and a way to reach you")
	flag.StringVar(&s.seeds, "seeds", "", "a file of URLs to begin with")
	flag.StringVar(&s.nats, "nats", "", "URLs of a NATS server or cluster with JetStream; empty: one of its own")
	flag.StringVar(&s.host, "host", "127.0.0.1", "where its own server listens")
	flag.IntVar(&s.port, "port", 4222, "the port of its own server")
	flag.IntVar(&s.worker, "worker", 1, "which worker this is, from 1 on")
	flag.IntVar(&s.workers, "workers", 1, "how many there are, each with a part of the sites")
	flag.StringVar(&s.dir, "dir", "crawl", "the folder to keep")
	flag.StringVar(&s.metrics, "metrics", "", "serve /debug/vars at this address")
	flag.StringVar(&s.connectTo, "connect-to", "", "connect to this address in place of any site, for a trial")
	flag.IntVar(&s.replicas, "replicas", 1, "on how many servers of a cluster each URL is kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, s); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "jetstream:", err)
		os.Exit(1)
	}
}

// run crawls until no URL is left, or ctx ends.
func run(ctx context.Context, out io.Writer, s settings) error {
	if s.userAgent == "" {
		return errors.New("-user-agent is missing: sites must know who asks")
	}
	if s.metrics != "" { // expvar registers with the default mux
		go http.ListenAndServe(s.metrics, nil)
	}
	if s.nats == "" {
		own, err := serve(s)
		if err != nil {
			return err
		}
		defer own.WaitForShutdown()
		defer own.Shutdown()
		s.nats = own.ClientURL()
	}
	conn, err := nats.Connect(s.nats, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if err := begin(ctx, js, s); err != nil {
		return err
	}
	w, err := newWorker(js, out, s)
	if err != nil {
		return err
	}
	return errors.Join(w.work(ctx), w.end())
}

// serve starts a NATS server in this process.
func serve(s settings) (*server.Server, error) {
	own, err := server.NewServer(&server.Options{
		Host: s.host, Port: s.port, JetStream: true, StoreDir: filepath.Join(s.dir, "nats"), NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	own.Start()
	if !own.ReadyForConnections(10 * time.Second) {
		own.Shutdown()
		return nil, fmt.Errorf("NATS does not start at %s:%d: is that address taken?", s.host, s.port)
	}
	return own, nil
}

// begin makes the streams, if they are not there, and puts the seeds into the queue.
func begin(ctx context.Context, js jetstream.JetStream, s settings) error {
	queue, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: stream, Subjects: []string{stream + ".*"}, Replicas: s.replicas,
		Retention:  jetstream.WorkQueuePolicy, // what is done is gone
		Duplicates: 24 * time.Hour,            // how long a URL is known; a larger crawler keeps them elsewhere
	})
	if err != nil {
		return err
	}
	for part := range parts {
		if _, err := queue.CreateOrUpdateConsumer(ctx, consumer(part)); err != nil {
			return err
		}
	}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: dead, Subjects: []string{dead}, Replicas: s.replicas})
	if err != nil || s.seeds == "" {
		return err
	}
	text, err := os.ReadFile(s.seeds)
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(string(text)) {
		u, err := url.Parse(line)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%s: %q is no URL of a site", s.seeds, line)
		}
		if err := put(ctx, js, u); err != nil {
			return err
		}
	}
	return nil
}

// counts are of URLs, by what became of them.
var counts = expvar.NewMap("urls")
