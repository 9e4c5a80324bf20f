package policy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// Values of Request-rate, those of real files among them. No delay: ignored.
var rates = []struct {
	value    string
	delay    time.Duration
	from, to int
}{
	// As Seznam documents them.
	{"1/10s", 10 * time.Second, 0, 1440},
	{"100/15m", (15*time.Minute + 100 - 1) / 100, 0, 1440},
	{"400/1h", (time.Hour + 400 - 1) / 400, 0, 1440},
	{"9000/1d", (24*time.Hour + 9000 - 1) / 9000, 0, 1440},
	{"1/10s 1800-1900", 10 * time.Second, 1080, 1140},

	// As files have them.
	{"1/5", 5 * time.Second, 0, 1440},
	{"5/1", (time.Second + 5 - 1) / 5, 0, 1440},
	{"1/10S", 10 * time.Second, 0, 1440},
	{"1/1M 2200-0600", time.Minute, 1320, 360},
	{" 1 / 10s \t 0000-2400 ", 10 * time.Second, 0, 1440},
	{"01/010s", 10 * time.Second, 0, 1440},

	// No whole pause.
	{"3/1s", (time.Second + 3 - 1) / 3, 0, 1440},
	{"7/10s 0000-0001", (10*time.Second + 7 - 1) / 7, 0, 1},

	// Absurd, in range all the same.
	{"1/99999999999999999999999999d", math.MaxInt64, 0, 1440},
	{"1/200000d", math.MaxInt64, 0, 1440},
	{"99999999999999999999999999/1s", 1, 0, 1440},
	{"99999999999999999999999999/99999999999999999999999999d", 1, 0, 1440},

	// Malformed (lint RT411).
	{"", 0, 0, 0},
	{"10", 0, 0, 0},
	{"/", 0, 0, 0},
	{"1/", 0, 0, 0},
	{"/10s", 0, 0, 0},
	{"1/s", 0, 0, 0},
	{"0/10s", 0, 0, 0},
	{"1/0s", 0, 0, 0},
	{"-1/10s", 0, 0, 0},
	{"1/-10s", 0, 0, 0},
	{"+1/10s", 0, 0, 0},
	{"1/10x", 0, 0, 0},
	{"1/10ss", 0, 0, 0},
	{"1.5/10s", 0, 0, 0},
	{"1/1.5s", 0, 0, 0},
	{"1_0/10s", 0, 0, 0},
	{"one/10s", 0, 0, 0},
	{"1/10 s", 0, 0, 0},
	{"1/10s/2", 0, 0, 0},
	{"1/10s 1800", 0, 0, 0},
	{"1/10s 1800-", 0, 0, 0},
	{"1/10s 1800-1900-2000", 0, 0, 0},
	{"1/10s 18:00-19:00", 0, 0, 0},
	{"1/10s 1860-1900", 0, 0, 0},
	{"1/10s 2400-0100", 0, 0, 0},
	{"1/10s 1800-2401", 0, 0, 0},
	{"1/10s 1800-1800", 0, 0, 0},
	{"1/10s 1800-1900 UTC", 0, 0, 0},
	{"1/١٠s", 0, 0, 0}, // digits of another script
}

func TestRequestRateIsReadAsSeznamWritesItOrIgnored(t *testing.T) {
	midnight := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range rates {
		r := policy.Parse([]byte("User-agent: *\nRequest-rate:" + c.value)).Group("*").Rate()
		if r.IsZero() != (c.delay == 0) {
			t.Errorf("%q: got a zero Rate: %v, want %v", c.value, r.IsZero(), c.delay == 0)
		}
		for minute := range 24 * 60 {
			in := c.from <= minute && minute < c.to
			if c.to < c.from {
				in = minute >= c.from || minute < c.to
			}
			want := time.Duration(0)
			if in {
				want = c.delay
			}
			got, _, ok := r.At(midnight.Add(time.Duration(minute) * time.Minute))
			if got != want || ok != (want > 0) {
				t.Fatalf("%q at minute %d: got %v, %v, want %v", c.value, minute, got, ok, want)
			}
		}
	}
}

func TestRateSaysUntilWhenItHolds(t *testing.T) {
	const day = 24 * time.Hour
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		records string
		until   time.Duration // from noon; 0: for ever
	}{
		{"", 0},
		{"Crawl-delay: 5\n", 0},
		{"Request-rate: 1/10s\n", 0},
		{"Request-rate: 1/10s 1300-1400\n", time.Hour},
		{"Request-rate: 1/10s 1100-1400\n", 2 * time.Hour},
		{"Request-rate: 1/10s 1000-1200\n", day - 2*time.Hour},
		{"Request-rate: 1/10s 1200-1100\n", day - time.Hour},
		{"Request-rate: 1/10s 1300-1400\nRequest-rate: 1/5s 1230-1300\n", 30 * time.Minute},
	} {
		_, until, _ := policy.Parse([]byte("User-agent: *\n" + c.records)).Group("a").Rate().At(at)
		want := at.Add(c.until)
		if c.until == 0 {
			want = time.Time{}
		}
		if !until.Equal(want) {
			t.Errorf("%q: got until %v, want %v", c.records, until, want)
		}
	}
}

func TestRequestRateIsIgnoredWhereTheEngineDoes(t *testing.T) {
	for d, want := range map[policy.Dialect]bool{
		policy.RFC9309: false, policy.Google: true, policy.Yandex: true, policy.Bing: true, policy.Original: true,
	} {
		g := d.Parse([]byte("User-agent: *\nRequest-rate: 1/10s\nDisallow: /x\n")).Group("*")
		if got := g.Rate().IsZero(); got != want {
			t.Errorf("%v: got ignored %v, want %v", d, got, want)
		}
	}
}

// A record about the pace speaks to the names above it in its group, and to no others of a group that goes on.
func TestDelaysSpeakToTheNamesAbove(t *testing.T) {
	const s = time.Second
	file := "Crawl-delay: 9\nUser-agent: a\nCrawl-delay: 1\nRequest-rate: 1/3s\nUser-agent: b\nUser-agent: *\nCrawl-delay: 2\n" +
		"User-agent: c\nDisallow: /\nCrawl-delay: 4\n\nUser-agent: A\nDisallow: /x\nCrawl-delay: 0.5\n"
	for token, want := range map[string][2]time.Duration{ // Crawl-delay; with Request-rate
		"a": {4 * s, 4 * s}, "b": {4 * s, 4 * s}, "*": {4 * s, 4 * s}, "c": {4 * s, 4 * s}, "other": {4 * s, 4 * s},
	} {
		g := policy.Parse([]byte(file)).Group(token)
		if got, _ := g.CrawlDelay(); got != want[0] {
			t.Errorf("%s: got %v, want %v", token, got, want[0])
		}
	}
	file = "User-agent:\nCrawl-delay: 9\nCrawl-delay: 9\nUser-agent: a\nCrawl-delay: 5\nRequest-rate: 1/8s\nUser-agent: b\nCrawl-delay: 3\nUser-agent: *\nDisallow: /\n"
	for token, want := range map[string][2]time.Duration{"a": {5 * s, 8 * s}, "B": {3 * s, 3 * s}, "*": {0, 0}, "c": {0, 0}} {
		for name, g := range map[string]policy.Group{
			"group":    policy.Parse([]byte(file)).Group(token),
			"combined": policy.Parse([]byte(file)).Combined(token),
			"text":     policy.Parse([]byte(policy.Parse([]byte(file)).String())).Group(token),
		} {
			delay, _ := g.CrawlDelay()
			rate, _, ok := g.Rate().At(time.Now())
			if delay != want[0] || rate != want[1] || ok != (want[1] > 0) {
				t.Errorf("%s of %s: got %v and %v, want %v", name, token, delay, rate, want)
			}
		}
	}
}

func TestADelayIsKeptBehindAFloodOfRecords(t *testing.T) {
	file := "User-agent: *\n" + strings.Repeat("X-Flood: "+strings.Repeat("x", 1000)+"\n", 250) + strings.Repeat("X: y\n", 10_000) + "Crawl-delay: 7\nDisallow: /x\n"
	if got, ok := policy.Parse([]byte(file)).Group("a").CrawlDelay(); got != 7*time.Second {
		t.Errorf("got %v, %v, want 7s", got, ok)
	}
}

func TestFewRatesOfAGroupAreRead(t *testing.T) {
	file := "User-agent: b\n" + strings.Repeat("Request-rate: 1/3s\n", 32) + "Request-rate: 1/4s\nDisallow: /\n"
	if got, _, _ := policy.Parse([]byte(file)).Group("b").Rate().At(time.Now()); got != 3*time.Second {
		t.Errorf("got %v, want 3s: 32 records are read", got)
	}
}

// FuzzRate: between now and the next change the answer is the same throughout.
func FuzzRate(f *testing.F) {
	for _, c := range rates {
		f.Add(c.value, int64(1_700_000_000))
	}
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		r := policy.Parse([]byte("User-agent: *\nRequest-rate: " + value)).Group("*").Rate()
		now := time.Unix(unix%(1<<40), 0)
		delay, change, ok := r.At(now)
		if delay < 0 {
			t.Fatalf("%q: got %v, want 0 or more", value, delay)
		}
		if change.IsZero() {
			return
		}
		if !change.After(now) || change.Sub(now) > 24*time.Hour {
			t.Fatalf("%q: at %v the next change is at %v, want it within a day", value, now, change)
		}
		if last, _, still := r.At(change.Add(-1)); last != delay || still != ok {
			t.Fatalf("%q: right before %v got %v, %t, want %v, %t as at %v", value, change, last, still, delay, ok, now)
		}
	})
}
