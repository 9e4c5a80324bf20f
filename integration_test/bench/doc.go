// Package bench compares package policy with github.com/temoto/robotstxt, the
// parser that most Go crawlers use, in one process and round by round. It is a
// module of its own so that the library does not depend on its peers.
//
//	cd integration_test/bench && go test -bench . -benchtime 2s
//
// Each benchmark prints what both sides took and, as "x-temoto", how many times
// as much the other side took: the median over rounds that took turns. The
// machine's mood cancels out of it; the absolute numbers it does not.
package bench
