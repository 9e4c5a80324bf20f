package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
)

// However many need a file, a site is asked for it once a minute at most, and then only for what has changed. In an
// outage they see that, and no copy. A site that fails is asked less often, and not before it says.
func TestASiteIsAskedForItsFileOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, validated, down := 0, 0, ""
		v := newTurnService(t, 1, func(r *http.Request) (*http.Response, error) {
			rec := httptest.NewRecorder()
			rec.Header().Set("ETag", `"v1"`)
			rec.Header().Set("Cache-Control", "max-age=86400")
			asked++
			switch {
			case down != "":
				rec.Header().Set("Retry-After", down)
				rec.WriteHeader(http.StatusServiceUnavailable)
			case r.Header.Get("If-None-Match") == `"v1"`:
				validated++
				rec.WriteHeader(http.StatusNotModified)
			default:
				rec.Header().Set("Content-Type", "text/x-odd")
				io.WriteString(rec, "User-agent: *\nDisallow: /private\n")
			}
			return rec.Result(), nil
		})
		// ask asks in all ways, and wants the site to have been asked so often by then.
		ask := func(when string, times int, want ...string) {
			t.Helper()
			for i, q := range []string{"/v1/robots?origin=http://a.example", "/v1/decide?as=all&url=http://a.example/private", "/?site=http://a.example/private"} {
				_, text, _ := v.ask(t.Context(), "GET", q, "")
				if !strings.Contains(text, want[i]) || strings.Contains(text, `"retry_seconds":30`) {
					t.Errorf("%s: %s: %s, want %q, and no other time to ask again than that of this test", when, q, text, want[i])
				}
			}
			if asked != times {
				t.Errorf("%s: asked %d times, want %d", when, asked, times)
			}
		}
		file := []string{`"Content-Type":["text/x-odd"]`, `"dialect":"yandex","dialect_by":"as","fallback":null,"allowed":false,"covers":"url","reason":"rule"`, "text/x-odd"}
		failed := []string{`"status":503`, `"dialect":"yandex","dialect_by":"as","fallback":null,"allowed":true`, "503"}
		ask("at first", 1, file...)
		time.Sleep(59 * time.Second)
		ask("within a minute", 1, file...)
		time.Sleep(2 * time.Second)
		ask("after a minute", 2, file...)
		time.Sleep(61 * time.Second)
		ask("after another", 3, file...)
		if validated != 2 {
			t.Errorf("%d answers were validated, want 2", validated)
		}
		down = "0"
		time.Sleep(61 * time.Second)
		ask("in an outage", 4, failed...)
		time.Sleep(59 * time.Second)
		ask("a minute after a failure", 4, failed...)
		down = "3600"
		time.Sleep(time.Minute)
		ask("in an outage of an hour", 5, failed...)
		time.Sleep(59 * time.Minute)
		ask("before its end", 5, failed...)
		down = ""
		time.Sleep(2 * time.Minute)
		ask("after it", 6, file...)
	})
}

// A rule may be as long as a file, and is in each answer. What waits for a client is counted, and a stream does not gather
// the answers to all that it has read.
func TestLongRulesTakeMemoryThatIsBounded(t *testing.T) {
	const length = 400 << 10
	site := func(*http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		fmt.Fprintf(rec, "User-agent: *\nDisallow: /%s\n", strings.Repeat("*", length))
		return rec.Result(), nil
	}
	synctest.Test(t, func(t *testing.T) {
		v := newTurnService(t, 10, site)
		w := &pieces{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/decide", strings.NewReader(strings.Repeat("http://a.example/\n", 100)))
		v.ServeHTTP(w, r)
		if n := strings.Count(w.Body.String(), `"allowed":false`); n != 100 || w.longest > 2*length {
			t.Errorf("a stream of %d answers is sent in pieces of up to %d bytes", n, w.longest)
		}
		v.held = web.NewMemory(length)
		for _, q := range [][3]string{
			{"GET", "/v1/decide?url=http://a.example/"}, {"GET", "/v1/decide?as=all&url=http://a.example/"},
			{"POST", "/v1/turns", `{"url":"http://a.example/"}`}, {"GET", "/authz"},
		} {
			r := httptest.NewRequestWithContext(t.Context(), q[0], "http://localhost"+q[1], strings.NewReader(q[2]))
			r.Header.Set("Content-Type", mediaJSON)
			r.Header.Set("X-Original-URL", "http://a.example/")
			r.RequestURI, r.RemoteAddr, v.Trusted = q[1], "127.0.0.1:1", web.Gateways{netip.MustParsePrefix("127.0.0.0/8")}
			w := httptest.NewRecorder()
			v.ServeHTTP(w, r)
			if w.Code != 429 && w.Code != 403 || w.Body.Len() > 4<<10 || !v.held.TryTake(length) || len(v.turns.Bounded) > 0 {
				t.Errorf("%s: got %d, %d bytes, want 429 or 403, few, and nothing held", q, w.Code, w.Body.Len())
			}
			v.held.Release(length)
		}
	})
}

// pieces keeps the length of the longest piece of an answer.
type pieces struct {
	*httptest.ResponseRecorder
	longest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.longest = max(p.longest, len(b))
	return p.ResponseRecorder.Write(b)
}

// However many questions need the file of a site, each of another one, few are read or waited for at a time.
func TestFewFilesAreReadAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		v := newTurnService(t, 1, func(*http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return httptest.NewRecorder().Result(), nil
		})
		var all sync.WaitGroup
		for i := range 5 * maxWholes {
			path := []string{"/?site=", "/v1/robots?origin=", "/v1/decide?as=all&url="}[i%3]
			all.Go(func() {
				if status, text, _ := v.ask(t.Context(), "GET", fmt.Sprintf("%shttp://s%d.example", path, i), ""); status != 200 {
					t.Errorf("%s: %d %s, want 200", path, status, text)
				}
			})
		}
		all.Wait()
		if n := most.Load(); n > maxWholes {
			t.Errorf("%d files are read at a time, want %d", n, maxWholes)
		}
	})
}
