package shell

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal; colours and progress are shown only there.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Typed reports whether these lines are typed at a terminal, and says there that they are
// awaited.
func Typed(in io.Reader, errs io.Writer, lines string) bool {
	if !IsTerminal(in) || !IsTerminal(errs) {
		return false
	}
	fmt.Fprintf(errs, "robots: reading %s from the keyboard, one on a line\n", lines)
	return true
}

// palette colours text, or leaves it alone.
type palette struct{ On bool }

// PaletteFor turns colours on for terminals, unless $NO_COLOR (https://no-color.org)
// is set to anything or the terminal cannot show them.
func paletteFor(w io.Writer) palette {
	return palette{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Palette is that for standard output, or what --color says.
func (a *App) Palette() palette {
	switch a.Color {
	case "always", "never":
		return palette{a.Color == "always"}
	}
	return paletteFor(a.Out)
}

// SetColor takes the value of --color.
func (a *App) SetColor(when string) error {
	if !slices.Contains(ColorWhen, when) {
		return fmt.Errorf("it is one of %s", strings.Join(ColorWhen, ", "))
	}
	a.Color = when
	return nil
}

var ColorWhen = []string{"auto", "always", "never"}

func (p palette) paint(code, s string) string {
	if !p.On {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) Good(s string) string { return p.paint("32", s) } // green
func (p palette) bad(s string) string  { return p.paint("31", s) } // red

// Verdict is the word for an answer, in its colour.
func (p palette) Verdict(allowed bool) string {
	if allowed {
		return p.Good("allowed")
	}
	return p.bad("refused")
}
