package redisstore

import (
	"context"
	"fmt"
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

// Batch sends the commands of concurrent callers to Redis together: a thousand callers of one moment cost a few
// round trips. It is exported for package redisturns; programs do not need it. It is a type because its callers share
// a line to each server. The zero value is ready to use, and safe for concurrent use. A command waits only while others
// are on their way: one alone is sent at once. The nodes of a cluster have their own: none waits for another that hangs.
type Batch struct {
	mu    sync.Mutex // guards lines and what hangs off it
	lines map[*redis.Client]*line
}

// line is what goes to one node. It is kept while there is anything.
type line struct {
	batch    *Batch
	node     *redis.Client // nil: there is one only, or the client knows which
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
	node := nodeOf(ctx, c, cmd)
	b.mu.Lock()
	l := b.lines[node]
	if l == nil {
		l = &line{batch: b, node: node}
		if b.lines == nil {
			b.lines = make(map[*redis.Client]*line)
		}
		b.lines[node] = l
	}
	l.waiting = append(l.waiting, own)
	switch {
	case l.underway < few:
		l.underway++
		go l.send(c)
	case l.overdue == nil:
		l.overdue = time.AfterFunc(often, func() { l.another(c) })
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

// nodeOf returns the node of a cluster that has the key of a command, as far as is known; else nil. The client
// still sends it, because the node may have changed.
func nodeOf(ctx context.Context, c redis.UniversalClient, cmd redis.Cmder) *redis.Client {
	nodes, ok := c.(*redis.ClusterClient)
	at := 1 // of the key
	if cmd.Name() == "evalsha" {
		at = 3
	}
	if !ok || len(cmd.Args()) <= at {
		return nil
	}
	node, _ := nodes.MasterForKey(ctx, fmt.Sprint(cmd.Args()[at]))
	return node
}

// another adds a sender, for what the others have left waiting.
func (l *line) another(c redis.UniversalClient) {
	l.batch.mu.Lock()
	l.overdue = nil
	l.underway++
	l.batch.mu.Unlock()
	l.send(c)
}

// send sends what waits, until nothing does.
func (l *line) send(c redis.UniversalClient) {
	for calls := l.take(c); calls != nil; calls = l.take(c) {
		exchange(c, calls)
	}
}

// take returns the calls to send next, or nil if this sender should end.
func (l *line) take(c redis.UniversalClient) []*call {
	l.batch.mu.Lock()
	defer l.batch.mu.Unlock()
	n := min(len(l.waiting), maxCommands)
	if n == 0 {
		l.waiting = nil
		if l.underway--; l.underway == 0 && l.overdue == nil && l.batch.lines[l.node] == l {
			delete(l.batch.lines, l.node)
		}
		return nil
	}
	calls := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	if l.overdue != nil {
		l.overdue.Stop()
		l.overdue = nil
	}
	if len(l.waiting) > 0 {
		l.overdue = time.AfterFunc(often, func() { l.another(c) })
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
		cmds, err := pipe.Exec(ctx)
		if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
			for _, cmd := range cmds { // have none if the greeting failed, over a wrong password for example
				cmd.SetErr(err)
			}
		}
	}
	for _, one := range calls {
		close(one.done)
	}
}
