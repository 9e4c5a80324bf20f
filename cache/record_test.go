package cache_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
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
	long := manyReadings + string(bytes.Repeat([]byte("#\n"), 500<<10/2))
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
							src := sourceOf(&fetch.Fetcher{Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
								asked++
								return &http.Response{StatusCode: answer.status, ProtoMajor: 1, ProtoMinor: 1, Header: header("Cache-Control", "max-age=3600"),
									Request: req, Body: io.NopCloser(bytes.NewReader([]byte(answer.file)))}, nil
							})})
							src.Dialect = d
							return src
						}
						o, store := origin(t, "https://a.example"), new(memStore)
						read := func(d policy.Dialect) *fetch.Result {
							c := &cache.Cache{Store: store, Logger: quiet}
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
						want = want.In(reader)
						if got.Dialect != reader || (got.Err == nil) != (want.Err == nil) || got.Policy.Reason() != want.Policy.Reason() || got.Policy.String() != want.Policy.String() {
							t.Errorf("read as %v, %v, %v, want %v, %v", got.Dialect, got.Policy.Reason(), got.Err, want.Policy.Reason(), want.Err)
						}
						if again := read(writer); again.Dialect != writer { // and its own is still of use
							t.Errorf("read again as %v, want %v", again.Dialect, writer)
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

// What a Load has read in another dialect than its Source names is read again; without a file to
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

// sealed makes a stored value of its parts, with the checksum that makes it look genuine.
func sealed(meta, file []byte) []byte {
	data := append([]byte("RGC5"), make([]byte, 8)...)
	binary.BigEndian.PutUint32(data[8:], uint32(len(meta)))
	data = append(append(data, meta...), file...)
	binary.BigEndian.PutUint32(data[4:], crc32.Checksum(data[8:], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

// A process that can write the Store can write rules, but nothing worse: none of its bytes make a
// lookup panic or fail, keep an origin from being asked for long, or fill the memory.
func FuzzStoredValue(f *testing.F) {
	for _, meta := range []string{
		`{"key":"RGC5 https://a.example ","answer":{"file":true,"status":200,"header":{"Etag":["\"v1\""],"Cache-Control":["max-age=60"]},"received":"2026-01-02T03:04:05Z"}}`,
		`{"key":"RGC5 https://a.example ","answer":{"file":false,"status":404,"received":"2126-01-02T03:04:05Z","redirects":["x"]},"failure":{"status":503,"error":"e","received":"2026-01-02T03:04:05Z","retry_ns":9223372036854775807,"since":"0001-01-01T00:00:00Z","count":9223372036854775807}}`,
		`{"key":"RGC5 https://a.example ","failure":{"error":"e","received":"2026-01-02T03:04:05Z","retry_ns":30000000000,"since":"2026-01-02T03:04:05Z","count":1}}`,
		`{"key":"RGC5 https://a.example ","mark":{"received":"2026-01-02T03:04:05Z","rules_until":"9126-01-02T03:04:05Z"}}`,
		`{"key":"RGC5 https://b.example "}`,
	} {
		f.Add([]byte(meta), []byte("User-agent: *\nDisallow: /private\n"), true)
		f.Add(sealed([]byte(meta), []byte("User-agent: *\n")), []byte{}, false)
	}
	f.Fuzz(func(t *testing.T, meta, file []byte, seal bool) {
		value := append(meta[:len(meta):len(meta)], file...)
		if seal {
			value = sealed(meta, file)
		}
		store := &memStore{values: map[string][]byte{"RGC5 https://a.example ": value}, calls: map[string]int{}}
		s := &site{serve: func(_ int, prev *fetch.Result) *fetch.Result {
			if prev != nil && (prev.Policy == nil || prev.Err != nil) {
				t.Errorf("%s was given to be validated, want an answer with rules", brief(prev))
			}
			return rules("/private")
		}}
		c := &cache.Cache{Store: store, Logger: quiet, Outage: cache.GoogleLadder}
		r := get(t, c, s, "https://a.example")
		if r == nil || r.Policy == nil {
			t.Fatalf("got %s, want a result with a policy", brief(r))
		}
		if reason := r.Policy.Decide("x", "/").Reason; (reason == policy.ReasonUnreachable) != (r.Err != nil) {
			t.Errorf("reason %v with error %v, want unreachable if there is one", reason, r.Err)
		}
		if n := c.Stats(); n.Origins != 1 || n.Bytes > 1310720 {
			t.Errorf("%+v, want one origin of 1310720 bytes at most", n)
		}
		closeCache(t, c)
	})
}
