// Package servicetest checks what a crawler did that service.Crawl has run.
package servicetest

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// Check runs an example, unless it lacks a program, and wants each of the lines in its output. The sites must not have
// seen what their robots.txt disallows.
func Check(t *testing.T, run func(ctx context.Context, out, problems io.Writer) error, lines ...string) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), &out, t.Output())
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range lines {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
	_, saw, _ := strings.Cut(out.String(), "the sites saw ")
	for _, never := range []string{"/private/", "/archive/", "down.example"} {
		if strings.Contains(saw, never) {
			t.Errorf("the sites saw %s: %s", never, saw)
		}
	}
}
