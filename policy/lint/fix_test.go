package lint_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy/lint"
)

func TestFixWritesWhatTheFindingsSay(t *testing.T) {
	all := func(lint.Finding) bool { return true }
	for _, c := range []struct {
		name, file, want string
		accept           func(lint.Finding) bool
	}{
		{"nothing to do", "User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow: /a\n", nil},
		{"each line of a remark", "User-agent: *\nDISALLOW: /a\nDISALLOW: /b\n", "User-agent: *\nDisallow: /a\nDisallow: /b\n", nil},
		{"a star is a byte to Original", "User-agent: *\nDisallow: /a*\n", "User-agent: *\nDisallow: /a*\n", nil},
		{"line ends and byte order mark", "\uFEFFUSER-AGENT: *\r\nDISALLOW: /a\rDISALLOW: /b", "\uFEFFUser-agent: *\r\nDisallow: /a\rDisallow: /b", nil},
		{"comments", "User-agent: *\nDISALLOW: /a # why*\n", "User-agent: *\nDisallow: /a # why*\n", nil},
		{"no line end", "User-agent: *\r\nDISALLOW: /a", "User-agent: *\r\nDisallow: /a", all},
		{"escapes", "User-agent: *\nDisallow: /%7ea\nDisallow: /\u30c4\n", "User-agent: *\nDisallow: /%7ea\nDisallow: /%E3%83%84\n", all},
		{"what is without effect is the author's", "User-agent: *\nDisallow: a\nDisalow: /b\n", "User-agent: *\nDisallow: a\nDisalow: /b\n", all},
		{"a rule is left out", "User-agent: *\nDISALLOW: /a\n", "User-agent: *\nDISALLOW: /a\n", func(f lint.Finding) bool { return f.Severity > lint.SeverityInfo }},
		{"silenced", "User-agent: *\nDISALLOW: /a # robots-lint: ignore RT009\n", "User-agent: *\nDISALLOW: /a # robots-lint: ignore RT009\n", all},
		{"what readers end at a NUL is not theirs to join", "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\x00x\n", "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\x00x\n", nil},
		{"a NUL at the end", "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\x00\n", "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\n", nil},
		{"what is there already", "User-agent: *\nAllow: /a/index.html\nAllow: /a/$\nDisallow: /a/*$\n", "User-agent: *\nAllow: /a/index.html\nAllow: /a/$\nDisallow: /a/*$\n", nil},
		{"a refusal for no name binds all of the group", "User-agent:\nContent-Usage: train-ai=No\nUser-agent: a\nDisallow: /a\n", "User-agent:\nContent-Usage: train-ai=No\nUser-agent: a\nDisallow: /a\n", nil},
		{"a page", "<html>\nDisallow /a\n", "<html>\nDisallow /a\n", all},
	} {
		if fixed := (lint.Answer{Body: []byte(c.file)}).Fix(c.accept); string(fixed) != c.want {
			t.Errorf("%s: got %q, want %q", c.name, fixed, c.want)
		}
	}
}

// Over real and mutated files no verdict changes, no finding with a replacement that keeps them is left, and what has no
// finding keeps its bytes.
func TestFixKeepsAllVerdictsAndLeavesNothingToFix(t *testing.T) {
	tier.Gate(t)
	long(t)
	random := rand.New(rand.NewPCG(2026, 30))
	files := vectors.Corpus(t)
	names, thirds := third(t, slices.Sorted(maps.Keys(files)))
	changed, verdicts := 0, 0
	for i := range len(names) * 3 / 2 {
		name := names[i%len(names)]
		data := files[name]
		if i >= len(names) {
			name, data = fmt.Sprint(name, " mutated"), mutated(data, random)
		}
		if len(data) > 30_000 {
			continue
		}
		offered := map[int]bool{} // lines
		fixed := lint.Answer{Body: data}.Fix(func(f lint.Finding) bool { offered[f.Line] = true; return true })
		all := lines(string(data))
		q := asked(all, random.IntN(len(all)), random)
		if other := otherVerdict(promised[:], string(data), string(fixed), q); other != "" {
			t.Errorf("%s: %s is decided otherwise", name, other)
		}
		verdicts += len(promised) * len(q.tokens) * len(q.targets)
		if was, is := lines(string(data)), lines(string(fixed)); len(was) == len(is) {
			for i := range was {
				if was[i] == is[i] {
					continue
				}
				if changed++; !offered[i+1] {
					t.Errorf("%s: line %d is now %q, not %q, without a finding", name, i+1, is[i], was[i])
				}
			}
		}
		for _, f := range lint.File(fixed) {
			if f.Replacement != "" {
				t.Errorf("%s: line %d still has %s: %q", name, f.Line, f.ID, f.Replacement)
			}
		}
	}
	t.Logf("%d lines changed, %d verdicts compared", changed, verdicts)
	if changed < 100*thirds || verdicts < 166_000*thirds {
		t.Errorf("changed %d lines, compared %d verdicts, want %d and %d", changed, verdicts, 100*thirds, 166_000*thirds)
	}
}
