package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever needs a file, a site is asked for it once a minute at most, and then only for what has changed. In an
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
