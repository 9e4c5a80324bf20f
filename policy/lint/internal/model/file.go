// Package model is what package lint knows of a file before it judges it: lines with the fields that their author
// meant, groups, and the comments that silence a rule. It also knows the crawlers that groups name.
package model

import (
	"regexp"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
)

// File is a robots.txt file cut into lines and groups.
type File struct {
	quiet  map[silent]bool
	next   []string // rules that comments switch off at the next record
	Text   string   // without byte order mark
	BOM    int      // bytes of the byte order mark; fewer than three if it is damaged
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
	f := &File{Text: text[s.BOM:], BOM: s.BOM, quiet: map[silent]bool{}}
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
			f.listen(text[s.CommentAt:s.End], s.Number, s.Kind == scan.Comment)
		}
		switch s.Kind {
		case scan.Blank:
			blank = true
		case scan.Comment: // separates nothing (1994)
		default:
			l := readLine(&s, text[s.Start:s.End])
			l.Offset, l.AfterBlank, blank = s.Start-s.BOM, blank, false
			f.Lines = append(f.Lines, l)
			f.silence(s.Number, f.next)
			f.next = nil
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

// isMarkup recognizes an HTML page by its first bytes: no field begins with '<'. Some files begin with a remark in the
// manner of HTML and have groups all the same; the scripts in a page only look as if they had.
func isMarkup(text string, grouped bool) bool {
	text = strings.TrimLeft(text, Blanks+"\r\n")
	return strings.HasPrefix(text, "<") && !(grouped && strings.HasPrefix(text, "<!--"))
}

// directive is a comment that silences rules, as package lint documents it. A verb that is not known does nothing, so a
// slip shows: the finding is still there. Any identifier will do, not only those that there are: a newer version may
// have more, and an older one must not take the rest for the reason.
var directive = regexp.MustCompile(`^[# \t\v\f]*robots-lint:[ \t\v\f]*(ignore-file|ignore)((?:[ ,\t\v\f]+RT\d\d\d\b)*)`)

// silent is a rule that a comment switches off at a line, 0 for all of the file.
type silent struct {
	id     string
	number int
}

// listen reads a comment from its "#" on. After a record it is about that line; alone on its line it is about the next
// record.
func (f *File) listen(comment string, number int, alone bool) {
	if !strings.Contains(comment, "robots-lint:") {
		return
	}
	said := directive.FindStringSubmatch(comment)
	if said == nil {
		return
	}
	ids := strings.FieldsFunc(said[2], func(r rune) bool { return strings.ContainsRune(Blanks+",", r) })
	if said[1] == "ignore-file" {
		f.silence(0, ids)
	} else if alone {
		f.next = append(f.next, ids...)
	} else {
		f.silence(number, ids)
	}
}

func (f *File) silence(number int, ids []string) {
	for _, id := range ids {
		f.quiet[silent{id, number}] = true
	}
}

// Silent reports whether a comment says that findings of the rule are unwanted at a line; 0 is the file.
func (f *File) Silent(id string, number int) bool {
	return f.quiet[silent{id, 0}] || f.quiet[silent{id, number}]
}
