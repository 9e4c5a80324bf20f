package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestRequestsSendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), &out, t.Output())
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("python3, requests or go is not installed: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fetched http://www.example/ 200\n",
		"fetched http://www.example/public 200\n",
		"refused http://www.example/private/ Disallow: /private/\n",
		"refused http://other.example/archive/1 Disallow: /archive/\n", // the hop of a redirect
		"fetched http://www.example/gone 404\n",
		"refused http://down.example/ unreachable\n",
	} {
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
