package cache

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A reader that looks at an entry while a flight lands must not put back the old result,
// whether the flight brought an answer or none.
func TestALateReaderDoesNotUndoALanding(t *testing.T) {
	o := testOrigin(t, "https", 1)
	answer, failure := &fetch.Result{StatusCode: 404, Policy: policy.Unavailable()}, &fetch.Result{StatusCode: 503, Policy: policy.Unreachable()}
	for name, landed := range map[string]func(*state) *state{
		"answer": func(*state) *state { return &state{answered: answered{answer: answer}} },
		"failure": func(s *state) *state {
			return &state{answered: answered{answer: s.answer}, outage: outage{failure: failure}}
		},
	} {
		var m memory
		m.init(100, 1<<20)
		first := &fetch.Result{StatusCode: 200, Policy: policy.Unavailable()}
		m.put(place{Origin: o}, &state{answered: answered{answer: first}}, first, time.Hour, 0, "")
		late := m.lookup(o, new(Source))
		before, held := late.state.Load(), late.result.Load()
		if held == nil || held != before.answer || held.StatusCode != 200 {
			t.Fatalf("%s: the first answer is not held", name)
		}
		after := landed(before)
		m.put(place{Origin: o}, after, latest(after), time.Hour, 0, "")
		want := latest(after).StatusCode
		m.extend(late, before, held, 2*time.Hour)
		got := m.lookup(o, new(Source))
		if r := got.result.Load(); r.StatusCode != want || got.until.Load() != int64(time.Hour) {
			t.Errorf("%s: status %d until %v, want the result of the flight", name, r.StatusCode, time.Duration(got.until.Load()))
		}
		m.extend(got, got.state.Load(), got.result.Load(), 2*time.Hour)
		if until := m.lookup(o, new(Source)).until.Load(); until != int64(2*time.Hour) {
			t.Errorf("%s: held until %v, want 2h", name, time.Duration(until))
		}
	}
}

func latest(s *state) *fetch.Result { return cmp.Or(s.failure, s.answer) }

// Whatever lands, what an entry holds is its own copy, so that nothing of the flight and of
// earlier answers stays, and one that does not change the answer leaves the entry where it is.
func TestAnEntryHoldsItsOwnResult(t *testing.T) {
	var m memory
	m.init(100, 1<<20)
	o := testOrigin(t, "https", 1)
	put := func(s *state, r *fetch.Result) *entry {
		m.put(place{Origin: o}, s, r, time.Hour, 0, "")
		return m.lookup(o, new(Source))
	}
	down := func() *fetch.Result { return &fetch.Result{Policy: policy.Unreachable()} }
	s := &state{outage: outage{failure: down()}}
	outset := s
	e := put(s, s.failure)
	if e.result.Load() != &e.own || e.state.Load().failure != &e.own {
		t.Error("an unreachable origin's entry does not hold its own result")
	}
	s = &state{answered: answered{answer: &fetch.Result{StatusCode: 404, Policy: policy.Unavailable()}}}
	up := put(s, s.answer)
	if up == e || up.result.Load() != &up.own || up.state.Load().answer != &up.own {
		t.Error("an answer is not held by an entry of its own")
	}
	bridged := *up.state.Load()
	bridged.failure = down()
	if again := put(&bridged, bridged.answer); again != up || again.result.Load() != &again.own || again.state.Load() != &bridged {
		t.Error("an outage moved the entry of the answer that bridges it")
	}
	// The Store may know an answer to what was met as an outage here.
	m.put(place{Origin: o}, outset, outset.failure, time.Hour, 0, "")
	merged := &state{answered: answered{answer: &fetch.Result{StatusCode: 200, Policy: policy.Unavailable()}}, outage: outage{failure: m.lookup(o, new(Source)).state.Load().failure}}
	before := m.lookup(o, new(Source))
	up = put(merged, merged.failure)
	if got := up.state.Load(); up == before || got.answer != &up.own || got.failure == &before.own || up.result.Load() != got.failure {
		t.Error("the entry of a merged state keeps the one before it, or holds what that held")
	}
	if n := m.recent.Len(); n != 1 || m.live != 1 || m.bytes != int64(up.cost) {
		t.Errorf("%d in the order, %d in the index, %d bytes of %d", n, m.live, m.bytes, up.cost)
	}
}

// A caller may look into memory before a flight lands, and ask for one after: what has
// landed is for him as well, and nothing is fetched again.
func TestWhoComesTooLateForAFlightGetsItsResult(t *testing.T) {
	var c Cache
	o := testOrigin(t, "https", 1)
	fetches := 0
	load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
		fetches++
		return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
	}
	if _, err := c.Get(t.Context(), o, &Source{Load: load}); err != nil {
		t.Fatal(err)
	}
	r, err := c.wait(t.Context(), place{Origin: o}, nil, time.Now(), &Source{Load: load}) // has seen nothing
	if err != nil || r.StatusCode != 404 || fetches != 1 {
		t.Errorf("status %d, %v after %d fetches, want the one", r.StatusCode, err, fetches)
	}
}

// Until need not look at the state while a result holds, and says what the state says: of an
// answer, of its refresh ahead, of a failure after it and of one before any answer.
func TestUntilIsWhatTheStateSays(t *testing.T) {
	age := http.Header{"Cache-Control": {"max-age=3600"}}
	hour := &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Header: age}
	for name, answers := range map[string][]*fetch.Result{
		"answered":      {hour},
		"failed":        {{StatusCode: 503, Policy: policy.Unreachable(), Err: errors.New("busy")}},
		"failed since":  {hour, {StatusCode: 503, Policy: policy.Unreachable(), Err: errors.New("busy")}},
		"of the moment": {{StatusCode: 429, Policy: policy.Unavailable()}, hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			o, c, left := testOrigin(t, "https", 1), new(Cache), answers
			src := &Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				r := *left[0]
				left, r.Time = left[min(1, len(left)-1):], time.Now()
				return &r, nil
			}}
			for range 100 {
				if _, err := c.Get(t.Context(), o, src); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for what is fetched behind the caller
				want := c.terms.until(c.memory.lookup(o, new(Source)).state.Load(), time.Now())
				if got := c.Until(o, src); !got.Equal(want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
				time.Sleep(time.Minute)
			}
		})
	}
}

// A warm look-up brings the beginning of an entry from memory, and nothing else.
func TestAReaderNeedsTheBeginningOfAnEntry(t *testing.T) {
	if word != 8 {
		t.Skip("of 64-bit machines")
	}
	var e entry
	if end, size := unsafe.Offsetof(e.own)+unsafe.Sizeof(e.own.Policy), unsafe.Sizeof(e); end > 96 || size != 288 {
		t.Errorf("what a reader needs ends at byte %d of %d, want 96 of 288", end, size)
	}
}

func TestAnEntryKeepsTheTextOfItsOrigin(t *testing.T) {
	for _, row := range []struct {
		url, host string
		inside    bool
	}{
		{"http://www.example.com/", "", true},
		{"https://an-origin-of-32-bytes.tests:8443/", "", true},
		{"https://an-origin-of-33-bytes.tests:18443/", "", false},
		{"ftp://[2001:db8::1]:2121/", "", true},
		{"http://[fe80::1%25eth0]/", "", true},
		{"http://10.0.0.1/", "www.example.com", false}, // reached under another name
	} {
		req, err := http.NewRequest(http.MethodGet, row.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if row.host != "" {
			req.Host = row.host
		}
		o, err := fetch.OriginOfRequest(req)
		if err != nil {
			t.Fatal(err)
		}
		e := new(entry)
		if e.origin = e.keep(o); e.origin != o {
			t.Errorf("%v is kept as %v", o, e.origin)
		}
		text := unsafe.Pointer(unsafe.StringData(e.origin.URLHost()))
		if inside := text == unsafe.Pointer(&e.name); inside != row.inside {
			t.Errorf("%v: text in the entry: %t, want %t", o, inside, row.inside)
		}
	}
}

// A refresh that got no turn is put off, even if another goroutine holds the lock of the memory.
func TestARefreshWithoutATurnIsPutOffInAnyCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Cache).WithoutSpread()
		loads := 0
		src := &Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			if loads++; loads == 1 {
				return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
			}
			c.memory.mu.Lock()
			go func() { // a put, or an extend, that takes a moment
				for range 1000 {
					runtime.Gosched()
				}
				c.memory.mu.Unlock()
			}()
			return nil, fetch.ErrBusy
		}}
		get := func() {
			t.Helper()
			if _, err := c.Get(t.Context(), testOrigin(t, "https", 1), src); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		get()
		time.Sleep(20 * time.Hour) // 80 % of a day have passed
		for range 10 {
			get()
			time.Sleep(busyPause / 10)
		}
		if loads != 2 {
			t.Errorf("%d loads within %v of the one that had no turn, want none", loads-2, busyPause)
		}
	})
}

// A renewal does not join a flight that has landed and is still telling those who waited: it would end with none to
// say so, and be the last of its origin.
func TestARenewalJoinsNoFlightThatHasLanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := new(Cache).WithoutSpread(), place{Origin: testOrigin(t, "https", 1)}
		loads := 0
		src := &Source{Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			loads++
			return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
		}}
		if _, err := c.Get(t.Context(), o.Origin, src); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Hour)
		telling := make(chan struct{})
		c.flights.group.DoChan(o.flight(), func() (any, error) {
			c.flights.begin(o)
			c.flights.land(o)
			<-telling
			return nil, nil
		})
		synctest.Wait()
		if _, err := c.Get(t.Context(), o.Origin, src); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(telling)
		if loads != 2 || len(c.flights.renewals) != 0 {
			t.Errorf("%d loads, %d renewals under way; want 2, 0", loads, len(c.flights.renewals))
		}
	})
}
