package same

import (
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// Apply returns the file with the edits, which are in its order and about different lines.
// Line ends, the byte order mark and all other bytes stay.
func Apply(f *model.File, edits []Edit) string {
	var b strings.Builder
	b.Grow(len(f.Text) + 1<<10)
	b.WriteString("\uFEFF"[:f.BOM])
	done := 0
	for _, e := range edits {
		b.WriteString(f.Text[done:e.Line.Offset])
		done = e.Line.Offset + len(e.Line.Text)
		end := model.LineEnd(f.Text[done:])
		if e.Text == "" {
			done += len(end)
			continue
		}
		if end == "" { // the last line: as the first one ends
			end = "\n"
			if i := strings.IndexAny(f.Text, "\r\n"); i >= 0 {
				end = model.LineEnd(f.Text[i:])
			}
		}
		b.WriteString(strings.ReplaceAll(e.Text, "\n", end))
	}
	b.WriteString(f.Text[done:])
	return b.String()
}
