// Package redisturns is a turns.Store in Redis, or in what speaks its protocol and runs its
// scripts: all processes that use the server keep one pace at each origin.
//
// Each call is one script and one round trip, which it shares with those of the same moment. Times are by the
// server's clock, so the clocks of the processes may differ. An origin takes some 270 bytes of used_memory
// while four processes wait for it. It is deleted when its delay and pauses are over, its failures count no
// more, and Pacer.MaxDelay has passed since its robots.txt was read. Thousands may wait.
//
// The state begins with a version. Two versions of this package may share a server while one replaces the other:
// each waits for what the other has given to end or lapse, and keeps the longest delay. One line of slog says
// that they do.
//
// The server may be alone, under Sentinel or a cluster. After a failover, or a restart without memory, each
// place of an origin may be given once too early, even in a pause: then the site's answer restores the pause.
// While there is no server, requests wait (see client.Pacer). Besides the line that this module logs, go-redis
// then logs failed connections in its own way: redis.SetLogger takes that.
package redisturns

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client/internal/pace/rules"
	"github.com/robotsgate/robotsgate/client/turns"
)

// Store implements turns.Store. It is safe for concurrent use. Its fields must not change after the
// first use, and it must not be copied. From its first call until Close it has a subscription, and a
// goroutine that listens to it. The server must not evict what has not expired: under
// maxmemory-policy allkeys-lru and its like, an origin that is evicted may give each place once too
// early.
type Store struct {
	// Client talks to one server, to the master that Sentinels name, or to a cluster.
	// redisstore.Open makes one from a URL, and can share it. Set ContextTimeoutEnabled in the
	// options of another: a client without it is refused, with an error from every call. If nil,
	// every call but Close fails and says so.
	Client redis.UniversalClient

	// Prefix goes before all keys and channels. Processes with different prefixes know
	// nothing of each other's turns. If empty, "robotsgate:".
	Prefix string

	batch  redisstore.Batch
	once   sync.Once
	mixed  sync.Once     // says that the fleet is
	name   string        // begins the names of all turns here
	heard  chan struct{} // closed when no more is heard
	finish context.CancelFunc
	wakes  sync.Map // by turn: the channels of those that were told to wait
}

const nameLetters = 8

func (s *Store) init() {
	s.name = rand.Text()[:nameLetters]
	s.heard = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	s.finish = cancel
	go s.listen(ctx)
}

// Close stops listening to the server, and waits a second at most for that. It does not close Client. The Store
// must not be used any more: first shut down the Transports, which tells it of the last turns.
func (s *Store) Close() error {
	if s.once.Do(func() {}); s.finish == nil {
		return nil // it was not used
	}
	s.finish()
	select {
	case <-s.heard:
	case <-time.After(time.Second): // go-redis waits for the greeting of a silent server, whatever ends meanwhile
	}
	return nil
}

// Take implements turns.Store.
func (s *Store) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	if err := s.ready(); err != nil {
		return turns.Reply{}, err
	}
	wake := make(chan struct{}) // closed when the turn should be asked for again
	s.wakes.Store(nameOf(a), wake)
	got, err := s.batch.Run(ctx, s.Client, takeScript(), s.key(origin), s.args(a, int(a.Kind), 0)...).Int64Slice()
	if err == nil && len(got) != 6 {
		err = errors.New("an answer of another form")
	}
	if err != nil || got[0] == 1 {
		s.wakes.Delete(nameOf(a))
	}
	if err != nil {
		return turns.Reply{}, fmt.Errorf("redisturns: take: %w", err)
	}
	if got[5] == 1 {
		s.mixed.Do(func() {
			slog.Warn("redisturns: another version of this package takes turns in the same Redis: "+
				"until it has gone, the two wait for each other longer than they must", "prefix", s.prefix())
		})
	}
	answer := turns.Reply{Taken: got[0] == 1, Strain: int(got[3]), Least: microseconds(got[4])}
	if !answer.Taken {
		answer.Wait, answer.Pause, answer.Wake = microseconds(got[1]), microseconds(got[2]), wake
	}
	return answer, nil
}

// Tell implements turns.Store.
func (s *Store) Tell(ctx context.Context, origin string, n turns.Report) error {
	if err := s.ready(); err != nil {
		return err
	}
	if n.Event == turns.Dropped {
		s.wakes.Delete(nameOf(n.Ask))
	}
	args := s.args(n.Ask, int(n.Event), n.Pause)
	if err := s.batch.Run(ctx, s.Client, tellScript(), s.key(origin), args...).Err(); err != nil {
		return fmt.Errorf("redisturns: tell: %w", err)
	}
	return nil
}

// args are what a script gets: the channel, the turn, and all numbers. No time of this machine is
// among them.
func (s *Store) args(a turns.Ask, what int, pause time.Duration) []any {
	jitter := 0.8 + 0.4*mathrand.Float64() // those whom one site sends away do not come back together
	numbers := make([]byte, 0, 7*8)
	for _, n := range [...]float64{
		float64(what), float64(max(a.Delay.Microseconds(), 0)), float64(max(a.Places, 0)),
		float64(a.Lease.Microseconds()), float64(max(pause.Microseconds(), 0)), float64(max(a.Keep.Microseconds(), 0)), jitter,
	} {
		numbers = binary.BigEndian.AppendUint64(numbers, math.Float64bits(n))
	}
	return []any{s.channel(), s.name + nameOf(a), numbers}
}

// nameOf is the name of a turn in one Store. Its end tells the scripts who goes first.
func nameOf(a turns.Ask) string { return a.Turn + [...]string{"", "+", "!"}[rules.Rank(a.Kind)] }

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// listen wakes those who are told that they can ask sooner, and all whenever it may have
// missed that. It is behind all callers, because a silent server takes its time to be given up.
func (s *Store) listen(ctx context.Context) {
	defer close(s.heard)
	sub := s.Client.Subscribe(ctx, s.channel()+s.name)
	if ctx.Err() != nil {
		_ = sub.Close()
		return
	}
	context.AfterFunc(ctx, func() { _ = sub.Close() })
	if _, err := sub.ReceiveTimeout(ctx, 5*time.Second); redis.HasErrorPrefix(err, "NOPERM") { // which the loop does not get to see
		slog.Warn("redisturns: turns come late, as no one is told of them: the user of Redis needs &"+s.channel()+"*", "error", err)
	}
	s.wakeAll()
	for m := range sub.ChannelWithSubscriptions() {
		switch m := m.(type) {
		case *redis.Subscription:
			s.wakeAll()
		case *redis.Message:
			turn, wait, _ := strings.Cut(m.Payload, " ")
			n, err := strconv.ParseInt(wait, 10, 64)
			if err == nil {
				time.AfterFunc(microseconds(n), func() { s.wake(turn) }) // at once, if n is none
			}
		}
	}
}

func (s *Store) wakeAll() {
	s.wakes.Range(func(turn, _ any) bool { s.wake(turn.(string)); return true })
}

func (s *Store) wake(turn string) {
	if wake, ok := s.wakes.LoadAndDelete(turn); ok {
		close(wake.(chan struct{}))
	}
}

// key is the one key of an origin, so its state is in one slot of a cluster.
func (s *Store) key(origin string) string { return s.prefix() + "turns:{" + origin + "}" }

func (s *Store) channel() string { return s.prefix() + "turns:" }

func (s *Store) prefix() string { return cmp.Or(s.Prefix, "robotsgate:") }

func (s *Store) ready() error {
	deadlines := true // as far as can be seen
	switch c := s.Client.(type) {
	case nil:
		return errors.New("redisturns: Store has no Client; set that of redisstore.Open")
	case *redis.Client:
		deadlines = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		deadlines = c.Options().ContextTimeoutEnabled
	}
	if !deadlines {
		return errors.New("redisturns: Client was made without ContextTimeoutEnabled; set it in its options")
	}
	s.once.Do(s.init)
	return nil
}
