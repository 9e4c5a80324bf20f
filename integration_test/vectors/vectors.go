// Package vectors reads the shared expectations: JSONL files and real robots.txt files. They live outside the
// repository, in the folder that $ROBOTSGATE_VECTORS names, else in ../shared seen from the project's root. If the
// folder is absent, a test skips and says so; if it was named and is not there, the test fails.
package vectors

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "module github.com/robotsgate/robotsgate\n"

// Open opens a file of the folder, for instance "vectors/google.jsonl". It ends the test if the folder is absent, and
// unpacks a file whose name ends in gz.
func Open(t testing.TB, name string) io.Reader {
	t.Helper()
	named := os.Getenv("ROBOTSGATE_VECTORS")
	dir := cmp.Or(named, filepath.Join(filepath.Dir(root(t)), "shared"))
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

// Read decodes a file of JSON objects. It accepts no id twice, and no key that T does not have, other than the unread
// ones: what an expectation says more must not be passed over.
func Read[T any](t testing.TB, name string, unread ...string) []T {
	t.Helper()
	all, err := decode[T](Open(t, name), unread)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return all
}

// ReadOwn decodes a file of JSON objects of the test's own folder as Read does.
func ReadOwn[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := decode[T](f, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return all
}

func decode[T any](r io.Reader, unread []string) (all []T, err error) {
	for _, key := range unread {
		if Strict(fmt.Appendf(nil, "{%q: null}", key), new(T)) == nil {
			return nil, fmt.Errorf("%q is read", key)
		}
	}
	ids := map[string]bool{}
	for d := json.NewDecoder(r); ; {
		var object map[string]json.RawMessage
		if err := d.Decode(&object); err == io.EOF && len(all) > 0 {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("object %d: %w", len(all)+1, err)
		}
		id := string(object["id"])
		if ids[id] && id != "" {
			return nil, fmt.Errorf("object %d: %s occurs twice", len(all)+1, id)
		}
		ids[id] = true
		for _, key := range unread {
			delete(object, key)
		}
		read, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		var v T
		if err := Strict(read, &v); err != nil {
			return nil, fmt.Errorf("object %d: %w", len(all)+1, err)
		}
		all = append(all, v)
	}
}

// Strict decodes one JSON value into v, as json.Unmarshal does, and accepts no key that v does not have.
func Strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

// Query is a question about a file of the corpus.
type Query struct {
	ID, File, URL string
	Agents        []string
	Allowed       bool
	Line          int // which decides, or 0
}

// Queries returns the questions about the files of Corpus, with Google's answers.
func Queries(t testing.TB) []Query {
	t.Helper()
	return Read[Query](t, "corpus/queries.jsonl.gz")
}

// Corpus returns the real robots.txt files by name.
func Corpus(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(Open(t, "corpus/files.tar.gz")); ; {
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
