package usage

import (
	"iter"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// Package policy knows how paths match. It is asked about many at once, as the rules of one
// file: that costs what a robots.txt with as many rules costs, however long the target is.

// maxRules is how many bytes of rules are asked about at once: few enough for package policy
// to keep them all, whatever they are.
const maxRules = 64 << 10

// maxTies is how many paths may be as long as the longest that matches. No site has two.
const maxTies = 64

// matching yields the places of the paths that match a target, in their order, and each path as
// its bytes count (RFC 9309 §2.2.2). Of paths that come to the same it may yield the first alone.
func matching(paths []string, target string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for from, n := 0, 0; from < len(paths); from = n {
			size := 0
			for n = from; n < len(paths) && (n == from || size+len(paths[n]) < maxRules); n++ {
				size += len(disallow) + len(paths[n])
			}
			for _, r := range rules(paths[from:n]).Matching(target) {
				if !yield(from+r.Line-2, normal(r.Pattern)) {
					return
				}
			}
		}
	}
}

const disallow = "\ndisallow: "

// rules returns a group with the paths as its rules, from line 2 on.
func rules(paths []string) policy.Group {
	file := append(make([]byte, 0, 256), "user-agent: *"...)
	for _, path := range paths {
		file = append(file, disallow...)
		if !strings.ContainsAny(path, "\x00\r\n#") { // of a tdmrep.json: it would be more than a line
			file = append(file, path...)
		}
	}
	return policy.Parse(file).Group("*")
}

// choose returns, by path, whether it is one of the longest that match a target, and whether
// there are more of these than are told. If none matches, the empty path is the longest.
func choose(paths []string, target string) (holds map[string]bool, more bool) {
	longest := map[string]bool{"": true}
	bytes := 0
	for _, path := range matching(paths, target) {
		if len(path) > bytes {
			bytes = len(path)
			clear(longest)
		}
		if len(path) == bytes {
			longest[path] = true
		}
	}
	holds = map[string]bool{}
	ties := -1 // beside the first
	for _, path := range paths {
		if _, seen := holds[path]; seen {
			continue
		}
		if holds[path] = longest[path] || longest[normal(path)]; holds[path] {
			ties++
		}
		if ties > maxTies {
			holds[path] = false
			return holds, true
		}
	}
	return holds, false
}

// normal returns a path as its bytes count.
func normal(path string) (form string) {
	text := policy.Parse([]byte("user-agent: *" + disallow + path)).String()
	_, form, _ = strings.Cut(text, "\nDisallow: ")
	return strings.TrimSuffix(form, "\n")
}
