package cache

import (
	"math"
	"net/http"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// jumped returns the time that time.Now gives on the same monotonic clock, once the wall
// clock has been set or the machine has slept. No API makes such a time; the fields of
// time.Time have the wall seconds above 30 bits of nanoseconds.
func jumped(t time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(by/time.Second) << 30
	return t
}

const year = 365 * 24 * time.Hour

// Expiry comes by whichever clock is first (a sleeping machine's monotonic clock stands
// still, a wall clock jumps), and permission by whichever is last.
func TestEitherClockEndsAndBothClocksGrant(t *testing.T) {
	t0 := time.Now()
	for _, tt := range []struct {
		name        string
		mono, wall  time.Duration
		least, most time.Duration
	}{
		{"no time", 0, 0, 0, 0},
		{"an hour", time.Hour, time.Hour, time.Hour, time.Hour},
		{"three days asleep", time.Hour, 73 * time.Hour, time.Hour, 73 * time.Hour},
		{"set ahead by ten years", time.Hour, 10 * year, time.Hour, 10 * year},
		{"set back by ten years", time.Hour, -10 * year, 0, time.Hour},
		{"set back by a second", time.Hour, time.Hour - time.Second, time.Hour - time.Second, time.Hour},
	} {
		now := jumped(t0.Add(tt.mono), tt.wall-tt.mono)
		if least, most := elapsed(now, t0); least != tt.least || most != tt.most {
			t.Errorf("%s: %v to %v, want %v to %v", tt.name, least, most, tt.least, tt.most)
		}
	}
	for _, tt := range []struct{ since, least, most time.Duration }{
		{time.Hour, time.Hour, time.Hour}, {0, 0, 0},
		{-time.Second, 0, 0},       // of another machine, whose clock is a little ahead
		{-time.Hour, 0, 1<<63 - 1}, // of one that cannot be believed
		{-10 * year, 0, 1<<63 - 1},
	} {
		stored := t0.Round(0).Add(-tt.since)
		if least, most := elapsed(t0, stored); least != tt.least || most != tt.most {
			t.Errorf("stored %v ago: %v to %v, want %v to %v", tt.since, least, most, tt.least, tt.most)
		}
	}
}

func TestNoClockMakesAnAnswerLast(t *testing.T) {
	c := (&Cache{Outage: GoogleLadder}).WithoutSpread()
	c.once.Do(c.init)
	t0 := time.Now()
	good := &fetch.Result{StatusCode: 200, Policy: policy.Parse([]byte("User-agent: *\nDisallow: /\n")), Header: http.Header{}}
	bad := &fetch.Result{StatusCode: 503, Policy: policy.Unreachable(), Err: ErrMiss}
	fresh := c.arrived(nil, good, stored{}, t0)
	outage := c.arrived(nil, bad, stored{}, t0)

	type outcome struct {
		r   *fetch.Result
		due refresh
	}
	for _, tt := range []struct {
		name       string
		s          *state
		mono, wall time.Duration
		want       outcome
	}{
		{"in its lifetime", fresh, time.Hour, time.Hour, outcome{fresh.answer, notDue}},
		{"expired", fresh, 25 * time.Hour, 25 * time.Hour, outcome{nil, awaited}},
		{"asleep over its lifetime", fresh, time.Second, 25 * time.Hour, outcome{nil, awaited}},
		{"wall clock set ahead", fresh, time.Second, 10 * year, outcome{nil, awaited}},
		{"wall clock set back", fresh, time.Second, -10 * year, outcome{fresh.answer, notDue}},
		{"wall clock set back, and expired", fresh, 25 * time.Hour, -10 * year, outcome{nil, awaited}},
		{"an outage, for a moment", outage, time.Second, time.Second, outcome{outage.failure, notDue}},
		{"an outage, wall clock set back: tried again in time", outage, time.Minute, -10 * year, outcome{nil, awaited}},
		{"an outage, wall clock set ahead: tried again", outage, time.Second, 10 * year, outcome{nil, awaited}},
	} {
		r, until, due := c.terms.at(tt.s, jumped(t0.Add(tt.mono), tt.wall-tt.mono))
		if (outcome{r, due}) != tt.want || until < 0 || until > 24*time.Hour {
			t.Errorf("%s: the copy %v, the failure %v, due %d, for %v; want %v, %v, %d, a day at most",
				tt.name, r == fresh.answer, r == outage.failure, due, until, tt.want.r == fresh.answer, tt.want.r == outage.failure, tt.want.due)
		}
	}
	if r := c.terms.during(outage, jumped(t0.Add(time.Second), 10*year)); r != outage.failure {
		t.Errorf("a jump of the clock is no outage of 30 days, yet it allows everything: status %d, %v", r.StatusCode, r.Err)
	}
	if r := c.terms.during(outage, t0.Add(31*24*time.Hour)); r != outage.assumed {
		t.Errorf("after 31 days by both clocks: status %d, %v, want what is assumed then", r.StatusCode, r.Err)
	}
}

// What a status of the moment permits without a copy, it does not because a clock has jumped.
func TestNoClockAloneMakesAStatusOfTheMomentPermit(t *testing.T) {
	t0 := time.Now()
	good := &fetch.Result{StatusCode: 200, Policy: policy.Parse([]byte("User-agent: *\nDisallow: /\n")), Header: http.Header{}}
	moment := &fetch.Result{StatusCode: 429, Policy: policy.Unavailable(), Header: http.Header{}}
	for _, tt := range []struct {
		name       string
		mono, wall time.Duration
		allowed    bool
	}{
		{"the copy holds", time.Hour, 25 * time.Hour, false},
		{"wall clock set ahead", time.Hour, 10 * year, false},
		{"wall clock set back", 25 * time.Hour, -10 * year, false},
		{"32 days by both clocks", 32 * 24 * time.Hour, 32 * 24 * time.Hour, true},
	} {
		for _, outage := range []Outage{LastGood, GoogleLadder} {
			c := (&Cache{Outage: outage}).WithoutSpread()
			c.once.Do(c.init)
			now := jumped(t0.Add(tt.mono), tt.wall-tt.mono)
			s := c.arrived(c.arrived(nil, good, stored{}, t0), moment, stored{}, now)
			r, _, _ := c.terms.at(s, now)
			if allowed := r.Policy.Decide("x", "/").Allowed; allowed != (tt.allowed && outage == LastGood) {
				t.Errorf("%s, %d: status %d, allowed %t, want %t", tt.name, outage, r.StatusCode, allowed, tt.allowed && outage == LastGood)
			}
		}
	}
}

// meaning is what the fields of c come to, by name.
func meaning(c *Cache) map[string]int64 {
	c.once.Do(c.init)
	return map[string]int64{
		"MaxBytes": c.memory.limit,
		"MinTTL":   int64(c.terms.minTTL),
		"MaxTTL":   int64(c.terms.maxTTL),
	}
}

// One law for every field: if zero, its default; if negative, there is none.
func TestFieldsThatAreZeroOrNegative(t *testing.T) {
	zero := map[string]int64{
		"MaxBytes": 64 << 20,
		"MinTTL":   int64(time.Minute), "MaxTTL": int64(24 * time.Hour),
	}
	negative := map[string]int64{
		"MaxBytes": math.MaxInt64,
		"MinTTL":   0, "MaxTTL": int64(century),
	}
	if got := meaning(new(Cache)); !reflect.DeepEqual(got, zero) {
		t.Errorf("all zero: %v, want %v", got, zero)
	}
	numbers := 0
	for f := range reflect.TypeFor[Cache]().Fields() {
		if kind := f.Type.Kind(); !f.IsExported() || kind != reflect.Int && kind != reflect.Int64 {
			continue
		}
		numbers++
		for _, n := range []int64{-1, math.MinInt64 >> (64 - f.Type.Bits())} { // the least that the field holds
			c := new(Cache)
			reflect.ValueOf(c).Elem().FieldByIndex(f.Index).SetInt(n)
			if got, ok := meaning(c)[f.Name]; !ok || got != negative[f.Name] {
				t.Errorf("%s %d: %d, want %d", f.Name, n, got, negative[f.Name])
			}
		}
	}
	if numbers != len(negative) {
		t.Errorf("%d fields with a number, want %d", numbers, len(negative))
	}
}
