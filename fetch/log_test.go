package fetch_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// What a test or a log prints of a Result is one short line, whatever the file or the error.
func TestAResultIsOneLine(t *testing.T) {
	long := []byte("User-agent: *\n" + strings.Repeat("Disallow: /secret\n", 10_000))
	for _, c := range []struct {
		r    *fetch.Result
		want string // how it begins
	}{
		{&fetch.Result{}, "status 0"},
		{&fetch.Result{Policy: policy.Parse(long), StatusCode: 200, Body: long}, "status 200 in RFC9309: rules in 180014 bytes"},
		{&fetch.Result{Policy: policy.Unavailable(), Dialect: policy.Yandex, StatusCode: 503}, "status 503 in Yandex: robots.txt is unavailable"},
		{&fetch.Result{Policy: policy.Unreachable(), Err: errors.New("fetch: no")}, "fetch: no (status 0)"},
		{&fetch.Result{Err: errors.New("it broke" + strings.Repeat("\nagain", 10_000))}, "it broke?again"},
	} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("fetched", "result", c.r, "value", *c.r)
		for _, got := range []string{fmt.Sprint(c.r), fmt.Sprintf("%+v", *c.r), c.r.LogValue().String()} {
			if !strings.HasPrefix(got, c.want) || len(got) > 512 || strings.ContainsAny(got, "\n") || log.Len() > 1500 {
				t.Errorf("got %q and %d bytes of log, want a line that begins %q", got, log.Len(), c.want)
			}
		}
	}
}
