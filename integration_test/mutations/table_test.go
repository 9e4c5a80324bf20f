package main

import "testing"

// What a row changes has to be there, or the row tells nothing.
func TestTheTableFitsTheCode(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range table {
		if m.tests == "" || m.name == "" || m.old == m.new {
			t.Errorf("%+v is not complete", m)
		}
		if _, err := m.mutate(root); err != nil {
			t.Error(err)
		}
	}
}
