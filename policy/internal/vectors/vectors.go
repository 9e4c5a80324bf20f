// Package vectors reads the shared expectations for the tests of policy and of the packages
// below it: JSONL files and real robots.txt files. They live outside the repository, in the
// folder that $ROBOTSGATE_VECTORS names, else beside the project. The package of the same name
// in integration_test reads the same folder; neither may import the other.
package vectors

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// open opens a file of the folder. It ends the test if there is no folder, and unpacks a file whose name ends in gz.
func open(t testing.TB, name string) io.Reader {
	t.Helper()
	named := os.Getenv("ROBOTSGATE_VECTORS")
	dir := cmp.Or(named, beside(t))
	_, err := os.Stat(filepath.Join(dir, "vectors"))
	switch {
	case err != nil && named != "":
		t.Fatalf("ROBOTSGATE_VECTORS is %q: %v", named, err)
	case err != nil:
		t.Skipf("%s: %v; set ROBOTSGATE_VECTORS", name, err)
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(name, "gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// beside returns the folder "shared" beside the project, which is the parent of policy.
func beside(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for filepath.Base(dir) != "policy" && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "..", "..", "shared")
}

// Read decodes a file of JSON objects.
func Read[T any](t testing.TB, name string) (all []T) {
	t.Helper()
	for d := json.NewDecoder(open(t, name)); ; {
		var v T
		if err := d.Decode(&v); err == io.EOF && len(all) > 0 {
			return all
		} else if err != nil {
			t.Fatalf("%s: object %d: %v", name, len(all)+1, err)
		}
		all = append(all, v)
	}
}

// Corpus returns the real robots.txt files by name.
func Corpus(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(open(t, "corpus/files.tar.gz")); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[filepath.Base(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
