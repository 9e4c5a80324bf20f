package client

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/internal/pace"
	"github.com/robotsgate/robotsgate/fetch"
)

// A field that fetch.Fetcher gains must not be lost where blanks are filled.
func TestAFilledFetcherLosesNoField(t *testing.T) {
	f := fetch.Fetcher{
		Sign: func(*http.Request) error { return nil }, Timeout: 7, Retries: 7, MaxFetches: 7, ObeyWalls: true, SameHost: true,
	}
	base := new(http.Transport)
	filled := (&Transport{Base: base, UserAgent: "ExampleBot/1.0", Fetcher: &f}).filledFetcher(new(gate))
	given, got := reflect.ValueOf(&f).Elem(), reflect.ValueOf(filled).Elem()
	for i := range given.NumField() {
		switch field := given.Type().Field(i); {
		case !field.IsExported() || field.Name == "Transport" || field.Name == "UserAgent" || field.Name == "Through":
		case given.Field(i).IsZero():
			t.Errorf("give fetch.Fetcher.%s a value in this test", field.Name)
		case fmt.Sprint(got.Field(i)) != fmt.Sprint(given.Field(i)):
			t.Errorf("%s is lost: %v, want %v", field.Name, got.Field(i), given.Field(i))
		}
	}
	if filled.Transport != http.RoundTripper(base) || filled.UserAgent != "ExampleBot/1.0" {
		t.Error("the blanks are not filled")
	}
}

// What is decided on is what Trace says, and what net/http sends.
func FuzzTheTargetIsTheRequestURI(f *testing.F) {
	f.Add("", "", "", false)
	f.Add("/a/b", "/a%2fb", "é=%zz&*$", false)
	f.Add("/a/b", "/other", "", true)
	f.Add("//a b\t\x00\xff;x=[y]", "", "a?b", false)
	f.Fuzz(func(t *testing.T, path, rawPath, query string, force bool) {
		u := &url.URL{Scheme: "http", Host: "a.example", Path: path, RawPath: rawPath, RawQuery: query, ForceQuery: force}
		if got, err := targetOf(u); err == nil && got != u.RequestURI() {
			t.Errorf("%#v: got %q, want %q", u, got, u.RequestURI())
		}
	})
}

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
