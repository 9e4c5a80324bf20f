package shell

import (
	"bytes"
	"testing"
)

func TestColoursAreForTerminalsOnly(t *testing.T) {
	a := &App{Streams: Streams{Out: new(bytes.Buffer)}}
	for color, want := range map[string]string{"": "refused", "auto": "refused", "never": "refused", "always": "\x1b[31mrefused\x1b[0m"} {
		if a.Color = color; a.Palette().Verdict(false) != want {
			t.Errorf("--color %s: got %q, want %q", color, a.Palette().Verdict(false), want)
		}
	}
}
