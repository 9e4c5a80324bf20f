//go:build !race

package client_test

// underRace reports whether the race detector watches.
const underRace = false
