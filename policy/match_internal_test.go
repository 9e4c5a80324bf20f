package policy

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// A piece is found at the same place before and after the suffixes of the target are sorted.
func TestPiecesAreFoundAtTheSamePlaceByTheIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(9309, 8))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("aab"[r.IntN(3)])
		}
		return b.String()
	}
	for range 100 {
		target := "/" + word(r.IntN(3000))
		plain, indexed := question{target: target}, question{target: target, searched: muchSearched + 1}
		for range 50 {
			piece, at := word(r.IntN(10)), r.IntN(len(target)+1)
			if got, want := indexed.index(piece, at), plain.index(piece, at); got != want {
				t.Fatalf("%q from %d in %q: got %d, want %d", piece, at, target, got, want)
			}
		}
		if indexed.suffixes == nil || plain.suffixes != nil {
			t.Fatal("the index was not asked, or both times")
		}
	}
}

// Size counts with them.
func TestTheSizesOfTypesAreKnown(t *testing.T) {
	for _, c := range []struct {
		of  reflect.Type
		got int
	}{
		{reflect.TypeFor[group](), groupSize}, {reflect.TypeFor[name](), nameSize}, {reflect.TypeFor[rule](), ruleSize},
		{reflect.TypeFor[record](), recordSize}, {reflect.TypeFor[Policy](), policySize},
	} {
		if want := int(c.of.Size()); c.got != want && strconv.IntSize == 64 {
			t.Errorf("%v: got %d bytes, want %d", c.of, c.got, want)
		}
	}
}
