package policy_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// Values of Request-rate, those of real files among them. No want: ignored.
var rates = []struct {
	value string
	want  policy.Rate
}{
	// As Seznam documents them.
	{"1/10s", policy.Rate{Pages: 1, Period: 10 * time.Second, From: 0, To: 1440}},
	{"100/15m", policy.Rate{Pages: 100, Period: 15 * time.Minute, From: 0, To: 1440}},
	{"400/1h", policy.Rate{Pages: 400, Period: time.Hour, From: 0, To: 1440}},
	{"9000/1d", policy.Rate{Pages: 9000, Period: 24 * time.Hour, From: 0, To: 1440}},
	{"1/10s 1800-1900", policy.Rate{Pages: 1, Period: 10 * time.Second, From: 1080, To: 1140}},

	// As files have them.
	{"1/5", policy.Rate{Pages: 1, Period: 5 * time.Second, From: 0, To: 1440}},
	{"5/1", policy.Rate{Pages: 5, Period: time.Second, From: 0, To: 1440}},
	{"1/10S", policy.Rate{Pages: 1, Period: 10 * time.Second, From: 0, To: 1440}},
	{"1/1M 2200-0600", policy.Rate{Pages: 1, Period: time.Minute, From: 1320, To: 360}},
	{" 1 / 10s \t 0000-2400 ", policy.Rate{Pages: 1, Period: 10 * time.Second, From: 0, To: 1440}},
	{"01/010s", policy.Rate{Pages: 1, Period: 10 * time.Second, From: 0, To: 1440}},

	// No whole pause.
	{"3/1s", policy.Rate{Pages: 3, Period: time.Second, From: 0, To: 1440}},
	{"7/10s 0000-0001", policy.Rate{Pages: 7, Period: 10 * time.Second, From: 0, To: 1}},

	// Absurd, in range all the same.
	{"1/99999999999999999999999999d", policy.Rate{Pages: 1, Period: math.MaxInt64, From: 0, To: 1440}},
	{"1/200000d", policy.Rate{Pages: 1, Period: math.MaxInt64, From: 0, To: 1440}},
	{"99999999999999999999999999/1s", policy.Rate{Pages: math.MaxInt64, Period: time.Second, From: 0, To: 1440}},
	{"99999999999999999999999999/99999999999999999999999999d", policy.Rate{Pages: math.MaxInt64, Period: math.MaxInt64, From: 0, To: 1440}},

	// Malformed (lint RT411).
	{"", policy.Rate{}},
	{"10", policy.Rate{}},
	{"/", policy.Rate{}},
	{"1/", policy.Rate{}},
	{"/10s", policy.Rate{}},
	{"1/s", policy.Rate{}},
	{"0/10s", policy.Rate{}},
	{"1/0s", policy.Rate{}},
	{"-1/10s", policy.Rate{}},
	{"1/-10s", policy.Rate{}},
	{"+1/10s", policy.Rate{}},
	{"1/10x", policy.Rate{}},
	{"1/10ss", policy.Rate{}},
	{"1.5/10s", policy.Rate{}},
	{"1/1.5s", policy.Rate{}},
	{"1_0/10s", policy.Rate{}},
	{"one/10s", policy.Rate{}},
	{"1/10 s", policy.Rate{}},
	{"1/10s/2", policy.Rate{}},
	{"1/10s 1800", policy.Rate{}},
	{"1/10s 1800-", policy.Rate{}},
	{"1/10s 1800-1900-2000", policy.Rate{}},
	{"1/10s 18:00-19:00", policy.Rate{}},
	{"1/10s 1860-1900", policy.Rate{}},
	{"1/10s 2400-0100", policy.Rate{}},
	{"1/10s 1800-2401", policy.Rate{}},
	{"1/10s 1800-1800", policy.Rate{}},
	{"1/10s 1800-1900 UTC", policy.Rate{}},
	{"1/١٠s", policy.Rate{}}, // digits of another script
}

func TestRequestRateIsReadAsSeznamWritesItOrIgnored(t *testing.T) {
	for _, c := range rates {
		var want []policy.Rate
		if c.want != (policy.Rate{}) {
			want = append(want, c.want)
		}
		p := policy.Parse([]byte("User-agent: *\nRequest-rate:" + c.value))
		if got := slices.Collect(p.Group("*").RequestRates()); !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, want %+v", c.value, got, want)
		}
	}
}

func TestRequestRateIsIgnoredWhereTheEngineDoes(t *testing.T) {
	for d, want := range map[policy.Dialect]int{
		policy.RFC9309: 1, policy.Google: 0, policy.Yandex: 0, policy.Bing: 0, policy.Original: 0,
	} {
		g := d.Parse([]byte("User-agent: *\nRequest-rate: 1/10s\nDisallow: /x\n")).Group("*")
		if got := slices.Collect(g.RequestRates()); len(got) != want {
			t.Errorf("%v: got %d rates, want %d", d, len(got), want)
		}
	}
}

func TestRequestRatesAreThoseOfTheGroupAndFew(t *testing.T) {
	file := "Request-rate: 1/1s\nUser-agent: a\nRequest-rate: 1/2s\nDisallow: /\nUser-agent: b\nRequest-rate: nonsense\n" +
		strings.Repeat("Request-rate: 1/3s\n", 100) + "Disallow: /\n"
	p := policy.Parse([]byte(file))
	for token, want := range map[string]int{"a": 1, "b": 31, "c": 0} {
		if got := slices.Collect(p.Group(token).RequestRates()); len(got) != want {
			t.Errorf("%s: got %d rates, want %d", token, len(got), want)
		}
	}
}
