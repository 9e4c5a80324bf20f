package cache_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

var dialects = []policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// A file that the dialects read differently: a misspelt field, a blank line in a group, and
// wildcards.
const manyReadings = "User-agent: *\nDissallow: /misspelt\n\nDisallow: /after\nDisallow: /*/wild\nAllow: /index.html\n"

// A stored value is not yet read: each dialect makes of it what it makes of the
// answer itself, whichever put it there.
func TestAStoredAnswerMeansInEachDialectWhatItSays(t *testing.T) {
	tier.Gate(t)
	long := manyReadings + string(bytes.Repeat([]byte("#\n"), fetch.MaxBytes/2))
	for _, answer := range []struct {
		status int
		file   string
		shared bool // each dialect can use what another has put
	}{
		{200, manyReadings, true},
		{200, "", true},
		{200, long, false}, // permission to Yandex, which keeps no file
		{203, manyReadings, false},
		{204, "", false},
		{401, "", false}, // an outage in Original
		{403, "", false},
		{404, "", true},
		{410, "", true},
		{429, "", false},
		{500, "", false},
		{503, "", false},
	} {
		for _, writer := range dialects {
			for _, reader := range dialects {
				t.Run(fmt.Sprintf("%d %.1q %v %v", answer.status, answer.file, writer, reader), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						asked := 0
						source := func(d policy.Dialect) *cache.Source {
							return sourceOf(&fetch.Fetcher{Dialect: d, Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
								asked++
								return &http.Response{StatusCode: answer.status, ProtoMajor: 1, ProtoMinor: 1, Header: header("Cache-Control", "max-age=3600"),
									Request: req, Body: io.NopCloser(bytes.NewReader([]byte(answer.file)))}, nil
							})})
						}
						o, store := origin(t, "https://a.example"), new(memStore)
						read := func(d policy.Dialect) *fetch.Result {
							c := &cache.Cache{Store: store, Logger: quiet, NoRefresh: true}
							r, _, err := c.Get(t.Context(), o, source(d))
							if err != nil {
								t.Fatal(err)
							}
							closeCache(t, c)
							return r
						}
						read(writer)
						time.Sleep(time.Second)
						got := read(reader)
						if answer.shared && asked != 1 {
							t.Errorf("asked %d times, want once", asked)
						}
						want, err := source(reader).Load(t.Context(), o, nil)
						if err != nil {
							t.Fatal(err)
						}
						if got.Dialect != reader || (got.Err == nil) != (want.Err == nil) || got.Policy.Reason() != want.Policy.Reason() || got.Policy.String() != want.Policy.String() {
							t.Errorf("read as %v, %v, %v, want %v, %v", got.Dialect, got.Policy.Reason(), got.Err, want.Policy.Reason(), want.Err)
						}
						if again := read(writer); again.Dialect != writer { // and its own is still of use
							t.Errorf("read as %v", again.Dialect)
						}
					})
				})
			}
		}
	}
}

// In memory each dialect has its own.
func TestEachDialectHasItsOwnInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cache.Cache)
		for range 2 {
			for _, d := range dialects {
				s := &site{serve: always(rules("/" + d.String())), dialect: d}
				if r := get(t, c, s, "https://a.example"); r.Dialect != d || r.Policy.Decide("x", "/"+d.String()).Allowed {
					t.Errorf("%v: got %s, want its own rules", d, brief(r))
				}
			}
		}
		if n := c.Stats().Origins; n != len(dialects) {
			t.Errorf("%d entries, want one for each dialect", n)
		}
		closeCache(t, c)
	})
}

// A Load that reads in another dialect than its Source names is read again; without a file to
// read, the answer is an outage that says what to do.
func TestALoadOfAnotherDialectIsReadAgain(t *testing.T) {
	body := []byte(manyReadings)
	for want, file := range map[string][]byte{policy.Parse(body).String(): body, policy.Unreachable().String(): nil} {
		load := func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error) {
			return &fetch.Result{StatusCode: 200, Dialect: policy.Google, Body: file, Policy: policy.Google.Parse(body)}, nil
		}
		r := ask(t, new(cache.Cache), &cache.Source{Load: load}, "https://a.example")
		if r.Dialect != policy.RFC9309 || r.Policy.String() != want || (r.Err != nil) != (file == nil) {
			t.Errorf("got %v in %v, %v, want %v", r.Policy, r.Dialect, r.Err, want)
		}
	}
}
