//go:build race

package usage_test

const raceEnabled = true
