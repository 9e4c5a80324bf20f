package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the report offers and --fix has not come to is said.
func TestFixSaysWhatItDidNotJudge(t *testing.T) {
	text := "User-agent: *\n"
	for i := range 1000 {
		text += fmt.Sprintf("Disallow: /g%d\nDisalow: /g%[1]d\nDisalow: /b%[1]d\n", i)
	}
	file := filepath.Join(t.TempDir(), "robots.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const note = "robots.txt: at least 10 replacements were not judged: the file is too long\n"
	if status, said := fails(t, "lint", "--fix", file); status != 1 || !strings.Contains(said, note) {
		t.Errorf("status %d: %.300s", status, said)
	}
	if err := os.WriteFile(file, []byte("User-agent: *\nDisallow: /a*\nDisalow: /b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, said := fails(t, "lint", "--fix", file); strings.Contains(said, "judged") {
		t.Errorf("a short file: %s", said)
	}
}
