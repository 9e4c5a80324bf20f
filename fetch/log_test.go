package fetch_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A Result in a log is one short line, however large the file or long the error.
func TestAResultInALogIsShort(t *testing.T) {
	file := []byte("User-agent: *\n" + strings.Repeat("Disallow: /secret\n", 10_000))
	r := fetch.Result{StatusCode: 200, Body: file, Policy: policy.Parse(file)}
	failed := fetch.Result{Err: errors.New("it broke" + strings.Repeat("\nagain", 10_000))}
	for want, v := range map[string]any{"rules in 180014 bytes": r, "status 200": &r, "it broke": failed, "(status 0)": &failed} {
		var buf bytes.Buffer
		for _, h := range []slog.Handler{slog.NewJSONHandler(&buf, nil), slog.NewTextHandler(&buf, nil)} {
			buf.Reset()
			slog.New(h).Info("fetched", "result", v)
			if text := buf.String(); len(text) > 1_000 || strings.Contains(text, "secret") || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
				t.Errorf("%T: %d bytes: %.300s", h, len(text), text)
			}
		}
	}
}
