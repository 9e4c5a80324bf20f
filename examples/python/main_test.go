package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestEachSiteSeesOneVisitorThatKeepsItsDelay(t *testing.T) {
	var out strings.Builder
	all, err := run(t.Context(), &out)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("python3 or go is not installed: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	noChildren(t)
	for _, v := range all {
		// Each of the two crawlers has its own list of pages.
		want := map[string]int{"slow.example": 7, "rules.example": 13, "open.example": 5, "busy.example": 2}[v.host]
		if want > 0 && (v.seen != want || v.least < v.delay) {
			t.Errorf("%s: %d requests, want %d; %v apart, want at least %v", v.host, v.seen, want, v.least, v.delay)
		}
	}
	for line, want := range map[string]int{
		"refused http://rules.example/private Disallow: /private\n": 2,
		"refused http://down.example/ unreachable\n":                2,
		"fetched http://busy.example/ 429\n":                        2,
		"fetched http://rules.example/5 200\n":                      2,
	} {
		if n := strings.Count(out.String(), line); n != want {
			t.Errorf("%d times %q, want %d, in\n%s", n, line, want, &out)
		}
	}
}
