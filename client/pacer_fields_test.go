package client

import (
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
)

// One law for every field: if zero, its default; if negative, there is none.
func TestPacerFieldsThatAreZeroOrNegative(t *testing.T) {
	for _, tt := range []struct {
		name            string
		p               *Pacer
		delay, maxDelay time.Duration
		places          int
	}{
		{"all zero", &Pacer{}, time.Second, 30 * time.Second, 1},
		{"Delay", &Pacer{Delay: -1}, 0, 30 * time.Second, 1},
		{"MaxDelay", &Pacer{MaxDelay: -1}, time.Second, pace.Day, 1}, // the bound of all delays
		{"MaxUnderway", &Pacer{MaxUnderway: -1}, time.Second, 30 * time.Second, 0},
		{"all negative", &Pacer{Delay: -pace.Day, MaxDelay: -pace.Day, MaxUnderway: -7}, 0, pace.Day, 0},
	} {
		if k := tt.p.ready(); k.Delay != tt.delay || k.MaxDelay != tt.maxDelay || k.MaxUnderway != tt.places {
			t.Errorf("%s: Delay %v, MaxDelay %v, MaxUnderway %d, want %v, %v, %d",
				tt.name, k.Delay, k.MaxDelay, k.MaxUnderway, tt.delay, tt.maxDelay, tt.places)
		}
	}
}
