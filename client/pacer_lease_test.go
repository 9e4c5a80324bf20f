package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/internal/memturns"
	"github.com/robotsgate/robotsgate/client/turns"
)

// starts is a Base that knows when pages were asked for.
type starts struct {
	begin time.Time
	took  time.Duration

	mu     sync.Mutex // guards what follows
	at     []time.Duration
	robots []time.Duration // when robots.txt was asked for
}

func (s *starts) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path == "/robots.txt" {
		s.mu.Lock()
		s.robots = append(s.robots, time.Since(s.begin))
		s.mu.Unlock()
		return answer(404, "", ""), nil
	}
	s.mu.Lock()
	s.at = append(s.at, time.Since(s.begin))
	s.mu.Unlock()
	time.Sleep(s.took)
	return answer(200, "", "page"), nil
}

// apart waits for what goes on, and checks that there were so many pages, and how far apart they began.
func (s *starts) apart(t *testing.T, what string, pages int, least, most time.Duration) {
	t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	if len(s.at) != pages {
		t.Fatalf("%s: %d pages, want %d", what, len(s.at), pages)
	}
	for i, at := range s.at[1:] {
		if gap := at - s.at[i]; gap < least || gap > most {
			t.Errorf("%s: a page %v after the one before, want %v to %v", what, gap, least, most)
		}
	}
}

func getPage(t *testing.T, c *http.Client, page string) {
	res, err := c.Get(page)
	if err != nil {
		t.Error(err)
		return
	}
	res.Body.Close()
}

// Two processes share one pace: start to start, end to start, one place.
func TestPacerTurnsAreOnePaceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, base := new(memturns.Store), &starts{begin: time.Now(), took: 500 * time.Millisecond}
		a, b := paced(&client.Pacer{Turns: store}, base), paced(&client.Pacer{Turns: store}, base)
		for range 3 {
			for _, c := range []*http.Client{a, b} {
				go getPage(t, c, "http://a.example/page")
			}
		}
		base.apart(t, "two", 6, 1500*time.Millisecond, 1500*time.Millisecond) // the 500ms that a page takes and 1s
	})
}

// stopped is the store of a process that renews nothing while it sleeps.
type stopped struct {
	turns.Store
	asleep   *atomic.Bool
	answered func() // called when a turn was asked for
}

func (s stopped) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	got, err := s.Store.Take(ctx, origin, a)
	if got.Taken {
		s.answered()
	}
	return got, err
}

func (s stopped) Tell(ctx context.Context, origin string, n turns.Report) error {
	if s.asleep.Load() {
		return errors.New("stopped")
	}
	return s.Store.Tell(ctx, origin, n)
}

// A process that slept for longer than a lease, wherever it did, does not send on it.
func TestPacerTurnsDoNotOutliveTheirLease(t *testing.T) {
	for _, where := range []string{"before the answer", "after the answer"} {
		synctest.Test(t, func(t *testing.T) {
			store, base := new(memturns.Store), &starts{begin: time.Now()}
			var sleeps, asleep atomic.Bool
			sleep := func(here string) {
				if here == where && sleeps.CompareAndSwap(true, false) {
					asleep.Store(true)
					time.Sleep(6500 * time.Millisecond)
					asleep.Store(false)
				}
			}
			own := stopped{store, &asleep, func() { sleep("before the answer") }}
			hook := func(context.Context, client.WaitedInfo) { sleep("after the answer") }
			a := &http.Client{Transport: &client.Transport{Base: base, Pacer: &client.Pacer{Turns: own},
				Trace: &client.Trace{Waited: hook}}}
			b := paced(&client.Pacer{Turns: store}, base)
			getPage(t, a, "http://a.example/page")
			getPage(t, b, "http://a.example/page")
			time.Sleep(time.Millisecond) // the end of a request is told behind it
			sleeps.Store(true)
			go getPage(t, a, "http://a.example/page")
			time.Sleep(1500 * time.Millisecond)
			go getPage(t, b, "http://a.example/page")
			base.apart(t, where, 4, time.Second, time.Minute)
			if sleeps.Load() {
				t.Errorf("%s: it did not sleep", where)
			}
		})
	}
}

// The same holds for one that slept while it was being connected, whatever it is about to write:
// a page is asked for again, robots.txt too, and a body that may have been read is an error. It is no
// help that the place is renewed before the connection is there: another process was served.
func TestPacerTurnsAreNotUsedOnceLapsedInDialing(t *testing.T) {
	for _, c := range []struct {
		what  string
		awake time.Duration // before the connection is there
	}{{"page", 0}, {"robots.txt", 0}, {"body", 0}, {"body again", 0}, {"page", 1500 * time.Millisecond}} {
		what := c.what
		synctest.Test(t, func(t *testing.T) {
			store, base := new(memturns.Store), &starts{begin: time.Now(), took: 2 * time.Second}
			var asleep atomic.Bool
			sleeps := make(chan struct{}, 1)
			dial := func(context.Context, string, string) (net.Conn, error) {
				select {
				case <-sleeps:
					asleep.Store(true)
					time.Sleep(6500 * time.Millisecond)
					asleep.Store(false)
					time.Sleep(c.awake)
				default:
				}
				near, far := net.Pipe()
				go base.serve(far)
				return near, nil
			}
			wire := &http.Transport{DialContext: dial, DisableKeepAlives: true}
			a := paced(&client.Pacer{Turns: stopped{store, &asleep, func() {}}}, wire)
			b := paced(&client.Pacer{Turns: store}, base)
			page := func(c *http.Client, body io.Reader) error {
				req := request("POST", "http://a.example/page", body)
				res, err := c.Do(req)
				if err == nil {
					res.Body.Close()
				}
				return err
			}
			want := 4
			if what != "robots.txt" {
				page(a, nil)
			} else {
				want--
			}
			page(b, nil)
			time.Sleep(time.Millisecond)
			sleeps <- struct{}{}
			go func() {
				var body io.Reader
				switch what {
				case "body":
					body = struct{ io.Reader }{strings.NewReader("body")} // net/http knows no second one
				case "body again":
					body = strings.NewReader("body")
				}
				if err := page(a, body); (err != nil) != (what == "body") {
					t.Errorf("%s: %v", what, err)
				}
			}()
			time.Sleep(1500 * time.Millisecond)
			go page(b, nil)
			if what == "body" {
				want--
			}
			base.apart(t, fmt.Sprintf("%+v", c), want, 3*time.Second, time.Minute) // the 2s that a page takes and 1s
			if len(sleeps) != 0 {
				t.Errorf("%+v: it did not sleep", c)
			}
			base.robotsKeepTheDelay(t)
		})
	}
}

// robotsKeepTheDelay checks that no robots.txt is read less than a second after a page began.
func (s *starts) robotsKeepTheDelay(t *testing.T) {
	t.Helper()
	for _, robots := range s.robots {
		for _, page := range s.at {
			if gap := robots - page; gap >= 0 && gap < time.Second {
				t.Errorf("robots.txt %v after the start of a page, want 1s", gap)
			}
		}
	}
}

// And for one whose Base tells httptrace nothing, stopped while it signs.
func TestPacerTurnsAreNotUsedOnceLapsedInSigning(t *testing.T) {
	for _, what := range []string{"page", "robots.txt"} {
		synctest.Test(t, func(t *testing.T) {
			store, base := new(memturns.Store), &starts{begin: time.Now(), took: 2 * time.Second}
			var sleeps, asleep atomic.Bool
			sign := func(*http.Request) error {
				if sleeps.CompareAndSwap(true, false) {
					asleep.Store(true)
					time.Sleep(6500 * time.Millisecond)
					asleep.Store(false)
				}
				return nil
			}
			own := &client.Pacer{Turns: stopped{store, &asleep, func() {}}}
			a := &http.Client{Transport: &client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Pacer: own, Sign: sign}}
			b := paced(&client.Pacer{Turns: store}, base)
			want := 3
			if what == "page" {
				getPage(t, a, "http://a.example/page")
				want++
			}
			getPage(t, b, "http://a.example/page")
			time.Sleep(time.Millisecond)
			sleeps.Store(true)
			go getPage(t, a, "http://a.example/page")
			time.Sleep(1500 * time.Millisecond)
			go getPage(t, b, "http://a.example/page")
			base.apart(t, what, want, 3*time.Second, time.Minute) // the 2s that a page takes and 1s
			if sleeps.Load() {
				t.Errorf("%s: it did not sleep", what)
			}
			base.robotsKeepTheDelay(t)
		})
	}
}

// slowNews is a store that takes its time with news of one kind.
type slowNews struct {
	turns.Store
	event turns.Event
	took  time.Duration
}

func (s slowNews) Tell(ctx context.Context, origin string, n turns.Report) error {
	if n.Event == s.event {
		time.Sleep(s.took)
	}
	return s.Store.Tell(ctx, origin, n)
}

// A renewal that is on its way when the request ends does not take the place again.
func TestPacerTurnsEndAfterTheirRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memturns.Store)
		base := pagesOf(func(*http.Request) (*http.Response, error) { return answer(200, "", "page"), nil })
		c := paced(&client.Pacer{Turns: slowNews{store, turns.Renewed, time.Second}}, base)
		res, _ := get(t, c, "http://a.example/page")
		time.Sleep(2 * time.Second) // the first renewal is under way
		res.Body.Close()
		time.Sleep(time.Second)
		begin := time.Now()
		if err := (&client.Pacer{Turns: store}).Wait(t.Context(), parse("http://a.example/")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the next turn came after %v, want the delay at most", took)
		}
	})
}

// hangs is a store of which one renewal hangs, and the others are slow.
type hangs struct {
	turns.Store
	once *atomic.Bool
}

func (s hangs) Tell(ctx context.Context, origin string, n turns.Report) error {
	if n.Event == turns.Renewed && s.once.CompareAndSwap(false, true) {
		<-ctx.Done()
		return ctx.Err()
	}
	if n.Event == turns.Renewed {
		time.Sleep(400 * time.Millisecond)
	}
	return s.Store.Tell(ctx, origin, n)
}

// One call that hangs does not cost the place of a body that is open.
func TestPacerTurnsOutliveARenewalThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 100 * time.Millisecond
		store, once := new(memturns.Store), new(atomic.Bool)
		base := pagesOf(func(*http.Request) (*http.Response, error) { return answer(200, "", "page"), nil })
		res, _ := get(t, paced(&client.Pacer{Turns: hangs{store, once}, Delay: delay}, base), "http://a.example/page")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := (&client.Pacer{Turns: store, Delay: delay}).Wait(ctx, parse("http://a.example/")); err == nil || !once.Load() {
			t.Error("a turn was given while the body was open")
		}
		res.Body.Close()
		time.Sleep(10 * time.Second)
	})
}

// Alone, a turn that the store was asked for in vain is not given beside one that was given meanwhile.
func TestPacerTurnsAloneKeepTheirOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, u := new(memturns.Store), parse("http://a.example/page")
		var slow atomic.Bool
		store.Fault = func(context.Context, string, bool) error {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second)
			}
			return errors.New("away")
		}
		base := &starts{begin: time.Now(), took: time.Second}
		p := &client.Pacer{Turns: store, RunAlone: true}
		if err := p.Wait(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		slow.Store(true)
		var turn time.Duration
		go func() {
			if err := p.Wait(t.Context(), u); err != nil {
				t.Error(err)
			}
			turn = time.Since(base.begin)
		}()
		time.Sleep(1500 * time.Millisecond)
		res, _ := get(t, paced(p, base), u.String()) // goes ahead, on the first turn
		res.Body.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if early := base.at[0] + 2*time.Second - turn; early > 0 {
			t.Errorf("a turn %v too early: a page takes 1s, and the delay is 1s", early)
		}
	})
}

// A request that ended while the store was asked for a turn counts, though the store did not know of it. The turn
// that the store gave is given back: its lease may end before the delay has run, and would count as another end.
func TestPacerTurnsKeepTheDelayToWhatEndsMeanwhile(t *testing.T) {
	for _, delay := range []time.Duration{time.Second, 8 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store, base := new(memturns.Store), &starts{begin: time.Now(), took: delay + 1500*time.Millisecond}
			var slow atomic.Bool
			store.Fault = func(_ context.Context, _ string, after bool) error {
				if after && slow.CompareAndSwap(true, false) {
					time.Sleep(time.Second)
				}
				return nil
			}
			c := paced(&client.Pacer{Turns: store, MaxUnderway: 2, Delay: delay}, base)
			for range 2 {
				go getPage(t, c, "http://a.example/page")
				time.Sleep(2*delay + time.Second) // the first page ends half a second after that
				slow.Store(true)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(base.at) != 2 || base.at[1]-base.at[0] != base.took+delay {
				t.Errorf("pages at %v, want the second %v after the first, which takes %v", base.at, delay, base.took)
			}
		})
	}
}

// A request that goes before others comes while one of them asks the store. The turn that the store gives is used,
// or given back, not kept from both until its lease ends.
func TestPacerTurnsThatComeWhenAnotherGoesFirst(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		first time.Duration // how long the answer to the one who asks first takes
		err   error         // what that is instead
		then  time.Duration // how long all later answers take
		want  []time.Duration
		order string
	}{
		{"in order", 500 * ms, nil, 500 * ms, []time.Duration{1000 * ms, 3500 * ms, 5500 * ms}, "first other visited"},
		{"overtaken", 500 * ms, nil, 50 * ms, []time.Duration{1000 * ms, 3500 * ms, 4600 * ms}, "first other visited"},
		{"lost", 500 * ms, errors.New("connection reset"), 50 * ms, []time.Duration{1000 * ms, 4050 * ms, 5150 * ms}, "first visited other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, base, order := new(memturns.Store), &starts{begin: time.Now()}, new(line)
				var answers atomic.Int64
				answers.Store(-1 << 10)
				store.Fault = func(_ context.Context, _ string, after bool) error {
					if !after {
						return nil
					}
					switch n := answers.Add(1); {
					case n == 1:
						time.Sleep(tt.first)
						return tt.err
					case n > 1:
						time.Sleep(tt.then)
					}
					return nil
				}
				p := &client.Pacer{Turns: store}
				c := paced(p, pagesOf(func(req *http.Request) (*http.Response, error) {
					order.RoundTrip(req)
					return base.RoundTrip(req)
				}))
				getPage(t, c, "http://a.example/first") // after robots.txt
				if err := p.Wait(t.Context(), parse("http://a.example/visited")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				answers.Store(0)
				go getPage(t, c, "http://a.example/other")
				time.Sleep(400 * ms)
				getPage(t, c, "http://a.example/visited")
				time.Sleep(time.Minute)
				synctest.Wait()
				got := strings.Join(slices.DeleteFunc(order.order, isRobots), " ")
				if got != tt.order || !slices.Equal(base.at, tt.want) {
					t.Errorf("%s at %v, want %s at %v", got, base.at, tt.order, tt.want)
				}
			})
		})
	}
}

// serve answers one request, as RoundTrip does.
func (s *starts) serve(c net.Conn) {
	defer c.Close()
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	io.Copy(io.Discard, req.Body)
	res, _ := s.RoundTrip(req)
	fmt.Fprintf(c, "HTTP/1.1 %d .\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", res.StatusCode)
}

// A turn whose answer was lost is neither taken twice nor lost for longer than its lease.
func TestPacerTurnsWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memturns.Store)
		var calls atomic.Int64
		store.Fault = func(_ context.Context, _ string, after bool) error {
			if !after {
				return nil
			}
			if calls.Add(1)%3 != 0 {
				return errors.New("connection reset")
			}
			return nil
		}
		base := &starts{begin: time.Now()}
		c := paced(&client.Pacer{Turns: store}, base)
		for range 5 {
			res, _ := get(t, c, "http://a.example/page")
			res.Body.Close()
		}
		base.apart(t, "an answer is lost", 5, time.Second, 4*time.Second)
	})
}

// While the store fails, a request waits no longer than its context and says why; with Alone,
// it keeps the pace of its process.
func TestPacerTurnsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memturns.Store{Fault: func(context.Context, string, bool) error { return errors.New("no memory") }}
		u := parse("http://a.example/")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		pacer := &client.Pacer{Turns: store}
		var all sync.WaitGroup
		for range 3 { // only the first in line asks the store
			all.Go(func() {
				err := pacer.Wait(ctx, u)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no memory") {
					t.Errorf("got %v, want the end of the context and the reason", err)
				}
			})
		}
		all.Go(func() {
			time.Sleep(time.Second)
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := pacer.Wait(soon, u); err == nil || !strings.Contains(err.Error(), "no memory") {
				t.Errorf("behind others: got %v, want the reason", err)
			}
		})
		all.Wait()
		alone, begin := &client.Pacer{Turns: store, RunAlone: true}, time.Now()
		for range 4 {
			if err := alone.Wait(t.Context(), u); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("alone: four turns in %v, want 3s", took)
		}
		time.Sleep(time.Minute) // what is told behind the callers is given up
	})
}

// Alone, a store that is silent does not hold up each request: one at a time finds out whether it works again.
func TestPacerTurnsAloneWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var asked, turns atomic.Int32
		p := &client.Pacer{RunAlone: true, Turns: &memturns.Store{Fault: func(ctx context.Context, _ string, _ bool) error {
			if time.Since(begin) > time.Minute {
				asked.Add(1)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}}
		for i := range 20 {
			go func() {
				for time.Since(begin) < time.Minute+10*time.Second {
					if err := p.Wait(t.Context(), parse(fmt.Sprintf("http://a%d.example/", i))); err != nil {
						t.Error(err)
					}
					turns.Add(1)
				}
			}()
		}
		time.Sleep(time.Minute)
		if n := turns.Load(); n < 1000 {
			t.Errorf("%d turns in a minute, at 20 origins with a delay of 1s", n)
		}
		time.Sleep(4 * time.Second) // what was asked last, and a pause
		asked.Store(0)
		time.Sleep(time.Second)
		if n := asked.Load(); n < 20 {
			t.Errorf("%d questions in 1s at 20 origins, when the store answers again", n)
		}
		time.Sleep(time.Minute)
	})
}

// A log handler may use the Pacer, and its panic harms no one who waits.
func TestPacerTurnsThatFailAreLoggedWithoutALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, logged, u := time.Now(), 0, parse("http://a.example/")
		pacer := &client.Pacer{Turns: &memturns.Store{Fault: func(context.Context, string, bool) error {
			if time.Since(begin) < time.Second {
				return errors.New("no memory")
			}
			return nil
		}}}
		logTo(t, func(slog.Record) {
			logged++
			pacer.Next(u)
			panic("the log's own")
		})
		if err := pacer.Wait(t.Context(), u); err != nil || logged != 2 {
			t.Errorf("%d records, %v; want one of the failure, one of its end, and a turn", logged, err)
		}
	})
}

// noRenewals is a store that has none for some time.
type noRenewals struct {
	turns.Store
	until time.Time
	tried *[]time.Time
}

func (s noRenewals) Tell(ctx context.Context, origin string, n turns.Report) error {
	if n.Event == turns.Renewed {
		if *s.tried = append(*s.tried, time.Now()); time.Now().Before(s.until) {
			return errors.New("no memory")
		}
	}
	return s.Store.Tell(ctx, origin, n)
}

// A place that could not be renewed is renewed at once when a log handler has taken its time over that.
func TestASlowLogHandlerPutsOffNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 2 * time.Second
		var tried []time.Time
		pacer := &client.Pacer{Turns: noRenewals{new(memturns.Store), time.Now().Add(3 * time.Second), &tried}}
		logTo(t, func(slog.Record) { time.Sleep(slow) })
		turn, err := (&client.Transport{Base: &web{}, Pacer: pacer}).Turn(t.Context(), parse("http://a.example/"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if turn.End(); len(tried) < 2 || tried[1].Sub(tried[0]) != slow {
			t.Errorf("renewed at %v, want the second %v after the first", tried, slow)
		}
		time.Sleep(time.Minute) // the end is told behind the caller
	})
}

// What the store said once is the reason, not that it was cut short in the end.
func TestPacerTurnsSayWhatTheStoreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := false
		store := &memturns.Store{Fault: func(ctx context.Context, _ string, _ bool) error {
			if !said {
				said = true
				return errors.New("WRONGPASS")
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := (&client.Pacer{Turns: store}).Wait(ctx, parse("http://a.example/"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("got %v, want the end of the context, and WRONGPASS", err)
		}
		time.Sleep(time.Minute) // what is told behind the caller is given up
	})
}

// A context ends some time after its deadline, if the machine is busy. Why no turn came is said all the same.
func TestPacerTurnsSayWhyBeforeTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := (&client.Pacer{Turns: slowlyBroken{}}).Wait(dueSoon{late, time.Now().Add(time.Second)}, parse("http://a.example/"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no memory") {
			t.Errorf("got %v, want the end of the context and the reason", err)
		}
	})
}

// dueSoon is a context that ends later than its deadline.
type dueSoon struct {
	context.Context
	deadline time.Time
}

func (c dueSoon) Deadline() (time.Time, bool) { return c.deadline, true }

// slowlyBroken is a store that fails after a while, whatever the context.
type slowlyBroken struct{ turns.Store }

func (slowlyBroken) Take(context.Context, string, turns.Ask) (turns.Reply, error) {
	time.Sleep(1500 * time.Millisecond)
	return turns.Reply{}, errors.New("no memory")
}

func (slowlyBroken) Tell(context.Context, string, turns.Report) error { return nil }

// The pause after a failure is the same for all origins, so a good answer to one ends it for another.
func TestPacerTurnsThatFailForOneAndWorkForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &starts{begin: time.Now()}
		c := paced(&client.Pacer{Turns: &fitful{}}, base)
		for _, page := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
			go getPage(t, c, page)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(base.at) != 3 {
			t.Errorf("%d pages, want 3", len(base.at))
		}
	})
}

// fitful fails at first for a.example and, later, b.example. Between these it works for c.example.
type fitful struct {
	memturns.Store
	mu    sync.Mutex // guards asked
	asked map[byte]bool
}

func (s *fitful) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	site := origin[strings.Index(origin, ".example")-1]
	s.mu.Lock()
	again := s.asked[site]
	s.mu.Unlock()
	if again {
		return s.Store.Take(ctx, origin, a)
	}
	time.Sleep(map[byte]time.Duration{'a': 1, 'c': 2, 'b': 3}[site] * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[byte]bool{}
	}
	s.asked[site] = true
	if site == 'c' {
		return s.Store.Take(ctx, origin, a)
	}
	return turns.Reply{}, errors.New("away")
}

// A body that is open for longer than a lease keeps its place, even in a store that has
// forgotten it.
func TestPacerTurnsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memturns.Store)
		c := paced(&client.Pacer{Turns: store}, pagesOf(func(*http.Request) (*http.Response, error) {
			return answer(200, "", "page"), nil
		}))
		res, _ := get(t, c, "http://a.example/page")
		time.Sleep(10 * time.Second)
		store.Forget()
		time.Sleep(10 * time.Second)
		var waited atomic.Int64
		begin := time.Now()
		go func() {
			(&client.Pacer{Turns: store}).Wait(t.Context(), parse("http://a.example/"))
			waited.Store(int64(time.Since(begin)))
		}()
		time.Sleep(time.Minute)
		if waited.Load() != 0 {
			t.Fatalf("a turn after %v, while the body is open", time.Duration(waited.Load()))
		}
		res.Body.Close()
		time.Sleep(time.Minute)
		if got := time.Duration(waited.Load()); got != 61*time.Second {
			t.Errorf("a turn after %v, want the delay after the body was closed, 1m1s", got)
		}
	})
}

// One process that gets a 429 slows all down, and its first good answers ease all.
func TestPacerTurnsSharePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, status := new(memturns.Store), 429
		base := pagesOf(func(*http.Request) (*http.Response, error) { return answer(status, "", ""), nil })
		a, b := paced(&client.Pacer{Turns: store}, base), &client.Pacer{Turns: store}
		for _, seconds := range []time.Duration{2, 4, 8, 4, 2, 0} {
			want := seconds * time.Second
			get(t, a, "http://a.example/page")
			synctest.Wait()
			time.Sleep(time.Millisecond)
			begin := time.Now()
			if err := b.Wait(t.Context(), parse("http://a.example/")); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took < want*4/5-time.Millisecond || took > want*6/5+time.Second {
				t.Errorf("another process waits %v, want %v", took, want)
			}
			if want == 8*time.Second {
				status = 200
			}
		}
	})
}

// miscounts is a store that says there were fewer failures than none.
type miscounts struct{ turns.Store }

func (s miscounts) Take(ctx context.Context, origin string, a turns.Ask) (turns.Reply, error) {
	got, err := s.Store.Take(ctx, origin, a)
	got.Strain = -1
	return got, err
}

func TestPacerTurnsOfAStoreThatCountsWrongly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := pagesOf(func(*http.Request) (*http.Response, error) { return answer(503, "", ""), nil })
		res, _ := get(t, paced(&client.Pacer{Turns: miscounts{new(memturns.Store)}}, base), "http://a.example/page")
		if res.Body.Close(); res.StatusCode != 503 {
			t.Errorf("got %d", res.StatusCode)
		}
	})
}

// What robots.txt asks for is kept from the reading of it on, also by a process that has it from the Cache, and
// by one that reads it again and does not know it yet.
func TestPacerTurnsKeepTheDelayToRobots(t *testing.T) {
	for name, second := range map[string]func(t *testing.T, shared *cache.Cache, p *client.Pacer, base http.RoundTripper){
		"a page": func(t *testing.T, shared *cache.Cache, p *client.Pacer, base http.RoundTripper) {
			get(t, &http.Client{Transport: &client.Transport{Base: base, Cache: shared, UserAgent: "ExampleBot/1.0", Pacer: p}}, "http://a.example/")
		},
		"robots.txt again": func(t *testing.T, _ *cache.Cache, p *client.Pacer, base http.RoundTripper) {
			(&client.Transport{Base: base, UserAgent: "ExampleBot/1.0", Pacer: p}).Decide(t.Context(), parse("http://a.example/"))
		},
	} {
		for _, end := range []time.Duration{0, 20 * time.Second} { // of a page before
			synctest.Test(t, func(t *testing.T) {
				store, shared, base := new(memturns.Store), new(cache.Cache), new(times)
				first := &client.Transport{Base: base, Cache: shared, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{Turns: store}}
				u := parse("http://a.example/")
				if _, err := first.Decide(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				want := 2
				if end > 0 || name == "robots.txt again" {
					get(t, &http.Client{Transport: first}, u.String())
					time.Sleep(end)
					want++
				}
				time.Sleep(1500 * time.Millisecond)
				second(t, shared, &client.Pacer{Turns: store}, base)
				for i, at := range base.at[1:] {
					if d := at.Sub(base.at[i]); d < 5*time.Second {
						t.Errorf("%s: request %d came %v after the one before, want 5s", name, i+1, d)
					}
				}
				if len(base.at) != want {
					t.Errorf("%s: %d requests, want %d", name, len(base.at), want)
				}
				synctest.Wait()
			})
		}
	}
}

// Whoever asked for robots.txt may be gone when it comes: then nobody tells the store what it asks for.
func TestPacerTurnsKeepTheDelayToRobotsThatNobodyLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, shared, base := new(memturns.Store), new(cache.Cache), &times{slow: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), base.slow/2)
		defer cancel()
		first := &client.Transport{Base: base, Cache: shared, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{Turns: store}}
		if _, err := first.Decide(ctx, parse("http://a.example/")); err == nil {
			t.Error("robots.txt came in time")
		}
		time.Sleep(3 * time.Second)
		second := &client.Transport{Base: base, Cache: shared, UserAgent: "ExampleBot/1.0", Pacer: &client.Pacer{Turns: store}}
		get(t, &http.Client{Transport: second}, "http://a.example/")
		if d := base.at[1].Sub(base.at[0]); d < base.slow+5*time.Second {
			t.Errorf("the page came %v after robots.txt was asked for, want %v", d, base.slow+5*time.Second)
		}
		synctest.Wait()
	})
}

// times is a site with a delay of five seconds, and when it was asked. Its robots.txt may take a time.
type times struct {
	at   []time.Time
	slow time.Duration
}

func (b *times) RoundTrip(req *http.Request) (*http.Response, error) {
	b.at = append(b.at, time.Now())
	if req.URL.Path == "/robots.txt" {
		time.Sleep(b.slow)
		return answer(200, "", "User-agent: *\nCrawl-delay: 5\n"), nil
	}
	return answer(200, "", ""), nil
}

// What one process knows of the pace, the others are told: a Wait that cannot end in time is refused at once,
// with the time, and Next knows it from then on.
func TestPacerTurnsTellWhen(t *testing.T) {
	for name, ask := range map[string]func(*client.Pacer, *url.URL) error{
		"Wait": func(p *client.Pacer, u *url.URL) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return p.Wait(ctx, u)
		},
		"Try": func(p *client.Pacer, u *url.URL) error { return p.Try(context.Background(), u) },
	} {
		synctest.Test(t, func(t *testing.T) {
			store, u := new(memturns.Store), parse("http://a.example/")
			first := &client.Pacer{Delay: 5 * time.Second, Turns: store}
			second := &client.Pacer{Delay: 5 * time.Second, Turns: store}
			for _, p := range []*client.Pacer{first, second} {
				begin := time.Now()
				err := ask(p, u)
				if time.Since(begin) != 0 {
					t.Errorf("%s took %v", name, time.Since(begin))
				}
				if p == first {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				late, ok := errors.AsType[*client.LateError](err)
				if !ok || time.Until(late.At) != 5*time.Second || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: got %v, want a *LateError for 5s", name, err)
				}
				if got := time.Until(p.Next(u)); got != 5*time.Second {
					t.Errorf("%s, then Next: in %v, want 5s", name, got)
				}
				time.Sleep(5 * time.Second)
				if err := ask(p, u); err != nil {
					t.Errorf("%s at the time: %v", name, err)
				}
			}
			synctest.Wait()
		})
	}
}

// slow is a store that takes a while to hear what happened.
type slow struct {
	turns.Store
	ended atomic.Int32
}

func (s *slow) Tell(ctx context.Context, origin string, n turns.Report) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	if n.Event == turns.Ended {
		s.ended.Add(1)
	}
	return s.Store.Tell(ctx, origin, n)
}

// Who shuts down and exits leaves no place taken.
func TestPacerTurnsAreGivenBackByShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: new(memturns.Store)}
		gate := &client.Transport{Base: &starts{begin: time.Now()}, Pacer: &client.Pacer{Turns: store}}
		getPage(t, &http.Client{Transport: gate}, "http://a.example/page")
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := gate.Shutdown(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v before the store was told, want the end of the context", err)
		}
		if err := gate.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if n := store.ended.Load(); n != 2 {
			t.Errorf("the store knows of %d ends, want that of robots.txt and that of the page", n)
		}
	})
}
