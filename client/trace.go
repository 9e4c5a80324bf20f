package client

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Trace is a set of hooks that say what a Transport does and why, in the manner of
// httptrace.ClientTrace. Any hook may be nil. Hooks may be called by several
// goroutines at once, with no lock held and nobody waiting who a hook could wait for:
// they may use the Transport and its client themselves. What they are given is shared
// and must not be modified.
//
// A crawl does not end with a hook that panics. The first panic of each hook is logged to
// slog.Default, with its stack. What Decided was told is allowed is then not sent, with an
// error that names the panic.
//
// Close waits for the hooks that run; a closed Transport calls none.
type Trace struct {
	// Decided is called for each answer, of RoundTrip and of Decide, with the context
	// of the request or question. RoundTrip goes on when it returns.
	Decided func(context.Context, Decided)

	// Fetched is called when a robots.txt was read without a copy to validate,
	// Refreshed when there was one. Both run on a goroutine of their own, perhaps after
	// those who waited for the file have their answers.
	Fetched   func(Fetched)
	Refreshed func(Fetched)

	// Waited is called when Pacer has held a request back, after the wait, with the
	// context of the request, on a goroutine of its own.
	Waited func(context.Context, Waited)
}

// Decided says how a request or a question was answered.
type Decided struct {
	URL      *url.URL
	Target   string          // what was decided on: the request target as it goes on the wire
	Token    string          // product token that was decided for
	Decision policy.Decision // zero where there is none
	Err      error           // why robots.txt is unreachable, or why there is no Decision; else nil
	Took     time.Duration   // from question to answer, with any wait for robots.txt
}

// Fetched says what came of reading the robots.txt of one origin.
type Fetched struct {
	Origin fetch.Origin
	Result *fetch.Result // status, redirects, why it is unreachable; nil with Err
	Err    error         // why the fetch was given up, or nil
	Took   time.Duration
}

// Waited says how long a request waited for its turn.
type Waited struct {
	URL  *url.URL
	Err  error // the context's, where it ended before the turn came
	Took time.Duration
}

// load is the signature of (*fetch.Fetcher).Fetch.
type load = func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)

// hooks are the calls of Trace on goroutines of their own: whoever a hook could wait
// for must not wait for the hook.
type hooks struct {
	gate    sync.Mutex // keeps running from growing once closed
	closed  bool
	running sync.WaitGroup

	panicked sync.Map // the names of hooks whose panic is logged
}

func (h *hooks) start(name string, hook func()) {
	h.gate.Lock()
	defer h.gate.Unlock()
	if !h.closed {
		h.running.Go(func() { h.call(name, hook) })
	}
}

// run is call, here and now, unless Close has returned: then there is nothing to do.
func (h *hooks) run(name string, hook func()) error {
	h.gate.Lock()
	if h.closed {
		h.gate.Unlock()
		return nil
	}
	h.running.Add(1)
	h.gate.Unlock()
	defer h.running.Done()
	return h.call(name, hook)
}

// call calls the hook of a name, and makes an error of its panic.
func (h *hooks) call(name string, hook func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("client: Trace.%s panicked: %s", name, cut(textOf(p)))
			h.log(name, err)
		}
	}()
	hook()
	return nil
}

// log is called once for each hook: one that panics may do so for every request, and a
// handler that uses the Transport could make another panic of each.
func (h *hooks) log(name string, err error) {
	if _, logged := h.panicked.LoadOrStore(name, true); logged {
		return
	}
	defer func() { _ = recover() }() // what a handler makes of it cannot be logged
	slog.Error(err.Error(), "stack", string(debug.Stack()))
}

// textOf is what was panicked with, whose text may panic in turn.
func textOf(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T", p)
		}
	}()
	return fmt.Sprint(p)
}

// end lets no more of them start, and waits for those that run, no longer than ctx.
func (h *hooks) end(ctx context.Context) error {
	h.gate.Lock()
	h.closed = true
	h.gate.Unlock()
	ended := make(chan struct{})
	go func() {
		h.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("client: a hook of Trace has not returned: %w", ctx.Err())
	}
}

// waited is what a Pacer has to call. The place that it has given is not to be had by
// the hook's own requests, so it cannot wait for the hook.
func (t *Trace) waited(h *hooks) func(context.Context, Waited) {
	if t == nil || t.Waited == nil {
		return nil
	}
	return func(ctx context.Context, w Waited) { h.start("Waited", func() { t.Waited(ctx, w) }) }
}

// traced reports what next loads.
func (t *Trace) traced(next load, h *hooks) load {
	if t == nil || t.Fetched == nil && t.Refreshed == nil {
		return next
	}
	return func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		name, hook := "Fetched", t.Fetched
		if prev != nil {
			name, hook = "Refreshed", t.Refreshed
		}
		if hook == nil {
			return next(ctx, o, prev)
		}
		start := time.Now()
		res, err := next(ctx, o, prev)
		// The callers of this origin wait for this goroutine, and so would a hook that
		// asks about it.
		what := Fetched{Origin: o, Result: res, Err: err, Took: time.Since(start)}
		h.start(name, func() { hook(what) })
		return res, err
	}
}
