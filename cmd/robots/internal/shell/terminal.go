package shell

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether w, a reader or a writer, is a terminal. Colours and progress are shown only
// there. What is no *os.File, as in tests, is none.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Typed says on errs that lines are awaited, if they are typed at a terminal and errs is one too, and reports
// whether that is so. Without it, a command that reads standard input looks as if it hung.
func Typed(in io.Reader, errs io.Writer, lines string) bool {
	if !IsTerminal(in) || !IsTerminal(errs) {
		return false
	}
	fmt.Fprintf(errs, "robots: reading %s from the keyboard, one on a line\n", lines)
	return true
}

// palette colours text, or leaves it alone. The zero value leaves it alone.
type palette struct{ On bool }

// paletteFor turns colours on for terminals, unless $NO_COLOR (https://no-color.org) is set to anything or
// the terminal cannot show them.
func paletteFor(w io.Writer) palette {
	return palette{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Palette is that for standard output, or what --color says. Subcommands without the flag leave Color empty,
// which is "auto".
func (a *App) Palette() palette {
	switch a.Color {
	case "always", "never":
		return palette{a.Color == "always"}
	}
	return paletteFor(a.Out)
}

// ColorWhen are the values of --color, for the completion as well.
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
