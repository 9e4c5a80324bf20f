package client_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// An Answer in a log is one short line with its error as text, and an error that embeds one is
// logged as an error.
func TestAnAnswerInALogIsShort(t *testing.T) {
	long := strings.Repeat("long\n", 10_000)
	p := policy.Parse([]byte("User-agent: *\nDisallow: /" + strings.Repeat("a", 50_000)))
	a := client.Answer{Decision: p.Decide("b", "/"+strings.Repeat("a", 50_000)), Token: long, Unreachable: errors.New("it broke " + long)}
	refused := &client.DisallowedError{Answer: a}
	for want, v := range map[string]any{"it broke": a, "disallowed": &a, "client: not sent for": refused, "disallows the use": &client.UseError{Answer: client.Answer{Use: long, By: &usage.Statement{Text: long}}}} {
		var buf bytes.Buffer
		for _, h := range []slog.Handler{slog.NewJSONHandler(&buf, nil), slog.NewTextHandler(&buf, nil)} {
			buf.Reset()
			slog.New(h).Info("asked", "answer", v)
			if text := buf.String(); len(text) > 3_000 || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
				t.Errorf("%T of %T: %d bytes: %.300s", h, v, len(text), text)
			}
		}
	}
}
