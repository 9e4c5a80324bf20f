//go:build race

package client_test

const underRace = true
