// Package model is what package lint knows of a file before it judges it: lines with the
// fields that their author meant, groups, and the comments that silence a rule. It also knows
// the crawlers that groups name.
package model

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
	"github.com/robotsgate/robotsgate/policy/lint/internal/chars"
)

// File is a robots.txt file cut into lines and groups.
type File struct {
	quiet  silence
	Text   string // without byte order mark
	BOM    int    // bytes of the byte order mark; fewer than three if it is damaged
	Nuls   int
	Wide   bool   // UTF-16
	HTML   bool   // a page, not a list of records
	Ends   [3]int // how many lines end in LF, CRLF, CR
	Odd    int    // number of the first line that ends otherwise than line 1; 0: none
	Lines  []*Line
	Groups []*Group
	Loose  []*Line // before the first group
}

// Read divides a file into lines, as lenient crawlers do (RFC 9309 §2.2), and the
// lines into groups. It reads past the parsing limit: RT110 tells what is lost there.
func Read(data []byte) *File {
	s := scan.New(scan.Author, data)
	text := string(data)
	f := &File{Text: text[s.BOM:], BOM: s.BOM, quiet: silence{}}
	// Text of UTF-16 without its mark is half NUL bytes; a few of them are something else.
	f.Nuls = strings.Count(text, "\x00")
	f.Wide = strings.HasPrefix(text, "\xFF\xFE") || strings.HasPrefix(text, "\xFE\xFF") || f.Nuls > len(text)/8
	blank, style := false, -1
	for s.Next() {
		if end := slices.Index([]string{"\n", "\r\n", "\r"}, LineEnd(text[s.End:])); end >= 0 {
			if f.Ends[end]++; style < 0 {
				style = end
			} else if style != end && f.Odd == 0 {
				f.Odd = s.Number
			}
		}
		if s.Comment {
			f.quiet.listen(text[s.CommentAt:s.End], s.Number, s.Kind == scan.Comment)
		}
		switch s.Kind {
		case scan.Blank:
			blank = true
		case scan.Comment: // separates nothing (1994)
		default:
			l := readLine(&s, text[s.Start:s.End])
			l.Offset, l.AfterBlank, blank = s.Start-s.BOM, blank, false
			f.Lines = append(f.Lines, l)
			f.quiet.settle(s.Number)
		}
	}
	f.group()
	f.HTML = isMarkup(f.Text, len(f.Groups) > 0)
	return f
}

// LineEnd returns what ends the line before rest, or "".
func LineEnd(rest string) string {
	if strings.HasPrefix(rest, "\r\n") {
		return "\r\n"
	}
	return rest[:min(1, len(rest))]
}

// isMarkup recognizes an HTML page by its first bytes: no field begins with '<'. Some files
// begin with a remark in the manner of HTML and have groups all the same; the scripts in a
// page only look as if they had.
func isMarkup(text string, grouped bool) bool {
	text = strings.TrimLeft(text, chars.Blanks+"\r\n")
	return strings.HasPrefix(text, "<") && !(grouped && strings.HasPrefix(text, "<!--"))
}
