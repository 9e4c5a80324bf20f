package main

import (
	"os"
	"testing"
)

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

// A mutant may end its process, and leave what its tests were writing.
func TestAMutantsFilesStayInItsFolder(t *testing.T) {
	const folder = "MUTATIONS_FOLDER"
	if want := os.Getenv(folder); want != "" { // as the mutant's test
		if got := os.TempDir(); got != want {
			t.Errorf("files go to %s, not to %s", got, want)
		}
		return
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv(folder, dir)
	if out, err := goTest(root, dir, "-run=^"+t.Name()+"$", "./integration_test/mutations"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
