package lint

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
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

// WriteText writes a paragraph for each finding, and a last line that counts them. A paragraph begins as compilers begin
// theirs, with name:line:column. Below stand the line of the file with a caret, after "+" what to write instead if that
// is certain, and after "fix:" what to do. Without findings nothing is written.
func WriteText(w io.Writer, style Style, reports ...Report) error {
	t := &text{Writer: bufio.NewWriter(w), style: style}
	for _, r := range reports {
		// Lines end in LF, CRLF or CR (RFC 9309 §2.2). Columns do not count the byte order mark: no editor shows it.
		text := strings.TrimPrefix(string(r.Text), "\uFEFF")
		lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
		for _, f := range r.Findings {
			t.finding(r.Name, f)
			if f.More > 0 { // the rest is said above, for each that is listed
				continue
			}
			if f.Line > 0 && f.Line <= len(lines) && len(r.Text) > 0 {
				t.source(lines[f.Line-1], f)
			}
			t.instead("32", "+ ", f.Replacement)
			t.instead("33", "? ", f.Example)
			fmt.Fprintln(t, t.paint("32", "  fix:")+wrap("       "+f.Suggestion, "       ", style.Width)[6:])
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
	place := name
	for _, n := range [...]int{f.Line, f.Column} { // as compilers write them
		if n > 0 {
			place += ":" + strconv.Itoa(n)
		}
	}
	place, word := model.Printable(place+": "), f.Severity.String()
	rest := fmt.Sprintf(": %s [%s %s] (%s)", f.Message, f.ID, f.Name, f.Engines)
	wrapped := wrap(place+word+model.Printable(rest), "    ", t.style.Width)
	if rest, ok := strings.CutPrefix(wrapped, place+word); ok { // a name that is wrapped stays plain
		wrapped = t.paint("1", place) + t.paint(colors[f.Severity], word) + rest
	}
	fmt.Fprintln(t, wrapped)
}

// gutter is how wide the number of a line is set, with the blanks around it.
const gutter = 7

// source quotes the line of a finding, with a caret below the column.
func (t *text) source(line string, f Finding) {
	if strings.Contains(line, "\x00") {
		return // UTF-16, or worse
	}
	// A line that the terminal wraps would part the caret from its place. Without a terminal, what matters is that a file
	// of one line does not fill the log.
	room := 100
	if t.style.Width > 0 {
		room = max(10, t.style.Width-gutter-3)
	}
	shown, under := excerpt([]rune(line), f.Column, room)
	fmt.Fprintf(t, "%*d | %s\n", gutter-2, f.Line, shown)
	if f.Column > 0 {
		fmt.Fprintf(t, "%*s | %s\n", gutter-2, "", under+t.paint("1;32", "^"))
	}
}

// excerpt returns the part of a line around the column that fits into room, and what stands under it before the caret.
func excerpt(line []rune, column, room int) (shown, under string) {
	from, to := 0, len(line)
	if to > room {
		from = min(max(0, column-room/2), to-room+2)
		to = min(to, from+room-2) // the two are for the marks of what is left out
	}
	if from > 0 {
		shown, under = "…", " "
	}
	shown += model.Printable(strings.ReplaceAll(string(line[from:to]), "\t", " "))
	for _, r := range line[from:max(from, min(to, column-1))] {
		if r >= 0x2E80 && r < 0xFE00 { // two columns wide; so is the ideographic space
			under += "\u3000"
		} else {
			under += " "
		}
	}
	if to < len(line) {
		shown += "…"
	}
	return shown, under
}

// instead writes what may stand in place of the line, behind a mark.
func (t *text) instead(color, mark, lines string) {
	if lines == "" {
		return
	}
	for line := range strings.SplitSeq(lines, "\n") {
		fmt.Fprintf(t, "%*s %s\n", gutter-2, "", t.paint(color, mark+model.Printable(line)))
	}
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
	counted := strings.Join(parts, ", ")
	if len(reports) > 1 {
		counted += fmt.Sprintf(" in %d of %s", files, model.Count(len(reports), "file"))
	}
	if files > 0 { // silence is the good news, as with other linters
		fmt.Fprintln(t, counted)
	}
}

// wrap breaks s at blanks so that each line has at most width characters if it can, and indents all lines but the
// first. A width of 0 breaks nothing.
func wrap(s, indent string, width int) string {
	if width <= 0 {
		return s
	}
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(s, " ") {
		// A word that is longer than the line stays whole: it is a path or a URL, to be copied.
		n := utf8.RuneCountInString(word)
		if i > 0 && column+1+n > width && column > len(indent) {
			b.WriteString("\n" + indent)
			column = len(indent)
		} else if i > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
