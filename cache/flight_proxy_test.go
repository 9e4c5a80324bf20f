package cache_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// A proxy that wants credentials is no outage of the origin: a copy goes on to hold, and the
// first answer after it counts at once, here and in other processes.
func TestA407OfAProxyIsKeptNowhere(t *testing.T) {
	keptNowhere(t, func() *fetch.Result {
		return &fetch.Result{Policy: policy.Unreachable(), StatusCode: 407, Time: time.Now(), Err: errors.New("of a proxy")}
	})
}

// Nor is a Fetcher that cannot read an origin at all, or a process that is out of descriptors.
func TestOurOwnFailuresAreKeptNowhere(t *testing.T) {
	for _, f := range []*fetch.Fetcher{
		{UserAgent: "a\nb"},
		{Retries: -1, Transport: roundtrip.Func(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		})},
	} {
		keptNowhere(t, func() *fetch.Result {
			r, err := f.Fetch(context.Background(), origin(t, "https://a.example"), nil)
			if err != nil || r.Err == nil {
				t.Fatal(r, err)
			}
			return r
		})
	}
	ftp := new(fetch.Fetcher)
	if r, err := ftp.Fetch(t.Context(), origin(t, "ftp://a.example"), nil); err != nil || fetch.CauseOf(r.Err) != "proxy_configuration_error" {
		t.Errorf("ftp by a Fetcher that does not read it: %v, %v", r, err)
	}
}

func keptNowhere(t *testing.T, refused func() *fetch.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &memStore{}
		c := &cache.Cache{Store: store, Logger: quiet}
		defer closeCache(t, c)
		s := &site{serve: always(refused())}
		if d := decide(t, c, s, "/public"); d.Reason != policy.ReasonUnreachable {
			t.Errorf("without a copy: %+v", d)
		}
		s.serve = always(rules("/private"))
		if d := decide(t, c, s, "/private"); d.Reason != policy.ReasonRule {
			t.Errorf("asked again at once: %+v", d)
		}
		synctest.Wait()
		puts := store.count("Put")
		time.Sleep(25 * time.Hour)
		s.serve = always(refused())
		if d := decide(t, c, s, "/private"); d.Reason != policy.ReasonRule {
			t.Errorf("with a copy: %+v", d)
		}
		s.serve = always(rules("/public"))
		if d := decide(t, c, s, "/public"); d.Reason != policy.ReasonRule {
			t.Errorf("after it: %+v", d)
		}
		synctest.Wait()
		if n := store.count("Put") - puts; n != 1 {
			t.Errorf("the Store was given %d values, want the new rules only", n)
		}
	})
}

// Who finds the copy of another User-Agent, and a proxy that refuses, asks once: there is no pause before the next.
func TestARefusalOfAProxyIsNotAskedForAgainAtOnce(t *testing.T) {
	for _, outage := range []cache.Outage{cache.LastGood, cache.Strict} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, o, asked := &cache.Cache{Store: new(memStore), NoRefresh: true, Outage: outage}, origin(t, "https://a.example"), 0
			defer closeCache(t, c)
			c.Get(ctx, o, told("b", rules("/all", "Cache-Control", "max-age=60")))
			time.Sleep(time.Hour)
			src := &cache.Source{UserAgent: "a", Load: func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
				if asked++; asked > 9 {
					cancel() // a loop would have no end
				}
				return &fetch.Result{Policy: policy.Unreachable(), StatusCode: 407, Time: time.Now(), Err: errors.New("of a proxy")}, nil
			}}
			if r, err := c.Get(ctx, o, src); err != nil || (r.Err == nil) != (outage == cache.LastGood) || asked != 1 {
				t.Errorf("%v: %s, %v, asked %d times", outage, brief(r), err, asked)
			}
		})
	}
}
