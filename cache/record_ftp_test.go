package cache_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// said is a connection whose other end has said all that it will.
type said struct{ *strings.Reader }

func (said) Write(p []byte) (int, error)      { return len(p), nil }
func (said) Close() error                     { return nil }
func (said) LocalAddr() net.Addr              { return nil }
func (said) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 21} }
func (said) SetDeadline(time.Time) error      { return nil }
func (said) SetReadDeadline(time.Time) error  { return nil }
func (said) SetWriteDeadline(time.Time) error { return nil }

// What came over FTP has no fields, and no status but 200 and 404. It is stored like others,
// for all dialects.
func TestAnswersOfFTPAreStored(t *testing.T) {
	const until = "220 a\r\n230 b\r\n200 c\r\n229 d (|||2000|)\r\n"
	for _, row := range []struct{ name, replies, want string }{
		{"a file", until + "150 e\r\n226 f\r\n", "file"},
		{"no file", until + "550 e\r\n", "unavailable"},
		{"a file that broke off", until + "150 e\r\n426 f\r\n", "unreachable"},
		{"nothing", "421 a\r\n", "unreachable"},
	} {
		for _, reader := range dialects {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				source := func(d policy.Dialect) *cache.Source {
					return sourceOf(&fetch.Fetcher{FTP: true, Dialect: d, Retries: -1, Transport: &http.Transport{
						DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
							if strings.HasSuffix(addr, ":2000") {
								return said{strings.NewReader(manyReadings)}, nil
							}
							asked++
							return said{strings.NewReader(row.replies)}, nil
						},
					}})
				}
				o, store := origin(t, "ftp://a.example:2121"), new(memStore)
				for _, d := range []policy.Dialect{policy.RFC9309, reader} {
					c := &cache.Cache{Store: store, Logger: quiet, NoRefresh: true}
					r, err := c.Get(t.Context(), o, source(d))
					if err != nil {
						t.Fatal(err)
					}
					closeCache(t, c)
					got := "file"
					switch r.Policy.Reason() {
					case policy.ReasonUnavailable:
						got = "unavailable"
					case policy.ReasonUnreachable:
						got = "unreachable"
					}
					if got != row.want || got == "file" && r.Policy.String() != d.Parse([]byte(manyReadings)).String() {
						t.Errorf("%s, read in %v: %s, %v", row.name, d, got, r)
					}
				}
				if asked != 1 {
					t.Errorf("%s, read in %v: asked %d times", row.name, reader, asked)
				}
			})
		}
	}
}
