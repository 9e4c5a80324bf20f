package answer

import (
	"math"
	"math/bits"
	"testing"
)

func TestGeneratedFilesAreBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []repeated
		bytes  int // -1: refused
	}{
		{"none", []repeated{}, 0},
		{"two pieces", []repeated{{"ab", 2}, {"c", 3}}, 7},
		{"nothing many times", []repeated{{"", math.MaxInt}}, 0},
		{"at the bound", []repeated{{"a", maxGenerated}}, maxGenerated},
		{"above the bound", []repeated{{"a", maxGenerated}, {"a", 1}}, -1},
		{"overflowing", []repeated{{"aaaaaaaa", 1 << (bits.UintSize - 3)}}, -1},
		{"negative", []repeated{{"a", -1}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := generate(c.pieces)
			if got := len(data); (c.bytes < 0) != (err != nil) || err == nil && got != c.bytes {
				t.Errorf("got %d bytes and error %v, want %d", got, err, c.bytes)
			}
		})
	}
}
