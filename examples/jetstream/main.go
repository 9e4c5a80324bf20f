// Jetstream crawls a hundred small sites from a queue of URLs in NATS JetStream. Four processes
// take URLs from it. One is killed in the middle and comes back, and no URL is lost. See worker.go
// for what each process does.
//
// No worker waits for the turn of a site: a URL whose time has not come is put back until then.
// So it does not matter in which order URLs come, here site by site.
//
// It runs a NATS server of its own. With -nats URL it uses yours, a cluster too:
//
//	go run . -nats nats://a:4222,nats://b:4222,nats://c:4222 -replicas 3
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	workers = 4
	sites   = 100
)

func main() {
	natsURL := flag.String("nats", "", "URLs of a NATS server or cluster with JetStream; empty: one of its own")
	replicas := flag.Int("replicas", 1, "on how many servers of a cluster each URL is kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if site := os.Getenv("JETSTREAM_SITES"); site != "" {
		err = work(ctx, os.Getenv("JETSTREAM_NATS"), site)
	} else {
		err = crawl(ctx, os.Stdout, *natsURL, *replicas)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "jetstream:", err)
		os.Exit(1)
	}
}

// crawl runs the sites, the queue and the workers until no URL is left. It returns an error if
// the sites saw what they should not have seen.
func crawl(ctx context.Context, out io.Writer, natsURL string, replicas int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	web := newWeb(sites)
	defer web.server.Close()
	if natsURL == "" {
		s, err := startServer()
		if err != nil {
			return err
		}
		defer s.stop()
		natsURL = s.ClientURL()
	}
	conn, err := nats.Connect(natsURL)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	queue, err := begin(ctx, js, replicas, web.homes())
	if err != nil {
		return err
	}
	defer js.DeleteStream(context.WithoutCancel(ctx), stream)
	f := &fleet{natsURL: natsURL, site: web.server.Listener.Addr().String(), counts: map[string]int{}}
	defer f.end()
	for i := range workers {
		if err := f.start(i); err != nil {
			return err
		}
	}
	if err := f.watch(ctx, out, queue); err != nil {
		return err
	}
	f.end()
	fmt.Fprintf(out, "%d visits: %d sent, %d refused, %d gone, %d put back (%.2f a page), %d failed\n", f.visits(),
		f.counts["sent"], f.counts["refused"], f.counts["gone"], f.counts["waits"],
		float64(f.counts["waits"])/float64(f.counts["sent"]+f.counts["gone"]), f.counts["failed"])
	return web.proof(out)
}

// begin makes the queue, with the first URLs.
func begin(ctx context.Context, js jetstream.JetStream, replicas int, homes []string) (jetstream.Stream, error) {
	queue, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: stream, Subjects: []string{strings.ReplaceAll(subject, "%d", "*")}, Replicas: replicas,
		Retention:  jetstream.WorkQueuePolicy, // what is done is gone
		Duplicates: 24 * time.Hour,            // how long a URL is known; a crawler keeps them elsewhere
	})
	if err != nil {
		return nil, err
	}
	for part := range parts {
		if _, err := queue.CreateConsumer(ctx, consumer(part)); err != nil {
			return nil, err
		}
	}
	for _, home := range homes {
		u, err := url.Parse(home)
		if err != nil {
			return nil, err
		}
		if err := put(ctx, js, u); err != nil {
			return nil, err
		}
	}
	return queue, nil
}

// fleet is the worker processes.
type fleet struct {
	natsURL, site string
	running       [workers]*exec.Cmd
	hearing       sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int // visits by what became of them
}

// start runs a copy of this program, which says in a line what became of each URL.
func (f *fleet) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := exec.Command(self)
	p.Env = append(os.Environ(), "JETSTREAM_NATS="+f.natsURL, "JETSTREAM_SITES="+f.site)
	p.Stderr = os.Stderr
	said, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	f.running[i] = p
	f.hearing.Go(func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			what, _, _ := strings.Cut(lines.Text(), " ")
			f.mu.Lock()
			f.counts[what]++
			f.mu.Unlock()
		}
	})
	return nil
}

func (f *fleet) visits() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.counts {
		n += of
	}
	return n
}

// watch shows how far the crawl is until no URL is left. In the middle it kills a worker, which
// comes back.
func (f *fleet) watch(ctx context.Context, out io.Writer, queue jetstream.Stream) error {
	start, killed := time.Now(), false
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not done in time: %w", ctx.Err())
		case <-tick:
		}
		info, err := queue.Info(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%2.0f s: %d URLs left, %d visits\n", time.Since(start).Seconds(), info.State.Msgs, f.visits())
		f.mu.Lock()
		done := f.counts["sent"]
		f.mu.Unlock()
		switch {
		case info.State.Msgs == 0:
			return nil
		case !killed && done > sites*len(paths)/4:
			f.running[1].Process.Kill()
			f.running[1].Wait()
			fmt.Fprintln(out, "      a worker was killed")
			if killed, err = true, f.start(1); err != nil {
				return err
			}
			fmt.Fprintln(out, "      and came back")
		}
	}
}

// end asks all workers to end, and waits for them.
func (f *fleet) end() {
	for _, p := range f.running {
		if p != nil {
			p.Process.Signal(os.Interrupt)
		}
	}
	f.hearing.Wait()
	for _, p := range f.running {
		if p != nil {
			p.Wait()
		}
	}
}

// own is a NATS server in this process.
type own struct {
	*server.Server
	dir string
}

func startServer() (*own, error) {
	dir, err := os.MkdirTemp("", "jetstream")
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err == nil {
		s.Start()
		if !s.ReadyForConnections(10 * time.Second) {
			err = errors.New("the NATS server does not start")
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &own{s, dir}, nil
}

func (s *own) stop() {
	s.Shutdown()
	s.WaitForShutdown()
	os.RemoveAll(s.dir)
}
