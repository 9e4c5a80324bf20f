package policy

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// What a long target has is found, also after many searches.
func TestNoPieceOfATargetIsMissed(t *testing.T) {
	r := rand.New(rand.NewPCG(9309, 8))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("abc/%"[r.IntN(5)])
		}
		return b.String()
	}
	refused := 0
	for range 200 {
		q := newQuestion(escapeGoogle, "/"+word(longTarget+r.IntN(300)))
		q.searches = manySearches
		for range 50 {
			piece := word(r.IntN(14))
			if r.IntN(2) == 0 {
				at := r.IntN(len(q.target))
				piece = q.target[at:min(len(q.target), at+r.IntN(14))]
			}
			switch may, has := q.mayHave(piece), strings.Contains(q.target, piece); {
			case has && !may:
				t.Fatalf("%q is not found in %q", piece, q.target)
			case !may:
				refused++
			}
		}
	}
	if refused < 1000 {
		t.Errorf("%d pieces were refused without a search, want thousands", refused)
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
