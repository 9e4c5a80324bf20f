package vectors

import (
	"strings"
	"testing"
)

func TestObjectsAreReadStrictly(t *testing.T) {
	type object struct {
		ID    string
		Inner struct{ A int }
	}
	const good = `{"id": "x", "note": "n", "inner": {"a": 1}}` + "\n" + `{"id": "y"}` + "\n"
	all, err := decode[object](strings.NewReader(good), []string{"note"})
	if err != nil || len(all) != 2 || all[0].Inner.A != 1 || all[1].ID != "y" {
		t.Errorf("%s: got %v, %v", good, all, err)
	}
	for _, c := range []struct {
		from, to string
		unread   []string
	}{
		{"", "", nil},                           // a key that T does not have
		{"", "", []string{"note", "id"}},        // T has it
		{`"a"`, `"b"`, []string{"note"}},        // within
		{`"y"`, `"x"`, []string{"note"}},        // twice
		{`"y"}`, `"y"`, []string{"note"}},       // half an object
		{`"y"}`, `"y"} no`, []string{"note"}},   // more than objects
		{good, "", []string{"note"}},            // nothing
		{`{"id": "y"}`, "7", []string{"note"}},  // no object
		{`"a": 1`, `"a": ""`, []string{"note"}}, // another type
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if all, err := decode[object](strings.NewReader(text), c.unread); err == nil {
			t.Errorf("%s without %q: got %v, want an error", text, c.unread, all)
		}
	}
	for _, text := range []string{`{"a": 1, "b": 2}`, `{"a": 1} {"a": 1}`, `{"a": 1`, ""} {
		var v struct{ A int }
		if err := Strict([]byte(text), &v); err == nil {
			t.Errorf("%s: got %v, want an error", text, v)
		}
	}
}
