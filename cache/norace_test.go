//go:build !race

package cache_test

// slowdown divides what takes long under the race detector.
const slowdown = 1
