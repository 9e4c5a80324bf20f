package client

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A field that fetch.Fetcher gains must not be lost where blanks are filled.
func TestAFilledFetcherLosesNoField(t *testing.T) {
	f := fetch.Fetcher{
		Sign: func(*http.Request) error { return nil }, Dialect: policy.Google, Timeout: 7, Retries: 7, MaxFetches: 7,
		MaxMemory: 7, ObeyWalls: true, SameHost: true,
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
