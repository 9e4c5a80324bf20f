package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether w is a terminal; colours and progress are shown only there.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// typed reports whether these lines are typed at a terminal, and says there that they are
// awaited.
func typed(in io.Reader, errs io.Writer, lines string) bool {
	if !isTerminal(in) || !isTerminal(errs) {
		return false
	}
	fmt.Fprintf(errs, "robots: reading %s from the keyboard, one on a line\n", lines)
	return true
}

// palette colours text, or leaves it alone.
type palette struct{ on bool }

// paletteFor turns colours on for terminals, unless $NO_COLOR (https://no-color.org)
// is set to anything or the terminal cannot show them.
func paletteFor(w io.Writer) palette {
	return palette{isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// palette is that for standard output, or what --color says.
func (a *app) palette() palette {
	switch a.color {
	case "always", "never":
		return palette{a.color == "always"}
	}
	return paletteFor(a.out)
}

// colorFlag is --color.
type colorFlag string

func (f *colorFlag) String() string { return string(*f) }
func (f *colorFlag) Type() string   { return "when" }

func (f *colorFlag) Set(when string) error {
	if !slices.Contains(colorWhen, when) {
		return fmt.Errorf("it is one of %s", strings.Join(colorWhen, ", "))
	}
	*f = colorFlag(when)
	return nil
}

var colorWhen = []string{"auto", "always", "never"}

func (p palette) paint(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) good(s string) string { return p.paint("32", s) } // green
func (p palette) bad(s string) string  { return p.paint("31", s) } // red

// verdict is the word for an answer, in its colour.
func (p palette) verdict(allowed bool) string {
	if allowed {
		return p.good("allowed")
	}
	return p.bad("refused")
}

// visible makes text from the network safe to print: control characters, bytes that
// are not UTF-8, and the invisible characters that reorder text become escapes. So no
// file can steer the terminal or forge a line of output.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch quoted := strconv.QuoteRune(r); {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case hidden(r):
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
