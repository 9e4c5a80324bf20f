package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// changing is a Base whose robots.txt becomes another after a time. It logs when it was asked for what.
type changing struct {
	lifetime      string // Cache-Control of robots.txt
	before, after string // robots.txt, or "503"
	change        time.Duration
	begin         time.Time

	mu   sync.Mutex
	log  []time.Duration // of all requests
	last time.Duration   // the latest page
	sent int             // pages
}

func (b *changing) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Since(b.begin)
	if req.URL.Path != "/robots.txt" {
		b.log = append(b.log, now)
		b.last = now
		b.sent++
		return answer(200, "", ""), nil
	}
	body := b.before
	if now >= b.change {
		body = b.after
	}
	if body == "503" { // the attempts of one reading come close together, as they do without a Pacer
		return answer(503, "", ""), nil
	}
	b.log = append(b.log, now)
	res := answer(200, "", body)
	res.Header.Set("Cache-Control", b.lifetime)
	return res, nil
}

const slowly = "User-agent: *\nCrawl-delay: 30\nAllow: /\n"

// A request that waits for its turn is decided on again when that comes, by what holds
// then: by a robots.txt that another caller has read meanwhile, or that is read for it.
func TestPacerDecidesAgainWhenTheTurnComes(t *testing.T) {
	const none, few = "User-agent: *\nDisallow: /\n", -1
	type row struct {
		name   string
		web    *changing
		cache  *cache.Cache
		ask    time.Duration // between the questions of another caller; 0: none asks
		served int           // of 20; few: as many as are due before the change
	}
	rows := []row{
		{"forbidden, and another caller asks", &changing{lifetime: "max-age=60", after: none, change: 45 * time.Second}, &cache.Cache{}, 90 * time.Second, few},
		{"forbidden later, and another caller asks", &changing{lifetime: "max-age=60", after: none, change: 125 * time.Second}, &cache.Cache{}, 10 * time.Second, few},
		{"forbidden, and no other asks", &changing{lifetime: "max-age=60", after: none, change: 45 * time.Second}, &cache.Cache{}, 0, few},
		{"an outage, strictly", &changing{lifetime: "max-age=60", after: "503", change: 45 * time.Second}, &cache.Cache{Outage: cache.Strict}, 90 * time.Second, few},
		{"an outage, strictly, and no other asks", &changing{lifetime: "max-age=60", after: "503", change: 45 * time.Second}, &cache.Cache{Outage: cache.Strict}, 0, few},
		{"an outage with a good copy", &changing{lifetime: "max-age=60", after: "503", change: 45 * time.Second}, &cache.Cache{}, 90 * time.Second, 20},
		{"no change", &changing{lifetime: "max-age=60", after: slowly, change: 45 * time.Second}, &cache.Cache{}, 90 * time.Second, 20},
		{"a lifetime below the delay", &changing{lifetime: "no-store", after: slowly}, &cache.Cache{MinTTL: -1}, 0, 20},
	}
	for change := 125 * time.Second; change < 250*time.Second; change += 5 * time.Second {
		rows = append(rows, row{fmt.Sprint("forbidden at ", change, ", perhaps just after it was looked up"),
			&changing{lifetime: "max-age=60", after: none, change: change}, &cache.Cache{}, change + 2*time.Second, few})
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(5 * time.Minute) // what is read behind the callers ends, too
				c.web.before, c.web.begin = slowly, time.Now()
				rt := &client.Transport{Base: c.web, UserAgent: "ExampleBot/1.0", Cache: c.cache, Pacer: &client.Pacer{}}
				var mu sync.Mutex
				served, refused := 0, 0
				var workers sync.WaitGroup
				for i := range 20 {
					workers.Go(func() {
						_, err := (&http.Client{Transport: rt}).Get(fmt.Sprint("http://a.example/", i))
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							served++
						} else if _, ok := errors.AsType[*client.DisallowedError](err); ok {
							refused++
						} else {
							t.Errorf("got %v, want it sent, or a *DisallowedError", err)
						}
					})
				}
				no := time.Duration(0) // when a caller was told no
				ctx, cancel := context.WithCancel(t.Context())
				var asker sync.WaitGroup
				if c.ask > 0 {
					asker.Go(func() {
						for time.Sleep(c.ask); ctx.Err() == nil && no == 0; time.Sleep(c.ask) {
							if d, err := rt.Decide(ctx, parse("http://a.example/x")); err == nil && !d.Allowed {
								no = time.Since(c.web.begin)
							}
						}
					})
				}
				workers.Wait()
				cancel()
				asker.Wait()
				c.web.mu.Lock()
				defer c.web.mu.Unlock()
				if c.served != few && served != c.served || served+refused != 20 || served != c.web.sent {
					t.Errorf("got %d served, %d refused, %d sent, want %d served, 20 in all, and all served sent (%d: any number)", served, refused, c.web.sent, c.served, few)
				}
				if no > 0 && c.web.last > no {
					t.Errorf("a page was sent at %v, want none after the no at %v", c.web.last, no)
				}
				if c.served == few && c.web.last > c.web.change+90*time.Second {
					t.Errorf("a page was sent at %v, want none 90s after robots.txt changed, at %v", c.web.last, c.web.change)
				}
				for i, at := range c.web.log[1:] {
					if gap := at - c.web.log[i]; gap < 30*time.Second && at < c.web.change {
						t.Errorf("requests at %v and %v, closer than 30s", c.web.log[i], at)
					}
				}
			})
		})
	}
}

// A refusal at the turn is reported to Trace like any other, and an allowed request once.
func TestTraceHearsOfTheDecisionAtTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &changing{lifetime: "max-age=60", before: slowly, after: "User-agent: *\nDisallow: /\n", change: 45 * time.Second, begin: time.Now()}
		var log []string
		rt := &client.Transport{Base: web, Pacer: &client.Pacer{}, Trace: &client.Trace{
			Decided: func(_ context.Context, u *url.URL, a client.Answer, _ time.Duration, _ error) {
				log = append(log, fmt.Sprint(u.Path, a.Allowed))
			},
		}}
		for _, page := range []string{"/1", "/2"} {
			go (&http.Client{Transport: rt}).Get("http://a.example" + page)
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []string{"/1true", "/2true", "/2false"}; !slices.Equal(log, want) {
			t.Errorf("got %v, want %v", log, want)
		}
	})
}

// A body that is left open keeps no one from reading robots.txt, which keeps the distance.
func TestPacerAnOpenBodyDoesNotMakeAnOriginUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var read []time.Duration
		base := &robotsAnswers{
			robots: func() *http.Response {
				read = append(read, time.Since(begin))
				res := answer(200, "", "User-agent: *\nAllow: /\n")
				res.Header.Set("Cache-Control", "max-age=60")
				return res
			},
			page: func() *http.Response { return answer(200, "", "a body that is left open") },
		}
		rt := &client.Transport{Base: base, Pacer: &client.Pacer{}, Cache: &cache.Cache{Outage: cache.Strict}}
		get(t, &http.Client{Transport: rt}, "http://a.example/")
		time.Sleep(10 * time.Minute)
		start := time.Now()
		d, err := rt.Decide(t.Context(), parse("http://a.example/"))
		if err != nil || !d.Allowed || time.Since(start) != 0 {
			t.Errorf("got %v, %v after %v, want a permission at once", d, err, time.Since(start))
		}
		// The same for a second Cache, soon after: it keeps the distance.
		rt = &client.Transport{Base: base, Pacer: rt.Pacer}
		if d, err := rt.Decide(t.Context(), parse("http://a.example/")); err != nil || !d.Allowed || time.Since(start) != time.Second {
			t.Errorf("got %v, %v after %v, want a permission after 1s", d, err, time.Since(start))
		}
		if len(read) != 3 {
			t.Errorf("robots.txt was read at %v, want 3 times", read)
		}
	})
}

// A store that counts what is put.
type putCounter struct {
	mu   sync.Mutex
	puts int
}

func (s *putCounter) Get(context.Context, string) ([]byte, error) { return nil, cache.ErrMiss }
func (s *putCounter) Put(context.Context, string, []byte, time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	return nil
}

// Where a delay of ours leaves no time to read robots.txt, the caller learns when to come back; the site has not
// failed, and nothing is remembered.
func TestPacerItsOwnDelayIsNoFailureOfTheSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(putCounter)
		c := &cache.Cache{Store: store}
		pacer := &client.Pacer{Delay: time.Hour}
		base := siteOf("User-agent: *\nAllow: /\n")
		u := parse("http://a.example/")
		pacer.Pass(t.Context(), u)
		rt := &client.Transport{Base: base, Pacer: pacer, Cache: c}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			if d, err := rt.Decide(ctx, u); !errors.As(err, new(*client.LateError)) {
				t.Errorf("got %v, %v, want that the turn comes later", d, err)
			}
			cancel()
		}
		if n := c.Stats().Origins; n != 0 || store.puts != 0 {
			t.Errorf("%d origins in memory, %d put in the Store, want none", n, store.puts)
		}
		if d, err := rt.Decide(t.Context(), u); err != nil || !d.Allowed {
			t.Errorf("%s: when its turn comes: got %v, %v, want it allowed", u, d, err)
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Where several tokens share a Pacer, an origin keeps the largest delay of those in use.
func TestPacerKeepsTheLargestDelayOfTheTokensInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const robots = "User-agent: SlowBot\nCrawl-delay: 20\nAllow: /\nUser-agent: FastBot\nCrawl-delay: 2\nAllow: /\nUser-agent: *\nAllow: /\n"
		pacer := &client.Pacer{}
		rt := &client.Transport{Base: siteOf(robots), Pacer: pacer}
		u := parse("http://a.example/")
		check := func(token string, want time.Duration) {
			t.Helper()
			req, _ := http.NewRequestWithContext(client.WithToken(t.Context(), token), "GET", u.String(), nil)
			if _, err := rt.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			if got := pacer.Next(u); got != want {
				t.Errorf("after %s: next in %v, want %v", token, got, want)
			}
		}
		check("FastBot", 2*time.Second)
		for range 3 {
			check("SlowBot", 20*time.Second)
			check("FastBot", 20*time.Second)
			check("OtherBot", 20*time.Second)
		}
		time.Sleep(time.Hour) // without SlowBot
		check("FastBot", 2*time.Second)
	})
}

// Of a robots.txt that cannot be had the Pacer learns nothing: the delay stays.
func TestPacerAnOutageKeepsTheDelay(t *testing.T) {
	for status, reason := range map[int]policy.Reason{503: policy.ReasonUnreachable, 429: policy.ReasonUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			now, reads, pacer, u := 200, policy.ReasonNoRule, &client.Pacer{}, parse("http://a.example/")
			base := &robotsAnswers{robots: func() *http.Response { return answer(now, "", "User-agent: *\nCrawl-delay: 20\n") }}
			rt := &client.Transport{
				Base: base, Pacer: pacer, Cache: &cache.Cache{Outage: cache.Strict, MaxTTL: time.Minute},
				Fetcher: &fetch.Fetcher{Retries: -1},
			}
			for range 4 {
				if d, _ := rt.Decide(t.Context(), u); d.Reason != reads {
					t.Fatalf("%s: got %v, want reason %v", u, d, reads)
				}
				pacer.Pass(t.Context(), u) // past the pause
				if got := pacer.Next(u); got != 20*time.Second {
					t.Errorf("after %d: next in %v, want 20s", now, got)
				}
				time.Sleep(50 * time.Minute)
				now, reads = status, reason
			}
		})
	}
}

// A context that ends with a cause ends a request as it does without us, wherever that is.
func TestACauseIsTheErrorAsNetHTTPHasIt(t *testing.T) {
	cause := errors.New("the crawl is over")
	for _, c := range []struct {
		name string
		rt   func() http.RoundTripper
	}{
		{"net/http", func() http.RoundTripper {
			return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				time.Sleep(time.Minute) // it goes on without us
				return nil, errFailing
			}}
		}},
		{"robots.txt is being read", func() http.RoundTripper { return &client.Transport{Base: roundtrip.Func(hang)} }},
		{"waiting for the Pacer", func() http.RoundTripper {
			return &client.Transport{Base: pagesOf(ok), Pacer: &client.Pacer{Delay: time.Hour}}
		}},
		{"the rules are known", func() http.RoundTripper {
			rt := &client.Transport{Base: pagesOf(hang), Pacer: &client.Pacer{Delay: -1}}
			rt.Decide(context.Background(), parse("http://a.example/"))
			return rt
		}},
		{"sent", func() http.RoundTripper { return &client.Transport{Base: pagesOf(hang), Pacer: &client.Pacer{}} }},
	} {
		for _, end := range []string{"canceled", "timed out", "ended before"} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				switch {
				case end == "canceled":
					time.AfterFunc(10*time.Second, func() { cancel(cause) })
				case end == "ended before":
					cancel(cause)
				case c.name == "waiting for the Pacer":
					return // refused before
				default:
					var stop context.CancelFunc
					ctx, stop = context.WithTimeoutCause(ctx, 10*time.Second, cause)
					defer stop()
				}
				rt := c.rt()
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
				if _, err := rt.RoundTrip(req); err != cause {
					t.Errorf("%s, %s: got %v, want %v", c.name, end, err, cause)
				}
				time.Sleep(3 * time.Minute) // the reading of robots.txt ends
			})
		}
	}
}

// The place of a request is given back when its body is done with, in whatever way, and
// the delay runs from then: a second request starts one second after the first ended.
func TestPacerPlaceIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		body io.ReadCloser
		use  func(t *testing.T, res *http.Response, cancel func())
		want time.Duration // after the first has begun
	}{
		{"no body", http.NoBody, nil, time.Second},
		{"closed", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			res.Body.Close()
			res.Body.Close() // no harm
		}, 5 * time.Second},
		{"read to its end", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			if b, err := io.ReadAll(res.Body); string(b) != "page" || err != nil {
				t.Errorf("read %q, %v, want page", b, err)
			}
			time.AfterFunc(time.Minute, func() { res.Body.Close() })
		}, 5 * time.Second},
		{"copied to its end", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			var b strings.Builder
			if n, err := io.Copy(&b, res.Body); b.String() != "page" || n != 4 || err != nil {
				t.Errorf("copied %q, %d, %v, want the 4 bytes of page", b.String(), n, err)
			}
		}, 5 * time.Second},
		{"fails", io.NopCloser(io.MultiReader(strings.NewReader("pa"), failing{})), func(t *testing.T, res *http.Response, _ func()) {
			time.Sleep(4 * time.Second)
			if b, err := io.ReadAll(res.Body); string(b) != "pa" || err != errFailing {
				t.Errorf("read %q, %v, want pa, %v", b, err, errFailing)
			}
		}, 5 * time.Second},
		{"forgotten, the context ends", text("page"), func(t *testing.T, res *http.Response, cancel func()) {
			time.Sleep(4 * time.Second)
			cancel()
		}, 5 * time.Second},
		{"half read", text("page"), func(t *testing.T, res *http.Response, _ func()) {
			io.CopyN(io.Discard, res.Body, 2)
			time.AfterFunc(time.Minute, func() { res.Body.Close() })
		}, 61 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := paced(&client.Pacer{}, pagesOf(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: c.body}, nil
			}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
			res, err := web.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if c.use != nil {
				c.use(t, res, cancel)
			}
			web.Get("http://a.example/")
			if took := time.Since(begin); took != c.want {
				t.Errorf("%s: the next started after %v, want %v", c.name, took, c.want)
			}
		})
	}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

type failing struct{}

var errFailing = errors.New("connection reset")

func (failing) Read([]byte) (int, error) { return 0, errFailing }

// The body of a 101 answer is the connection, as net/http gave it, and takes no place: a socket that stays open
// for hours keeps no page waiting.
func TestPacerLeavesUpgradedConnectionsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := struct{ net.Conn }{}
		c := paced(&client.Pacer{}, pagesOf(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/socket" {
				return &http.Response{StatusCode: 101, Body: conn}, nil
			}
			return answer(200, "", "page"), nil
		}))
		res, _ := get(t, c, "http://a.example/socket")
		if res.Body != io.ReadCloser(conn) {
			t.Errorf("the body is a %T, want that of Base", res.Body)
		}
		res, took := get(t, c, "http://a.example/page")
		if res.Body.Close(); took != time.Second {
			t.Errorf("a page after %v, want 1s", took)
		}
	})
}

// failingTurns is a store of turns that is away.
type failingTurns struct{}

func (failingTurns) Reserve(context.Context, string, time.Duration, time.Duration, time.Duration) (time.Duration, bool, error) {
	return 0, false, errFailing
}
func (failingTurns) Pause(context.Context, string, time.Duration) (time.Duration, error) {
	return 0, errFailing
}

// A time-out says what it waited for, if that was no page.
func TestATimeOutSaysWhatItWaitedFor(t *testing.T) {
	silent := roundtrip.Func(hang)
	answers := roundtrip.Func(func(*http.Request) (*http.Response, error) { return answer(200, "", "page"), nil })
	for _, c := range []struct {
		rt   *client.Transport
		open int // bodies
		want string
	}{
		{&client.Transport{Base: silent}, 0, "waiting for http://a.example/robots.txt"},
		{&client.Transport{Base: silent, Pacer: &client.Pacer{}}, 0, "waiting for http://a.example/robots.txt"},
		{&client.Transport{Base: silent, Pacer: &client.Pacer{Turns: failingTurns{}}}, 0, "waiting for the store of turns: " + errFailing.Error()},
		{&client.Transport{Base: answers, Pacer: &client.Pacer{}}, 1, "waiting for another request to the site to end"},
	} {
		synctest.Test(t, func(t *testing.T) {
			for range c.open {
				(&http.Client{Transport: c.rt}).Get("http://a.example/open")
			}
			hc := &http.Client{Transport: c.rt, Timeout: 10 * time.Second}
			_, err := hc.Get("http://a.example/")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a time-out that says %q", err, c.want)
			}
			c.rt.Close()
		})
	}
}

// So does a turn that an open body makes late, even if the body's context ends before the wait does.
func TestALateTurnSaysThatABodyIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(&client.Pacer{Delay: 100 * time.Millisecond}, pagesOf(func(*http.Request) (*http.Response, error) {
			return answer(200, "", "page"), nil
		}))
		c.Timeout = 2 * time.Second
		late := func(err error, says bool) {
			t.Helper()
			const why = ", waiting for another request to the site to end"
			if !errors.As(err, new(*client.LateError)) || strings.HasSuffix(err.Error(), why) != says {
				t.Errorf("got %v, want a *LateError; does it say %q: %t", err, why, says)
			}
		}
		try := func() error {
			_, err := c.Transport.(*client.Transport).Try(t.Context(), parse("http://a.example/"))
			return err
		}
		res, _ := get(t, c, "http://a.example/closed")
		res.Body.Close()
		late(try(), false) // because of the delay
		time.Sleep(time.Second)
		get(t, c, "http://a.example/open")
		late(try(), true)
		time.Sleep(50 * time.Millisecond)
		begin := time.Now()
		_, err := c.Get("http://a.example/")
		late(err, true)
		if took := time.Since(begin); took != 1950*time.Millisecond {
			t.Errorf("told after %v, want at the end of the body's context, after 1.95s", took)
		}
		late(try(), false) // it has ended
	})
}

// A Through of the caller's comes before the turn: what it refuses slows no site, and what it holds back keeps the delay.
func TestAnotherPaceForRobotsComesBeforeTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, left, start := errors.New("quota used up"), 3, time.Now()
		rt := &client.Transport{
			Base: siteOf("User-agent: *\nCrawl-delay: 5\n"), Pacer: new(client.Pacer),
			Fetcher: &fetch.Fetcher{Through: func(wire http.RoundTripper) http.RoundTripper {
				return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
					if left--; left > 0 {
						return nil, full
					}
					time.Sleep(3 * time.Second)
					return wire.RoundTrip(req)
				})
			}},
		}
		for range 2 {
			if _, err := rt.RoundTrip(request(http.MethodGet, "http://a.example/", nil)); !errors.Is(err, full) || !errors.Is(err, client.ErrNotSent) {
				t.Errorf("got %v, want the error of Through", err)
			}
		}
		if _, err := rt.RoundTrip(request(http.MethodGet, "http://a.example/", nil)); err != nil || time.Since(start) != 8*time.Second {
			t.Errorf("a page after %v (%v), want one after 8s", time.Since(start), err)
		}
	})
}
