package answer

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
)

// The schema names all dialects and reasons. That what is written fits it is tested with the subcommands.
func TestTheSchemaHasAllNames(t *testing.T) {
	var s struct {
		Defs struct {
			Dialect  struct{ Enum []string }
			Decision struct {
				Required   []string
				Properties map[string]struct{ Enum []string }
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	if got := s.Defs.Dialect.Enum; !slices.Equal(got, DialectNames()) {
		t.Errorf("the schema has the dialects %s, want %s", got, DialectNames())
	}
	var reasons []string
	for r := policy.Reason(1); ; r++ {
		text, err := r.MarshalText()
		if err != nil {
			break
		}
		reasons = append(reasons, string(text))
	}
	reasons = append(reasons, ReasonAgreement, ReasonMalformed)
	if got := s.Defs.Decision.Properties["reason"].Enum; !slices.Equal(got, reasons) {
		t.Errorf("the schema has the reasons %s, want %s", got, reasons)
	}
	if got, want := tags(reflect.TypeFor[written]()), tags(reflect.TypeFor[Verdict]()); !slices.Equal(got, want) {
		t.Errorf("written are %s, and read %s", got, want)
	}
}

// tags are the names in JSON of the fields of a struct.
func tags(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		if name := f.Tag.Get("json"); f.IsExported() {
			names = append(names, name)
		}
	}
	return names
}

// What does not apply is null, and nothing else is.
func TestZerosAreNull(t *testing.T) {
	v := reflect.New(reflect.TypeFor[Verdict]()).Elem()
	var fields map[string]any
	if err := json.Unmarshal(AppendAny(nil, v.Addr().Interface()), &fields); err != nil {
		t.Fatal(err)
	}
	for f := range v.Type().Fields() {
		value, there := fields[f.Tag.Get("json")]
		if null := f.Tag.Get("zero") == "null"; f.IsExported() && f.Name != "Purpose" && (!there || (value == nil) != null) {
			t.Errorf("%s is %v, want null: %v", f.Name, value, null)
		}
	}
}
