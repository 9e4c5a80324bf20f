package cache_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

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
				t.Errorf("%s was given to be validated", brief(prev))
			}
			return rules("/private")
		}}
		c := &cache.Cache{Store: store, Logger: quiet, Outage: cache.GoogleLadder}
		r := get(t, c, s, "https://a.example")
		if r == nil || r.Policy == nil {
			t.Fatalf("got %s", brief(r))
		}
		if reason := r.Policy.Decide("x", "/").Reason; (reason == policy.ReasonUnreachable) != (r.Err != nil) {
			t.Errorf("reason %v with error %v", reason, r.Err)
		}
		if n := c.Stats(); n.Origins != 1 || n.Bytes > 1310720 {
			t.Errorf("%+v", n)
		}
		closeCache(t, c)
	})
}
