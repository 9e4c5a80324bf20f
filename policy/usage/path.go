package usage

import (
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// Package policy knows how paths match. It is asked about many at once, as the rules of one
// file: that costs what a robots.txt with as many rules costs, however long the target is.

// maxRules is how many bytes of rules are asked about at once: few enough for package policy
// to keep them all, whatever they are.
const maxRules = 64 << 10

// maxTies is how many paths may be as long as the longest that matches. No site has two; a
// file that is made of them takes eight times as long as one that has none.
const maxTies = 64

// longest returns which of the paths is the longest that matches a target, the first of
// several, and how many bytes it counts for. If none matches, it returns -1 and 0, as for a
// path that is empty.
func longest(paths []string, target string) (at, bytes int) {
	at = -1
	for from, n := 0, 0; from < len(paths); from = n {
		var d policy.Decision
		d, n = decide(paths, from, target)
		if more := len(d.Rule.Pattern); d.Reason == policy.ReasonRule && more > bytes {
			at, bytes = from+d.Rule.Line-2, more
		}
	}
	return at, bytes
}

// decide asks about the paths from a place on, and returns where the next question begins.
func decide(paths []string, from int, target string) (d policy.Decision, n int) {
	file := append(make([]byte, 0, 256), "user-agent: *\n"...)
	for n = from; n < len(paths) && (n == from || len(file)+len(paths[n]) < maxRules); n++ {
		file = append(file, "disallow: "...)
		if !strings.ContainsAny(paths[n], "\x00\r\n#") { // of a tdmrep.json: it would be more than a line
			file = append(file, paths[n]...)
		}
		file = append(file, '\n')
	}
	return policy.Parse(file).Decide("*", target), n
}

// first returns which of the paths is the first that matches a target, or -1. Each question
// is about half of the paths of the one before, so that all of them cost twice the first.
func first(paths []string, target string) int {
	at, _ := longest(paths, target)
	for low, high := 0, at; low < high; { // nothing matches before low, and at does
		middle := (low + high + 1) / 2
		if found, _ := longest(paths[low:middle], target); found < 0 {
			low = middle
		} else {
			at = low + found
			high = at
		}
	}
	return at
}

// A choice is what of many paths counts for a target: the longest that match.
type choice struct {
	target string
	bytes  int
	holds  map[string]bool // by path
	tied   int             // how many hold beside the first
	full   bool            // there may be more
}

// choose returns those of the paths that are the longest that match. If none matches, these
// are the empty ones.
func choose(paths []string, target string) choice {
	at, bytes := longest(paths, target)
	if at < 0 {
		return choice{holds: map[string]bool{"": true}}
	}
	c := choice{target: target, bytes: bytes, holds: map[string]bool{paths[at]: true}}
	var others []string
	for _, path := range paths {
		if _, seen := c.holds[path]; !seen && mayCount(bytes, path) {
			c.holds[path] = false
			others = append(others, path)
		}
	}
	c.ties(others)
	return c
}

// ties looks for paths that match and are as long, half by half.
func (c *choice) ties(paths []string) {
	if len(paths) == 0 || c.full {
		return
	}
	at, bytes := longest(paths, c.target)
	switch {
	case bytes < c.bytes:
	case c.tied == maxTies:
		c.full = true
	case len(paths) == 1:
		c.holds[paths[at]] = true
		c.tied++
	default:
		c.ties(paths[:len(paths)/2])
		c.ties(paths[len(paths)/2:])
	}
}

// mayCount reports whether a path may count for a number of bytes: those of its normal
// form, in which an escape may stand for one byte, and a byte for an escape.
func mayCount(bytes int, path string) bool {
	const unchanged = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~*?=&"
	if strings.Trim(path, unchanged) == "" {
		return len(path) == bytes
	}
	return len(path) <= 3*bytes && bytes <= 3*len(path)
}
