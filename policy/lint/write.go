package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// Report is the findings of one file.
type Report struct {
	Name     string    // of the file, or its URL. If empty, lines begin with a colon.
	Findings []Finding // If nil, nothing is wrong.
	Text     []byte    // of the file, to quote lines of it. If nil, none is quoted.
}

// Style is how WriteText lays out a report. The zero value suits a file or a pipe.
type Style struct {
	Color bool // use the colours of ANSI terminals. If false, the text has none.
	Width int  // columns of the terminal. If zero or negative, messages are not wrapped.
}

// WriteText writes a paragraph for each finding, and a last line that counts them. A paragraph begins as compilers
// begin theirs, with name:line:column. Below stand the line of the file with a caret, after "+" what to write instead
// if that is certain, and after "fix:" what to do. Without findings nothing is written.
func WriteText(w io.Writer, style Style, reports ...Report) error {
	t := &text{Writer: bufio.NewWriter(w), style: style}
	for _, r := range reports {
		// Only reports need the text by line. The checks never do, so it is not kept there.
		lines := splitLines(r.Text)
		for _, f := range r.Findings {
			t.finding(r.Name, f)
			if f.More == 0 && f.Line > 0 && f.Line <= len(lines) {
				t.source(lines[f.Line-1], f)
			}
			t.fix(f)
		}
	}
	t.summary(reports)
	return t.Flush() // keeps the first error
}

// text writes for people.
type text struct {
	*bufio.Writer
	style Style
}

// paint returns s in a colour of ANSI terminals. The codes look right on light and dark.
func (t *text) paint(code, s string) string {
	if !t.style.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// colors are those of compilers.
var colors = [...]string{SeverityInfo: "1;36", SeverityWarning: "1;35", SeverityError: "1;31"}

// finding writes the first line of a paragraph. It is wrapped before it is coloured, so that colours have no width.
func (t *text) finding(name string, f Finding) {
	place, word := model.Printable(name+f.place()+": "), f.Severity.String()
	rest := fmt.Sprintf(": %s [%s %s] (%s)", f.Message, f.ID, f.Name, f.Engines)
	wrapped := wrap(place+word+model.Printable(rest), "    ", t.style.Width)
	// A name that is wrapped stays plain.
	if head := place + word; strings.HasPrefix(wrapped, head) {
		wrapped = t.paint("1", place) + t.paint(colors[f.Severity], word) + wrapped[len(head):]
	}
	fmt.Fprintln(t, wrapped)
}

// place returns what follows the name: nothing for the file as a whole, line and column as compilers write them.
func (f Finding) place() string {
	switch {
	case f.Line == 0:
		return ""
	case f.Column == 0:
		return fmt.Sprintf(":%d", f.Line)
	}
	return fmt.Sprintf(":%d:%d", f.Line, f.Column)
}

// gutter is how wide the number of a line is set, with the blanks around it.
const gutter = 7

// source quotes the line of a finding, with a caret below the column.
func (t *text) source(line string, f Finding) {
	if strings.Contains(line, "\x00") {
		return // UTF-16, or worse
	}
	// A line that the terminal wraps would part the caret from its place. Without a terminal,
	// what matters is that a file of one line does not fill the log.
	room := 100
	if t.style.Width > 0 {
		room = max(10, t.style.Width-gutter-3)
	}
	shown, caret := excerpt([]rune(line), f.Column, room)
	fmt.Fprintf(t, "%*d | %s\n", gutter-2, f.Line, shown)
	if f.Column > 0 {
		fmt.Fprintf(t, "%*s | %s\n", gutter-2, "", caret[:len(caret)-1]+t.paint("1;32", "^"))
	}
}

// excerpt returns the part of a line around the column that fits into room, and a line of
// blanks with a caret below the column.
func excerpt(line []rune, column, room int) (shown, caret string) {
	var b, under strings.Builder
	from, to := 0, len(line)
	if to > room {
		from = min(max(0, column-room/2), to-room+2)
		to = min(to, from+room-2) // the two are for the marks of what is left out
	}
	if from > 0 {
		b.WriteRune('…')
		under.WriteByte(' ')
	}
	for i, r := range line[from:to] {
		if r == '\t' {
			r = ' '
		}
		b.WriteString(model.Printable(string(r)))
		switch {
		case from+i >= column-1:
		case r >= 0x2E80 && r < 0xFE00: // two columns wide; so is the ideographic space
			under.WriteRune('\u3000')
		default:
			under.WriteByte(' ')
		}
	}
	if to < len(line) {
		b.WriteRune('…')
	}
	return b.String(), under.String() + "^"
}

// fix writes the last part of a paragraph.
func (t *text) fix(f Finding) {
	if f.More > 0 {
		return // said above, for each that is listed
	}
	if f.Replacement != "" {
		for line := range strings.SplitSeq(f.Replacement, "\n") {
			fmt.Fprintf(t, "%*s %s\n", gutter-2, "", t.paint("32", "+ "+model.Printable(line)))
		}
	} else if f.Example != "" {
		for line := range strings.SplitSeq(f.Example, "\n") {
			fmt.Fprintf(t, "%*s %s\n", gutter-2, "", t.paint("33", "? "+model.Printable(line)))
		}
	}
	fmt.Fprintln(t, t.paint("32", "  fix:")+wrap("       "+f.Suggestion, "       ", t.style.Width)[6:])
}

// summary counts what was found.
func (t *text) summary(reports []Report) {
	var n [SeverityError + 1]int
	files := 0
	for _, r := range reports {
		for _, f := range r.Findings {
			n[f.Severity] += max(1, f.More)
		}
		files += min(1, len(r.Findings))
	}
	var parts []string
	for s, what := range []string{SeverityError: "error", SeverityWarning: "warning", SeverityInfo: "remark"} {
		if n[s] > 0 {
			parts = append([]string{model.Count(n[s], what)}, parts...)
		}
	}
	switch {
	case files == 0: // silence is the good news, as with other linters
	case len(reports) == 1:
		fmt.Fprintln(t, strings.Join(parts, ", "))
	default:
		fmt.Fprintf(t, "%s in %d of %s\n", strings.Join(parts, ", "), files, model.Count(len(reports), "file"))
	}
}

// splitLines returns the lines of a file, which end in LF, CRLF or CR (RFC 9309 §2.2).
func splitLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	// Columns do not count the byte order mark: no editor shows it.
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), "\n")
}

// wrap breaks s at blanks so that each line has at most width characters if it can, and
// indents all lines but the first. A width of 0 breaks nothing.
func wrap(s, indent string, width int) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(s, " ") {
		// A word that is longer than the line stays whole: it is a path or a URL, to be copied.
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width && column > len(indent):
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
