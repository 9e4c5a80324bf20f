package proc

import "runtime/debug"

// UnderRace reports whether the race detector is on: it takes memory and time of its own.
func UnderRace() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// Slowdown divides what takes long under the race detector.
func Slowdown() int {
	if UnderRace() {
		return 5
	}
	return 1
}
