package shell

import (
	"bytes"
	"testing"
)

func TestColoursAreForTerminalsOnly(t *testing.T) {
	if got := paletteFor(new(bytes.Buffer)).Verdict(true); got != "allowed" {
		t.Errorf("got %q, want no colour", got)
	}
	if got := (palette{On: true}).Verdict(false); got != "\x1b[31mrefused\x1b[0m" {
		t.Errorf("got %q, want red", got)
	}
}
