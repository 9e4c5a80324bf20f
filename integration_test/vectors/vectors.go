// Package vectors finds and reads the shared test expectations (JSONL files and
// the corpus of real robots.txt files) for the tests of every package. They live
// outside the repository: in the folder that $ROBOTSGATE_VECTORS names, else in
// ../shared seen from the project's root. Where the folder is absent a test skips
// and says so; where it was named and is not there, the test fails.
package vectors

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "module github.com/robotsgate/robotsgate\n"

// Path returns the path of a file below the shared folder, for instance
// "vectors/google.jsonl". It ends the test where the folder is absent.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, named := os.LookupEnv("ROBOTSGATE_VECTORS")
	if !named {
		dir = filepath.Join(filepath.Dir(root(t)), "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "vectors")); err != nil {
		if named {
			t.Fatalf("ROBOTSGATE_VECTORS is %q, which holds no folder vectors: name the one that does, or unset it", dir)
		}
		t.Skipf("shared vectors are not at %s (set ROBOTSGATE_VECTORS); skipping %s", dir, name)
	}
	return filepath.Join(dir, name)
}

// root walks up from the test's folder to the project's go.mod, past those of nested modules.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), module) {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod of robotsgate above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// Read decodes one JSON object per line. A name that ends in .gz is unpacked.
func Read[T any](t testing.TB, name string) []T {
	t.Helper()
	data, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var r io.Reader = bytes.NewReader(data)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			t.Fatal(err)
		}
	}
	var all []T
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no vectors", name)
	}
	return all
}

// Corpus returns the real robots.txt files by name.
func Corpus(t testing.TB) map[string][]byte {
	t.Helper()
	f, err := os.Open(Path(t, "corpus/files.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
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
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(h.Name)] = body
	}
}

// Target cuts out of a URL what is matched against rules, as Google's library does
// (google-url-path.jsonl): URLs of the vectors may lack a scheme, and an origin.
func Target(url string) string {
	url, _, _ = strings.Cut(url, "#")
	url = strings.TrimPrefix(url, "//")
	if scheme := strings.Index(url, "://"); scheme >= 0 && strings.IndexAny(url, "/?;") > scheme {
		url = url[scheme+len("://"):]
	}
	path := strings.IndexAny(url, "/?;")
	if path < 0 {
		return "/"
	}
	if url[path] != '/' {
		return "/" + url[path:]
	}
	return url[path:]
}
