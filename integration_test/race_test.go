//go:build race

package integration_test

// slowdown divides what takes long under the race detector.
const slowdown = 5
