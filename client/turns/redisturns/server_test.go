package redisturns_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/client/turns/turnstest"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// serve starts a Redis.
func serve(t *testing.T) *redis.Client {
	_, addr := proc.Redis(t)
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

func open(t *testing.T, c *redis.Client) *redisturns.Store {
	s := &redisturns.Store{Client: c}
	t.Cleanup(func() { s.Close() })
	return s
}

// ahead are the texts that make a script believe that the server's clock is ahead by some microseconds.
func ahead(by string) (old, changed string) {
	return "t[1] * 1000000 + t[2]", "t[1] * 1000000 + t[2] + " + by
}

const site, key = "https://a.example", "robotsgate:turns:{https://a.example}"

// The state of an origin holds times by the server's clock, and none is lost by their size: today, a second
// after the epoch, and in three hundred years.
func TestTheSuiteAtThreeTimes(t *testing.T) {
	tier.Nightly(t)
	c := serve(t)
	secs, _ := c.Time(t.Context()).Result()
	for _, by := range []string{"0", fmt.Sprint(-secs.UnixMicro() + 1e6), "300 * 366 * 86400 * 1000000"} {
		t.Run(by, func(t *testing.T) {
			t.Cleanup(redisturns.Change(ahead(by)))
			turnstest.TestStore(t, func(t *testing.T) (a, b turns.Store) {
				c.FlushAll(t.Context())
				return open(t, c), open(t, c)
			})
		})
	}
}

func page(turn string) turns.Ask {
	return turns.Ask{Turn: turn, Delay: time.Second, Places: 1, Lease: 5 * time.Second}
}

// take asks, and wants to be told to ask again after a time; 0: a turn.
func take(t *testing.T, s turns.Store, a turns.Ask, want time.Duration) turns.Reply {
	t.Helper()
	got, err := s.Take(t.Context(), site, a)
	if err != nil || got.Taken != (want == 0) || got.Wait > want || got.Wait < want-want/4 {
		t.Fatalf("Take of %s: %+v, %v; want a turn in %v", a.Turn, got, err, want)
	}
	return got
}

func tell(t *testing.T, s turns.Store, n turns.Report) {
	t.Helper()
	if err := s.Tell(t.Context(), site, n); err != nil {
		t.Fatal(err)
	}
}

// A failover to a server whose clock is behind, by an hour or two days, freezes no origin.
func TestATimeInTheFarFutureIsCapped(t *testing.T) {
	c := serve(t)
	for name, tt := range map[string]struct {
		news turns.Report
		want time.Duration
	}{
		"an end":   {turns.Report{Ask: page("ahead"), Event: turns.Ended}, time.Second},
		"a lease":  {turns.Report{Ask: page("ahead"), Event: turns.Renewed}, 24*time.Hour + time.Second},
		"a pause":  {turns.Report{Ask: page("ahead"), Event: turns.Failed, Pause: time.Hour}, 24 * time.Hour},
		"a strain": {turns.Report{Ask: page("ahead"), Event: turns.Failed}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c.FlushAll(t.Context())
			s := open(t, c)
			undo := redisturns.Change(ahead("2 * 86400 * 1000000"))
			tell(t, s, tt.news)
			undo()
			take(t, s, page("later"), tt.want)
		})
	}
}

// A script meets what another version wrote: it gives no turn that the other forbids, keeps the longest
// delay, says that the fleet is mixed, once, and each of the two goes on.
func TestVersionsTakeTurns(t *testing.T) {
	c := serve(t)
	var said bytes.Buffer
	log := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer slog.SetDefault(log)
	ours, theirs := open(t, c), open(t, c)
	as := func(s turns.Store, f func()) {
		if s == theirs {
			defer redisturns.Change("'RGT1'", "'RGT2'")()
		}
		f()
	}
	long := page("long")
	long.Delay = 4 * time.Second
	for _, pair := range [][2]turns.Store{{ours, theirs}, {theirs, ours}} {
		c.FlushAll(t.Context())
		first, second := pair[0], pair[1]
		as(first, func() { take(t, first, long, 0) })
		as(second, func() { take(t, second, page("short"), 5*time.Second) }) // the lease
		as(first, func() { tell(t, first, turns.Report{Ask: long, Event: turns.Ended}) })
		as(second, func() { take(t, second, page("short"), 4*time.Second) }) // the longer delay
		as(first, func() { tell(t, first, turns.Report{Ask: long, Event: turns.Failed, Pause: time.Minute}) })
		as(second, func() {
			got := take(t, second, page("short"), time.Minute)
			if got.Pause < 50*time.Second || got.Least < 50*time.Second {
				t.Errorf("during a pause of the other version: %+v", got)
			}
			tell(t, second, turns.Report{Ask: page("short"), Event: turns.Renewed}) // loses nothing of that
		})
		as(first, func() { take(t, first, long, time.Minute) })
	}
	if n := strings.Count(said.String(), "another version"); n != 2 {
		t.Errorf("said %d times, want once for each of two processes:\n%s", n, said.String())
	}
	c.FlushAll(t.Context())
	as(theirs, func() { take(t, theirs, kind(turns.Visit, "visit", 100*time.Millisecond), 0) })
	time.Sleep(50 * time.Millisecond)
	got, err := ours.Take(t.Context(), site, kind(turns.Visit, "next", 100*time.Millisecond))
	if err != nil || got.Taken {
		t.Fatalf("%+v, %v", got, err)
	}
}

func kind(k turns.Kind, turn string, delay time.Duration) turns.Ask {
	a := page(turn)
	a.Kind, a.Delay = k, delay
	return a
}

// future is a time in it, as a state has it.
const future = "\xcf\x00\x7f\xff\xff\xff\xff\xff\xff"

// A delay is a day at most, so it holds up the next robots.txt no longer.
func TestADelayIsADayAtMost(t *testing.T) {
	c := serve(t)
	if err := c.Set(t.Context(), key, "\x99\xa4RGT1"+future+"\x00\x00"+future+"\x00\x00\x00\x00", 0).Err(); err != nil {
		t.Fatal(err)
	}
	robots := page("robots")
	robots.Kind = turns.Robots
	take(t, open(t, c), robots, 24*time.Hour)
}

// What is no state holds up its origin for one delay, and is gone: it has no end of its own.
func TestGarbageEnds(t *testing.T) {
	c := serve(t)
	for name, put := range map[string][]any{
		"text":       {"SET", key, "garbage"},
		"nothing":    {"SET", key, ""},
		"a list":     {"RPUSH", key, "element"},
		"numbers":    {"SET", key, "\x93\x01\x02\x03"},
		"no numbers": {"SET", key, "\x95\xa4RGT1\xa1x\xa1x\xa1x\xa1x"},
		"cut":        {"SET", key, "\x99\xa4RGT1\x01\x00\x00\x00\x00\x00\x00\x05"},
		"other":      {"SET", key, "\x92\xa4RGT9\x01"},
		"no strain":  {"SET", key, "\x99\xa4RGT1\x01\x00\x90\x00\x00\x00\x00\x00"},
		"no name":    {"SET", key, "\x9b\xa4RGT1" + future + "\x00\x00\x00\x00\x00\x00\x00\x90\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if err := c.Do(t.Context(), put...).Err(); err != nil {
				t.Fatal(err)
			}
			s := open(t, c)
			take(t, s, page("first"), time.Second)
			if left := c.PTTL(t.Context(), key).Val(); left <= 0 || left > 2*time.Second {
				t.Errorf("stays for %v", left)
			}
			tell(t, s, turns.Report{Ask: page("first"), Event: turns.Dropped})
		})
	}
}

// Where the first who waits is late, and no place is free, the next is not told to ask before its turn can come.
func TestNoOneIsToldToAskTooSoon(t *testing.T) {
	c := serve(t)
	s := open(t, c)
	take(t, s, page("first"), 0)
	take(t, s, page("second"), 6*time.Second)
	undo := redisturns.Change(ahead("4000000"))
	tell(t, s, turns.Report{Ask: page("first"), Event: turns.Renewed})
	undo()
	defer redisturns.Change(ahead("6100000"))()
	if got := take(t, s, page("third"), time.Second); got.Wait < got.Least {
		t.Errorf("%+v", got)
	}
}

// A user of Redis has no channels unless it is given some. No turn is lost for that, and it is said.
func TestAUserWithoutChannels(t *testing.T) {
	c := serve(t)
	if err := c.Do(t.Context(), "ACL", "SETUSER", "crawler", "on", ">word", "~*", "resetchannels", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	o := *c.Options()
	o.Username, o.Password = "crawler", "word"
	theirs := redis.NewClient(&o)
	defer theirs.Close()
	said := make(chan string, 1)
	log := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(firstWrite(said), nil)))
	defer slog.SetDefault(log)
	s := open(t, theirs)
	take(t, s, page("first"), 0)
	take(t, s, page("second"), 6*time.Second)
	tell(t, s, turns.Report{Ask: page("first"), Event: turns.Ended})
	take(t, s, page("second"), time.Second)
	select {
	case text := <-said:
		if !strings.Contains(text, "needs &robotsgate:turns:*") || !strings.Contains(text, "NOPERM") {
			t.Error(text)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing is said")
	}
}

// firstWrite is a writer that hands on what it gets first.
type firstWrite chan string

func (w firstWrite) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

// Fleets with different prefixes know nothing of each other.
func TestPrefixesKeepFleetsApart(t *testing.T) {
	c := serve(t)
	one, another := open(t, c), open(t, c)
	another.Prefix = "another:"
	take(t, one, page("first"), 0)
	take(t, open(t, c), page("second"), 6*time.Second) // the lease and the delay
	take(t, another, page("third"), 0)
}

// Thousands wait at one origin, or have places there.
func TestThousandsAtOneOrigin(t *testing.T) {
	tier.Nightly(t)
	c := serve(t)
	s := open(t, c)
	many := func(i int) turns.Ask {
		return turns.Ask{Turn: fmt.Sprint(i), Places: 2500, Lease: time.Hour}
	}
	for i := range 2500 {
		take(t, s, many(i), 0)
	}
	for i := range 5 {
		if got, err := s.Take(t.Context(), site, many(2500+i)); err != nil || got.Taken {
			t.Fatalf("one place more: %+v, %v", got, err)
		}
	}
}

// What is missed while the line is broken wakes those who wait all the same.
func TestABrokenLineWakesThoseWhoWait(t *testing.T) {
	c := serve(t)
	s := open(t, c)
	long := page("first")
	long.Lease = time.Hour
	take(t, s, long, 0)
	long.Turn = "second"
	take(t, s, long, time.Hour+time.Second)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // until it listens
		if n := c.PubSubNumPat(t.Context()).Val() + int64(len(c.PubSubChannels(t.Context(), "*").Val())); n > 0 {
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not listen")
		}
	}
	time.Sleep(200 * time.Millisecond) // what it hears of its first subscription has come
	wake := take(t, s, long, time.Hour+time.Second).Wake
	if err := c.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-wake:
	case <-time.After(30 * time.Second):
		t.Error("who waits was not woken")
	}
}
