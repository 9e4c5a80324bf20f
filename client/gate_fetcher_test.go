package client

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
)

// A field that fetch.Fetcher gains must not be lost where blanks are filled.
func TestAFilledFetcherLosesNoField(t *testing.T) {
	var f fetch.Fetcher
	f.Sign = func(*http.Request) error { return nil }
	v := reflect.ValueOf(&f).Elem()
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || name == "Transport" || name == "UserAgent" || name == "Through" {
			continue
		}
		switch {
		case field.CanInt():
			field.SetInt(7)
		case field.CanUint():
			field.SetUint(1)
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		case field.Kind() == reflect.Func && !field.IsNil(): // set above
		default:
			t.Fatalf("teach this test to set fetch.Fetcher.%s (%s)", name, field.Type())
		}
	}
	base := new(http.Transport)
	filled := reflect.ValueOf((&Transport{Base: base, UserAgent: "ExampleBot/1.0", Fetcher: &f}).filledFetcher(new(gate))).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || name == "Transport" || name == "UserAgent" || name == "Through" {
			continue
		}
		if field := v.Field(i); field.Kind() == reflect.Func {
			if filled.Field(i).Pointer() != field.Pointer() {
				t.Errorf("%s is lost", name)
			}
			continue
		}
		if !reflect.DeepEqual(filled.Field(i).Interface(), v.Field(i).Interface()) {
			t.Errorf("%s is lost: %v, want %v", name, filled.Field(i), v.Field(i))
		}
	}
	if filled.FieldByName("Transport").Interface() != http.RoundTripper(base) || filled.FieldByName("UserAgent").String() != "ExampleBot/1.0" {
		t.Error("the blanks are not filled")
	}
}
