package pace

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// keeper is that of a Pacer with its fields at zero.
func keeper() *Keeper {
	return &Keeper{Delay: time.Second, MaxDelay: 30 * time.Second, MaxUnderway: 1}
}

func originOf(host string) fetch.Origin {
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: host})
	if err != nil {
		panic(err)
	}
	return o
}

var site = originOf("www.example")

// learn is Learn of a file for a reader.
func (k *Keeper) learn(reader, file string) {
	p := policy.Parse([]byte(file))
	k.Learn(site, reader, p, p.Group(reader))
}

// world is a bubble of virtual time, in which requests say what becomes of them: a line each, with the seconds since
// the beginning.
type world struct {
	*testing.T
	k     *Keeper
	begin time.Time
	all   sync.WaitGroup

	mu    sync.Mutex
	lines []string
}

// inWorld runs a script, and compares what is said with want.
func inWorld(t *testing.T, k *Keeper, script func(w *world), want ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &world{T: t, k: k, begin: time.Now()}
		script(w)
		w.all.Wait()
		if got := strings.Join(w.lines, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
		}
	})
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%g ", time.Since(w.begin).Round(time.Millisecond).Seconds())+fmt.Sprintf(format, args...))
}

// request is what a script sends. It takes a second, unless its fields say otherwise.
type request struct {
	name   string
	ask    Ask
	after  time.Duration // it is asked for
	within time.Duration // its context ends; zero: never
	header time.Duration // from the start; zero: a second
	body   time.Duration // from then on
	status int           // zero: 200; negative: none
	retry  time.Duration // Retry-After
	try    bool
}

// send sends a request, and goes on.
func (w *world) send(r request) {
	w.all.Go(func() { time.Sleep(r.after); w.do(r) })
}

func (w *world) do(r request) *Place {
	ctx, cancel := context.WithCancel(w.Context())
	if r.within != 0 {
		ctx, cancel = context.WithTimeout(w.Context(), r.within)
	}
	defer cancel()
	if r.ask.Origin == (fetch.Origin{}) {
		r.ask.Origin = site
	}
	take := w.k.Take
	if r.try {
		take = w.k.Try
	}
	p, err := take(ctx, r.ask)
	if err != nil {
		w.sayError(r.name, err)
		return nil
	}
	w.say("%s", r.name)
	p.Start()
	if r.header == 0 {
		r.header = time.Second
	}
	time.Sleep(r.header)
	if r.status == 0 {
		r.status = 200
	}
	p.Answered(max(r.status, 0), r.retry)
	time.Sleep(r.body)
	p.End()
	return p
}

func (w *world) sayError(name string, err error) {
	if l, ok := err.(*LateError); ok {
		paused := ""
		if l.Paused {
			paused = ", paused"
		}
		w.say("%s late until %g, delay %v%s", name, l.At.Sub(w.begin).Round(time.Millisecond).Seconds(), l.Delay, paused)
		return
	}
	w.say("%s: %v", name, err)
}
