// Package redisbatch sends the commands of concurrent callers to Redis together: a thousand
// callers of one moment cost a few round trips.
//
// It is public because redisstore and redisturns share it. Programs use those.
package redisbatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// few is how many pipelines wait for their answers at a time: more would each carry less.
	// While none is answered, because the server is far away, another goes out every so often.
	few, often = 2, 25 * time.Millisecond

	// maxCommands bounds what one pipeline carries, and so what a long answer holds up.
	maxCommands = 128

	// longest is how long a pipeline waits for its answers, unless all its callers have
	// earlier deadlines.
	longest = 5 * time.Second
)

// Batch holds the commands that are about to be sent. The zero value is ready to use, and safe for
// concurrent use. A command waits only while others are on their way: one alone is sent at once.
type Batch struct {
	mu       sync.Mutex
	waiting  []*call
	underway int
	overdue  *time.Timer // sends what has waited for too long; nil: nothing waits
}

// call is a command and its caller, who waits for the answer.
type call struct {
	ctx  context.Context
	cmd  redis.Cmder
	done chan struct{} // closed when cmd has its answer
}

// Do sends a command about one key and waits for its answer, no longer than ctx. The error comes
// from the answer or from ctx. If it comes from ctx, the caller must not use cmd any more.
func (b *Batch) Do(ctx context.Context, c redis.UniversalClient, cmd redis.Cmder) error {
	own := &call{ctx, cmd, make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, own)
	switch {
	case b.underway < few:
		b.underway++
		go b.send(c)
	case b.overdue == nil:
		b.overdue = time.AfterFunc(often, func() { b.another(c) })
	}
	b.mu.Unlock()
	select {
	case <-own.done:
		return cmd.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run is Do for a script. If the server does not know the script, Run sends it whole.
func (b *Batch) Run(ctx context.Context, c redis.UniversalClient, script *redis.Script, key string,
	args ...any,
) *redis.Cmd {
	cmd := redis.NewCmd(ctx, append([]any{"evalsha", script.Hash(), 1, key}, args...)...)
	switch err := b.Do(ctx, c, cmd); {
	case redis.HasErrorPrefix(err, "NOSCRIPT"):
		return script.Eval(ctx, c, []string{key}, args...)
	case err != nil:
		cmd = redis.NewCmd(ctx)
		cmd.SetErr(err)
	}
	return cmd
}

// another adds a sender, for what the others have left waiting.
func (b *Batch) another(c redis.UniversalClient) {
	b.mu.Lock()
	b.overdue = nil
	b.underway++
	b.mu.Unlock()
	b.send(c)
}

// send sends what waits, until nothing does.
func (b *Batch) send(c redis.UniversalClient) {
	for calls := b.take(c); calls != nil; calls = b.take(c) {
		exchange(c, calls)
	}
}

// take returns the calls to send next, or nil if this sender should end.
func (b *Batch) take(c redis.UniversalClient) []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxCommands)
	if n == 0 {
		b.underway--
		b.waiting = nil
		return nil
	}
	calls := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	if b.overdue != nil {
		b.overdue.Stop()
		b.overdue = nil
	}
	if len(b.waiting) > 0 {
		b.overdue = time.AfterFunc(often, func() { b.another(c) })
	}
	return calls
}

// exchange sends commands and reads their answers, while any caller waits for them.
func exchange(c redis.UniversalClient, calls []*call) {
	var latest time.Time
	pipe := c.Pipeline()
	for _, one := range calls {
		if err := one.ctx.Err(); err != nil {
			one.cmd.SetErr(err) // its caller leaves, but may take done for an answer
			continue
		}
		end, bounded := one.ctx.Deadline()
		if most := time.Now().Add(longest); !bounded || end.After(most) {
			end = most
		}
		if end.After(latest) {
			latest = end
		}
		_ = pipe.Process(one.ctx, one.cmd) // queues it
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest)
	defer cancel()
	if pipe.Len() > 0 {
		settle(pipe.Exec(ctx))
	}
	for _, one := range calls {
		close(one.done)
	}
}

// settle gives each command its error. go-redis gives them none if the greeting of a new
// connection failed, over a wrong password for example.
func settle(cmds []redis.Cmder, err error) {
	if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}
