package page_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

var (
	parsed page.Rules
	effect page.Effect
)

func TestNoAllocationWhereTheFieldIsAbsent(t *testing.T) {
	header := http.Header{"Content-Type": {"text/html"}}
	tokens := []string{"examplebot"}
	if n := testing.AllocsPerRun(100, func() {
		parsed = page.ParseHeader(header.Values("X-Robots-Tag"))
		effect = parsed.For(policy.RFC9309, tokens...)
	}); n != 0 {
		t.Errorf("got %v allocations without the field, want 0", n)
	}
	rules := page.ParseHeader([]string{"noindex, otherbot: max-snippet:5"})
	if n := testing.AllocsPerRun(100, func() { effect = rules.For(policy.Google, tokens...) }); n != 0 {
		t.Errorf("got %v allocations of For, want 0", n)
	}
	r := &page.Reader{Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<16))), ContentType: "text/plain"}
	buf := make([]byte, 10)
	if n := testing.AllocsPerRun(100, func() { r.Read(buf) }); n != 0 {
		t.Errorf("got %v allocations of Read without HTML, want 0", n)
	}
}
