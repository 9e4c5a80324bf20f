package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

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
		{"nothing", "User-agent: *\nAllow: /\n", &client.Pacer{}, time.Second},
		{"S004-06 seconds", "User-agent: *\nCrawl-delay: 5\n", &client.Pacer{}, 5 * time.Second},
		{"Y-12 fraction", "User-agent: *\nCrawl-delay: .5\n", &client.Pacer{}, 500 * time.Millisecond},
		{"none at all", "User-agent: *\nCrawl-delay: 0\n", &client.Pacer{}, 0},
		{"our group alone", "User-agent: *\nCrawl-delay: 9\nAllow: /\n\nUser-agent: examplebot\nCrawl-delay: 2\n", &client.Pacer{}, 2 * time.Second},
		{"D-6 one group, though an empty line lies between", "User-agent: *\nCrawl-delay: 3\n\nUser-agent: other\nAllow: /\n", &client.Pacer{}, 3 * time.Second},
		{"D-7 the largest of several", "User-agent: *\nCrawl-delay: 2\nCrawl-delay: 7\nCrawl-delay: 3\n", &client.Pacer{}, 7 * time.Second},
		{"D-7 not a number", "User-agent: *\nCrawl-delay: [5]\n", &client.Pacer{}, time.Second},
		{"D-7 negative", "User-agent: *\nCrawl-delay: -5\n", &client.Pacer{}, time.Second},
		{"less than Delay", "User-agent: *\nCrawl-delay: 2\n", &client.Pacer{Delay: 10 * time.Second}, 2 * time.Second},
		{"D-7 more than the cap", "User-agent: *\nCrawl-delay: 3600\n", &client.Pacer{}, 30 * time.Second},
		{"a cap of our own", "User-agent: *\nCrawl-delay: 60\n", &client.Pacer{MaxDelay: 45 * time.Second}, 45 * time.Second},
		{"no cap", "User-agent: *\nCrawl-delay: 90\n", &client.Pacer{MaxDelay: -1}, 90 * time.Second},
		{"at the cap, refusing more", "User-agent: *\nCrawl-delay: 30\n", &client.Pacer{RefuseLongDelays: true}, 30 * time.Second},

		{"E-01 rate", "User-agent: *\nRequest-rate: 1/10s\n", &client.Pacer{}, 10 * time.Second},
		{"E-01 rate, several documents", "User-agent: *\nrequest-rate: 100/15m\n", &client.Pacer{}, 9 * time.Second},
		{"rate with a comment", "User-agent: *\nRequest-rate: 1/5         # maximum rate\n", &client.Pacer{}, 5 * time.Second},
		{"rate capped", "User-agent: *\nRequest-rate: 1/1d\n", &client.Pacer{}, 30 * time.Second},
		{"the larger of both", "User-agent: *\nRequest-rate: 1/4s\nCrawl-delay: 3\n", &client.Pacer{}, 4 * time.Second},
		{"the larger of both, turned round", "User-agent: *\nRequest-rate: 1/3s\nCrawl-delay: 4\n", &client.Pacer{}, 4 * time.Second},
		{"RT411 malformed", "User-agent: *\nRequest-rate: 10\n", &client.Pacer{}, time.Second},
		{"in its window", "User-agent: *\nRequest-rate: 1/10s 0000-0100\n", &client.Pacer{}, 10 * time.Second},
		{"in its window, less than the delay", "User-agent: *\nCrawl-delay: 20\nRequest-rate: 1/10s 0000-0100\n", &client.Pacer{}, 20 * time.Second},
		{"in a window over midnight", "User-agent: *\nRequest-rate: 1/10s 2300-0100\n", &client.Pacer{}, 10 * time.Second},
		{"out of its window", "User-agent: *\nRequest-rate: 1/10s 0100-0000\n", &client.Pacer{}, time.Second},
		{"out of its window, with a delay", "User-agent: *\nRequest-rate: 1/10s 0100-0200\nCrawl-delay: 3\n", &client.Pacer{}, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &client.Pacer{Delay: c.pacer.Delay, MaxDelay: c.pacer.MaxDelay, RefuseLongDelays: c.pacer.RefuseLongDelays}
			web := paced(p, withRobots(c.robots))
			get(t, web, "http://a.example/")
			if _, took := get(t, web, "http://a.example/"); took != c.want {
				t.Errorf("%s: waited %v, want %v", c.name, took, c.want)
			}
		})
	}
}

func TestPacerRefusesWhatIsAboveTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &client.Pacer{RefuseLongDelays: true}
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
		if _, err := web.Transport.(*client.Transport).Try(t.Context(), parse("http://a.example/")); !errors.As(err, new(*client.DelayError)) {
			t.Errorf("Try: got %v, want a *DelayError", err)
		}
		if _, err := web.Get("http://b.example/robots.txt"); err != nil { // no rule holds for it
			t.Error(err)
		}
	})
}

// The delay is the one in the group for the token decided for, in the file last read.
func TestPacerLearnsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		robots := "User-agent: one\nCrawl-delay: 2\nAllow: /\nUser-agent: two\nCrawl-delay: 5\nAllow: /\n"
		p := &client.Pacer{}
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
			p.Pass(t.Context(), u)
			if got := p.Next(u); got != want {
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
