package client

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
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
		if k := tt.p.kept(); k.Delay != tt.delay || k.MaxDelay != tt.maxDelay || k.Places != tt.places {
			t.Errorf("%s: Delay %v, MaxDelay %v, MaxUnderway %d, want %v, %v, %d",
				tt.name, k.Delay, k.MaxDelay, k.Places, tt.delay, tt.maxDelay, tt.places)
		}
	}
}

func TestPacerSaysHowLongTheTurnIsAway(t *testing.T) {
	o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: "a.example"})
	if err != nil {
		t.Fatal(err)
	}
	const want = "client: not sent: no turn at https://a.example for 1m30s, and the request's deadline is sooner"
	if got := (&LateError{Origin: o, wait: 90*time.Second + 1}).Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Try has no deadline that could be too soon.
func TestPacerTryNamesNoDeadline(t *testing.T) {
	p, u := &Pacer{}, &url.URL{Scheme: "https", Host: "a.example", Path: "/"}
	if err := p.Try(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if err := p.Try(t.Context(), u); err == nil || strings.Contains(err.Error(), "deadline") ||
		!strings.HasPrefix(err.Error(), "client: not sent: no turn at https://a.example for ") {
		t.Errorf("got %v", err)
	}
}
