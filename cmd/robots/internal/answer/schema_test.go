package answer

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/policy"
)

// The structs that are written have the fields of the schema and no others, of the types there. What is not tagged
// omitempty is required, and what is tagged zero:"null", and nothing else, may be null.
func TestTheSchemaHasTheFieldsOfTheStructs(t *testing.T) {
	var s struct {
		Defs definitions `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &s); err != nil {
		t.Fatal(err)
	}
	s.Defs.compare(t, "decision", s.Defs["decision"], reflect.TypeFor[Verdict]())
	s.Defs.compare(t, "fetched", s.Defs["fetched"], reflect.TypeFor[Fetched]())
	if got, want := fmt.Sprint(s.Defs["dialect"].Enum), fmt.Sprint(DialectNames()); got != want {
		t.Errorf("the schema has the dialects %s, want %s", got, want)
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
	if got, want := fmt.Sprint(s.Defs["decision"].Properties["reason"].Enum), fmt.Sprint(reasons); got != want {
		t.Errorf("the schema has the reasons %s, want %s", got, want)
	}
}

type definitions map[string]*definition

// definition is what of JSON Schema this test reads.
type definition struct {
	Ref        string `json:"$ref"`
	AnyOf      []*definition
	Type       any // a name, or several
	Enum       []any
	Required   []string
	Properties map[string]*definition
	Items      *definition
	Additional any `json:"additionalProperties"`
}

// compare holds a struct, with those in it, against the definition of its object.
func (d definitions) compare(t *testing.T, path string, is *definition, written reflect.Type) {
	var names, required []string
	for f := range written.Fields() {
		if !f.IsExported() {
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		if option != "omitempty" {
			required = append(required, name)
		}
		property, path := is.Properties[name], path+"."+name
		if property == nil {
			t.Errorf("%s is not in the schema", path)
			continue
		}
		kind, inner := kindOf(f.Type)
		want := []string{kind}
		if f.Tag.Get("zero") == "null" {
			want = append(want, "null")
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(d.kinds(property))); kind != "" && !slices.Equal(got, want) {
			t.Errorf("%s: the schema has the types %q, the struct %q", path, got, want)
		}
		if inner != nil {
			d.compare(t, path, d.object(property), inner)
		}
	}
	if !slices.Equal(is.Required, required) {
		t.Errorf("%s: required are %q, want %q", path, is.Required, required)
	}
	if is.Additional != false {
		t.Errorf("%s may have other fields", path)
	}
	for name := range is.Properties {
		if !slices.Contains(names, name) {
			t.Errorf("%s.%s is in the schema alone", path, name)
		}
	}
}

// kindOf is the type in JSON, or "" for any, and the struct whose fields it has, if any.
func kindOf(t reflect.Type) (kind string, inner reflect.Type) {
	switch {
	case t.Kind() == reflect.Pointer:
		return kindOf(t.Elem())
	case t == reflect.TypeFor[json.RawMessage]():
		return "", nil
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[[]byte]():
		return "string", nil
	case t == reflect.TypeFor[Statement](): // which writes itself
		return "object", nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return "object", t
	case reflect.Map:
		return "object", nil
	case reflect.Slice:
		if _, inner = kindOf(t.Elem()); inner != nil {
			return "array", inner
		}
		return "array", nil
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Float64:
		return "number", nil
	case reflect.Int, reflect.Int64:
		return "integer", nil
	default:
		return fmt.Sprint("unknown: ", t), nil
	}
}

// kinds are the types that a definition allows.
func (d definitions) kinds(is *definition) map[string]bool {
	kinds := map[string]bool{}
	if is.Ref != "" {
		return d.kinds(d.at(is.Ref))
	}
	for _, one := range is.AnyOf {
		maps.Copy(kinds, d.kinds(one))
	}
	for _, value := range is.Enum {
		switch value.(type) {
		case nil:
			kinds["null"] = true
		case string:
			kinds["string"] = true
		}
	}
	switch names := is.Type.(type) {
	case string:
		kinds[names] = true
	case []any:
		for _, name := range names {
			kinds[name.(string)] = true
		}
	}
	return kinds
}

// object is where a definition has its fields, or those of its items.
func (d definitions) object(is *definition) *definition {
	switch {
	case is.Ref != "":
		return d.object(d.at(is.Ref))
	case is.AnyOf != nil:
		return d.object(is.AnyOf[0])
	case is.Items != nil:
		return d.object(is.Items)
	default:
		return is
	}
}

func (d definitions) at(ref string) *definition { return d[strings.TrimPrefix(ref, "#/$defs/")] }
