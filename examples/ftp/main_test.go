package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestOnlyAllowedFilesAreRead(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), &out)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("vsftpd is not in the PATH: install it, or add /usr/sbin to the PATH, to run this test")
	}
	if err != nil {
		t.Fatal(err)
	}
	const refused = ": disallowed by line 2: Disallow: /private"
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || lines[0] != "sent /public: hello" || !strings.HasPrefix(lines[1], "refused /private"+refused) {
		t.Errorf("got\n%s", &out)
	}
}
