// Package servicetest checks what a crawler did that service.Crawl has run.
package servicetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Check runs an example, unless it lacks a program, and wants to see that its n crawlers sent what robots.txt allows
// and nothing else, together one visitor that keeps its delay. The crawlers name the reason of a refusal.
func Check(t *testing.T, n int, run func(ctx context.Context, out, problems io.Writer) error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), &out, t.Output())
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fetched http://www.example/public 200\n",
		"refused http://www.example/private/ robots.txt: Disallow: /private/\n",
		"refused http://other.example/archive/1 robots.txt: Disallow: /archive/\n", // the hop of a redirect
		"refused http://down.example/ robots.txt: unreachable\n",
		"\nother.example saw 0 pages ",
		"\ndown.example saw 0 pages ",
		fmt.Sprintf("\nwww.example saw %d pages and 1 robots.txt asked for, ", 3*n), // its start, /public and /moved
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in the output, got\n%s", want, &out)
		}
	}
	_, saw, _ := strings.Cut(out.String(), "www.example saw ")
	_, apart, _ := strings.Cut(saw, ", ")
	apart, _, _ = strings.Cut(apart, " ")
	if d, err := time.ParseDuration(apart); err != nil || d < 200*time.Millisecond {
		t.Errorf("the requests at www.example are %s apart, want 200 ms at least", apart)
	}
}
