package lint

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Report is the findings of one file.
type Report struct {
	Name     string    `json:"name"` // of the file, or the URL
	Findings []Finding `json:"findings"`
}

// WriteText writes one line for each finding, name:line:column first, and the
// suggestion below it.
func WriteText(w io.Writer, reports ...Report) error {
	b := bufio.NewWriter(w)
	for _, r := range reports {
		for _, f := range r.Findings {
			fmt.Fprintf(b, "%s%s: %s: %s [%s %s] (%s)\n", r.Name, f.place(), f.Severity, f.Message, f.ID, f.Name, f.Engines)
			// A suggestion repeats text of the file, which must not steer the
			// terminal.
			for line := range strings.SplitSeq(f.Suggestion, "\n") {
				fmt.Fprintf(b, "\t%s\n", strings.Map(printable, line))
			}
		}
	}
	return b.Flush() // keeps the first error
}

// printable replaces characters that are invisible or move the cursor.
func printable(r rune) rune {
	if invisible(r) {
		return '\uFFFD'
	}
	return r
}

// place returns what follows the name: nothing for the file as a whole, line and
// column as compilers write them.
func (f Finding) place() string {
	switch {
	case f.Line == 0:
		return ""
	case f.Column == 0:
		return fmt.Sprintf(":%d", f.Line)
	}
	return fmt.Sprintf(":%d:%d", f.Line, f.Column)
}

// WriteJSON writes one JSON object for each report, on a line of its own. A file without
// findings has an empty array.
func WriteJSON(w io.Writer, reports ...Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, r := range reports {
		if r.Findings == nil {
			r.Findings = []Finding{}
		}
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
