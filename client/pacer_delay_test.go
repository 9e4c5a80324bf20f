package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

func group(robots string) policy.Group {
	return policy.Parse([]byte(robots)).Group("ExampleBot")
}

// withRobots is a Base with one robots.txt and empty pages.
func withRobots(robots string) http.RoundTripper {
	return &robotsAnswers{
		robots: func() *http.Response { return answer(200, "", robots) },
		page:   func() *http.Response { return answer(200, "", "") },
	}
}

// What robots.txt asks for and what is kept. Bubbles begin at midnight UTC.
func TestPacerKeepsWhatRobotsAsksFor(t *testing.T) {
	for _, c := range []struct {
		name, robots string
		pacer        *client.Pacer
		want         time.Duration
	}{
		{"nothing", "User-agent: *\nAllow: /\n", over(&client.Pacer{}), time.Second},
		{"S004-06 seconds", "User-agent: *\nCrawl-delay: 5\n", over(&client.Pacer{}), 5 * time.Second},
		{"Y-12 fraction", "User-agent: *\nCrawl-delay: .5\n", over(&client.Pacer{}), 500 * time.Millisecond},
		{"none at all", "User-agent: *\nCrawl-delay: 0\n", over(&client.Pacer{}), 0},
		{"our group alone", "User-agent: *\nCrawl-delay: 9\nAllow: /\n\nUser-agent: examplebot\nCrawl-delay: 2\n", over(&client.Pacer{}), 2 * time.Second},
		{"D-6 one group, though an empty line lies between", "User-agent: *\nCrawl-delay: 3\n\nUser-agent: other\nAllow: /\n", over(&client.Pacer{}), 3 * time.Second},
		{"D-7 the largest of several", "User-agent: *\nCrawl-delay: 2\nCrawl-delay: 7\nCrawl-delay: 3\n", over(&client.Pacer{}), 7 * time.Second},
		{"D-7 not a number", "User-agent: *\nCrawl-delay: [5]\n", over(&client.Pacer{}), time.Second},
		{"D-7 negative", "User-agent: *\nCrawl-delay: -5\n", over(&client.Pacer{}), time.Second},
		{"less than Delay", "User-agent: *\nCrawl-delay: 2\n", over(&client.Pacer{Delay: 10 * time.Second}), 2 * time.Second},
		{"D-7 more than the cap", "User-agent: *\nCrawl-delay: 3600\n", over(&client.Pacer{}), 30 * time.Second},
		{"a cap of our own", "User-agent: *\nCrawl-delay: 60\n", over(&client.Pacer{MaxDelay: 45 * time.Second}), 45 * time.Second},
		{"no cap", "User-agent: *\nCrawl-delay: 90\n", over(&client.Pacer{MaxDelay: -1}), 90 * time.Second},
		{"at the cap, refusing more", "User-agent: *\nCrawl-delay: 30\n", over(&client.Pacer{RefuseLongDelays: true}), 30 * time.Second},

		{"E-01 rate", "User-agent: *\nRequest-rate: 1/10s\n", over(&client.Pacer{}), 10 * time.Second},
		{"E-01 rate, several documents", "User-agent: *\nrequest-rate: 100/15m\n", over(&client.Pacer{}), 9 * time.Second},
		{"rate with a comment", "User-agent: *\nRequest-rate: 1/5         # maximum rate\n", over(&client.Pacer{}), 5 * time.Second},
		{"rate capped", "User-agent: *\nRequest-rate: 1/1d\n", over(&client.Pacer{}), 30 * time.Second},
		{"the larger of both", "User-agent: *\nRequest-rate: 1/4s\nCrawl-delay: 3\n", over(&client.Pacer{}), 4 * time.Second},
		{"the larger of both, turned round", "User-agent: *\nRequest-rate: 1/3s\nCrawl-delay: 4\n", over(&client.Pacer{}), 4 * time.Second},
		{"RT411 malformed", "User-agent: *\nRequest-rate: 10\n", over(&client.Pacer{}), time.Second},
		{"in its window", "User-agent: *\nRequest-rate: 1/10s 0000-0100\n", over(&client.Pacer{}), 10 * time.Second},
		{"in its window, less than the delay", "User-agent: *\nCrawl-delay: 20\nRequest-rate: 1/10s 0000-0100\n", over(&client.Pacer{}), 20 * time.Second},
		{"in a window over midnight", "User-agent: *\nRequest-rate: 1/10s 2300-0100\n", over(&client.Pacer{}), 10 * time.Second},
		{"out of its window", "User-agent: *\nRequest-rate: 1/10s 0100-0000\n", over(&client.Pacer{}), time.Second},
		{"out of its window, with a delay", "User-agent: *\nRequest-rate: 1/10s 0100-0200\nCrawl-delay: 3\n", over(&client.Pacer{}), 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := over(&client.Pacer{Delay: c.pacer.Delay, MaxDelay: c.pacer.MaxDelay, RefuseLongDelays: c.pacer.RefuseLongDelays})
			web := paced(p, withRobots(c.robots))
			get(t, web, "http://a.example/")
			if _, took := get(t, web, "http://a.example/"); took != c.want {
				t.Errorf("%s: waited %v, want %v", c.name, took, c.want)
			}
			alone := over(&client.Pacer{Delay: c.pacer.Delay, MaxDelay: c.pacer.MaxDelay, RefuseLongDelays: c.pacer.RefuseLongDelays})
			u := parse("http://a.example/")
			alone.Learn(u, group(c.robots))
			alone.Wait(t.Context(), u)
			if got := time.Until(alone.Next(u)); got != c.want {
				t.Errorf("%s, learned: next in %v, want %v", c.name, got, c.want)
			}
		})
	}
}

func TestPacerRefusesWhatIsAboveTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(&client.Pacer{RefuseLongDelays: true})
		web := paced(p, withRobots("User-agent: *\nCrawl-delay: 120\n"))
		_, err := web.Get("http://a.example/page")
		refusal, ok := errors.AsType[*client.DelayError](err)
		if !ok {
			t.Fatalf("got %v, want a *DelayError", err)
		}
		if refusal.Delay != 2*time.Minute || refusal.Max != 30*time.Second {
			t.Errorf("got %v, want Delay 2m0s and Max 30s", refusal)
		}
		for _, part := range []string{"http://a.example", "2m0s", "30s", "MaxDelay"} {
			if !strings.Contains(refusal.Error(), part) {
				t.Errorf("%q does not say %q", refusal, part)
			}
		}
		if _, ok := errors.AsType[*client.DelayError](p.Wait(t.Context(), parse("http://a.example/"))); !ok {
			t.Error("Wait does not refuse")
		}
		if _, err := web.Get("http://b.example/robots.txt"); err != nil { // no rule holds for it
			t.Error(err)
		}
	})
}

// A window opens and closes while requests are made.
func TestPacerFollowsTheWindowsOfRequestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(&client.Pacer{MaxDelay: -1, Delay: 10 * time.Minute})
		u, midnight := parse("http://a.example/"), time.Now()
		p.Learn(u, group("User-agent: *\nRequest-rate: 1/40m 0100-0200\nRequest-rate: 1/2h 0130-0145\n"))
		var got []string
		for range 11 {
			p.Wait(t.Context(), u)
			got = append(got, time.Since(midnight).String())
		}
		// At 0050 ten minutes are asked for, but at 0100 forty, from 0130 two hours, at 0145
		// forty again: fifty-five minutes after the last, it may go at once. At 0200 ten.
		want := "0s 10m0s 20m0s 30m0s 40m0s 50m0s 1h45m0s 2h0m0s 2h10m0s 2h20m0s 2h30m0s"
		if s := strings.Join(got, " "); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
	})
}

// Decide tells the Pacer as well, so that Wait knows the delay before the first page.
func TestPacerLearnsFromDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := over(&client.Pacer{})
		web := &client.Transport{Base: withRobots("User-agent: *\nCrawl-delay: 7\n"), Pacer: p}
		u := parse("http://a.example/")
		if d, err := web.Decide(t.Context(), u); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		if got := time.Until(p.Next(u)); got != 7*time.Second {
			t.Errorf("next in %v, want 7s after robots.txt", got)
		}
	})
}

// The delay is the one in the group for the token decided for, in the file last read.
func TestPacerLearnsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		robots := "User-agent: one\nCrawl-delay: 2\nAllow: /\nUser-agent: two\nCrawl-delay: 5\nAllow: /\n"
		p := over(&client.Pacer{})
		web := &client.Transport{
			Base: &robotsAnswers{
				robots: func() *http.Response { return answer(200, "", robots) },
				page:   func() *http.Response { return answer(200, "", "") },
			},
			Pacer: p,
		}
		u := parse("http://a.example/")
		check := func(token string, want time.Duration) {
			t.Helper()
			time.Sleep(time.Minute)
			web.Decide(client.WithToken(t.Context(), token), u)
			p.Wait(t.Context(), u)
			if got := time.Until(p.Next(u)); got != want {
				t.Errorf("as %s: next in %v, want %v", token, got, want)
			}
		}
		check("one", 2*time.Second)
		check("two", 5*time.Second)
		check("two", 5*time.Second)
		robots = strings.ReplaceAll(robots, "5", "7")
		check("two", 5*time.Second) // still fresh
		time.Sleep(25 * time.Hour)
		check("two", 7*time.Second)
	})
}

// Two User-Agents with one token, and two dialects, are one visitor, also to a site that has a file for each: the larger
// delay is kept.
func TestPacerKeepsTheLargestDelayOfAllCrawlersWithOneToken(t *testing.T) {
	for _, other := range []*client.Transport{
		{UserAgent: "Fast/1"},
		{UserAgent: "Slow/1", Dialect: policy.Google}, // which knows no Crawl-delay
	} {
		synctest.Test(t, func(t *testing.T) { keepsTheLargestDelay(t, other) })
	}
}

func keepsTheLargestDelay(t *testing.T, fast *client.Transport) {
	p, shared := over(&client.Pacer{}), new(cache.Cache)
	defer shared.Shutdown(context.Background())
	slow := &client.Transport{Base: agentsBase{}, UserAgent: "Slow/1", Token: "bot", Pacer: p, Cache: shared}
	fast.Base, fast.Token, fast.Pacer, fast.Cache = agentsBase{}, "bot", p, shared
	begin, sent := time.Now(), make([]time.Duration, 4)
	var all sync.WaitGroup
	for i := range sent {
		all.Go(func() {
			get(t, &http.Client{Transport: slow}, fmt.Sprintf("http://a.example/%d", i))
			sent[i] = time.Since(begin)
		})
	}
	time.Sleep(25 * time.Second) // one was sent, three wait
	if _, err := fast.Decide(t.Context(), parse("http://a.example/")); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	slices.Sort(sent)
	for i := range sent[1:] {
		if gap := sent[i+1] - sent[i]; gap < 20*time.Second {
			t.Errorf("two requests of Slow/1 were sent %v apart: %v", gap, sent)
		}
	}
	// Who decided last does not count either.
	fast.Decide(t.Context(), parse("http://a.example/"))
	if err := p.Wait(t.Context(), parse("http://a.example/later")); err != nil {
		t.Fatal(err)
	}
	if gap := time.Since(begin) - sent[3]; gap < 20*time.Second {
		t.Errorf("the next turn came %v after the request before", gap)
	}
}

// agentsBase is a site that asks each User-Agent for another delay.
type agentsBase struct{}

func (agentsBase) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/robots.txt" {
		return answer(200, "", ""), nil
	}
	res := answer(200, "", "User-agent: bot\nCrawl-delay: 1\n")
	if req.Header.Get("User-Agent") == "Slow/1" {
		res = answer(200, "", "User-agent: bot\nCrawl-delay: 20\n")
	}
	res.Header.Set("Vary", "User-Agent")
	return res, nil
}
