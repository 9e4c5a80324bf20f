package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
)

// What a row changes has to be there, or the row tells nothing.
func TestTheRowsFitTheCode(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readAll(root)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, m := range rows {
		if m.tests == "" {
			t.Errorf("%s: no test", m.at)
		}
		if _, err := m.mutate(root); err != nil {
			t.Error(err)
		}
	}
}

func TestRowsAreReadStrictly(t *testing.T) {
	const name = "a/b/testdata/mutations.txt"
	place := regexp.MustCompile("^" + name + ":[18]: ")
	parse := func(text string) ([]mutation, error) {
		rows, err := read(name, text)
		if err != nil && !place.MatchString(err.Error()) {
			t.Errorf("%q: %v: where is that?", text, err)
		}
		return rows, err
	}
	const first, second = "it is wrong\nc.go ./d TestIt FuzzIt\n-\told \"\\n\" {\n-\n--x \\\n+new\n", "it is gone\nc.go\n- here\n"
	got := vectors.CheckStrict(t, parse, first+"\n"+second,
		[2]string{"it is wrong\n", ""}, [2]string{"it is", " it is"}, [2]string{"wrong\n", "wrong\nand more so\n"}, // the words
		[2]string{"c.go ", ""}, [2]string{"c.go", "c.txt"}, [2]string{"c.go", "d/c.go"}, // the file
		[2]string{"./d", "d"}, [2]string{"./d", "./d ./e"}, [2]string{"./d TestIt", "TestIt ./d"}, // the package
		[2]string{"TestIt", "testIt"}, [2]string{"FuzzIt", "FuzzIt # so"}, [2]string{"FuzzIt", "FuzzIt "}, // the tests
		[2]string{"- here\n", ""}, [2]string{"- here", "-"}, [2]string{"- here", "+ here"}, [2]string{"- here", " here"}, // the old text
		[2]string{"- here", "- here "}, [2]string{"- here", "- here\r"}, [2]string{"- here", "- here\n+ here"},
		[2]string{"+new", "+new\t"}, [2]string{"+new", "+new\n-old"}, [2]string{"+new", "+new\nnew"}, // the new text
		[2]string{"\n\n", "\n"}, [2]string{"\n\n", "\n\n\n"}, [2]string{"\n\n", "\n\n# then\n\n"}, [2]string{"here\n", "here\n\n"}, // between
		[2]string{second, first}, [2]string{"gone", "wrong"}, [2]string{second, strings.Replace(first, "wrong", "gone", 1)}, // twice
		[2]string{first + "\n" + second, ""})
	want := []mutation{
		{name + ":1", "a/b/c.go", "\told \"\\n\" {\n\n-x \\", "new", "it is wrong", "./d", "TestIt FuzzIt"},
		{name + ":8", "a/b/c.go", " here", "", "it is gone", "./a/b", ""},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
