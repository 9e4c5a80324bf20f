package main

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

// sharedFile opens a file of the expectations that live outside the repository, in the folder that $ROBOTSGATE_VECTORS
// names or beside the project, and skips the test if there is no such folder. What ends in gz is unpacked.
func sharedFile(t testing.TB, name string) io.Reader {
	t.Helper()
	named := os.Getenv("ROBOTSGATE_VECTORS")
	dir := cmp.Or(named, "../../../shared")
	if _, err := os.Stat(filepath.Join(dir, "vectors")); err != nil && named == "" {
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

func sharedFacts[T any](t testing.TB, name string) (all []T) {
	t.Helper()
	for d := json.NewDecoder(sharedFile(t, name)); ; {
		var v T
		if err := d.Decode(&v); err == io.EOF && len(all) > 0 {
			return all
		} else if err != nil {
			t.Fatalf("%s: object %d: %v", name, len(all)+1, err)
		}
		all = append(all, v)
	}
}

// sharedCorpus returns the real robots.txt files by name.
func sharedCorpus(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(sharedFile(t, "corpus/files.tar.gz")); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[filepath.Base(h.Name)], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
