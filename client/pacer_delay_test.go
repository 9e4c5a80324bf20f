package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
)

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
		{"a Delay above the cap, which is on what robots.txt asks for", "User-agent: *\nAllow: /\n", &client.Pacer{Delay: time.Minute}, time.Minute},
		{"less than Delay", "User-agent: *\nCrawl-delay: 2\n", &client.Pacer{Delay: 10 * time.Second}, 2 * time.Second},
		{"D-7 more than the cap", "User-agent: *\nCrawl-delay: 3600\n", &client.Pacer{}, 30 * time.Second},
		{"a cap of our own", "User-agent: *\nCrawl-delay: 60\n", &client.Pacer{MaxDelay: 45 * time.Second}, 45 * time.Second},
		{"no cap", "User-agent: *\nCrawl-delay: 90\n", &client.Pacer{MaxDelay: -1}, 90 * time.Second},

		{"E-01 rate", "User-agent: *\nRequest-rate: 1/10s\n", &client.Pacer{}, 10 * time.Second},
		{"the larger of both", "User-agent: *\nRequest-rate: 1/4s\nCrawl-delay: 3\n", &client.Pacer{}, 4 * time.Second},
		{"in its window", "User-agent: *\nRequest-rate: 1/10s 0000-0100\n", &client.Pacer{}, 10 * time.Second},
		{"out of its window", "User-agent: *\nRequest-rate: 1/10s 0100-0000\n", &client.Pacer{}, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &client.Pacer{Delay: c.pacer.Delay, MaxDelay: c.pacer.MaxDelay}
			web := paced(p, siteOf(c.robots))
			get(t, web, "http://a.example/")
			if _, took := get(t, web, "http://a.example/"); took != c.want {
				t.Errorf("%s: waited %v, want %v", c.name, took, c.want)
			}
		})
	}
}

// Waiting inside RoundTrip is on the account of http.Client.Timeout; what cannot be had
// in time is refused at once, and the request's body is closed.
func TestRoundTripRefusesATurnAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := paced(&client.Pacer{}, pagesOf(func(*http.Request) (*http.Response, error) {
			return answer(429, "120", ""), nil
		}))
		get(t, c, "http://a.example/")
		c.Timeout = time.Minute
		begin := time.Now()
		body := &closeCount{Reader: strings.NewReader("x")}
		_, err := c.Post("http://a.example/", "text/plain", body)
		if !errors.As(err, new(*client.LateError)) || errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 0 {
			t.Errorf("got %v after %v, want a *LateError at once", err, time.Since(begin))
		}
		if body.closed == 0 {
			t.Error("the request's body is not closed")
		}
	})
}
