package vectors

import (
	"bufio"
	"encoding"
	"fmt"
	"io"
	"iter"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Case is a file of a testdata folder: a header of "key: value" lines, a blank line, and a body. Each header has
//
//	section:  where the rule is from, of RFC 9309 if it is a number
//	kind:     standard, or extension for what the RFC does not say
//	comment:  what the case is about
type Case struct {
	Head textproto.MIMEHeader
	Body string
}

// ReadCase accepts nothing that it does not know. The keys are those that a header has as well; optional are those that
// it may have.
func ReadCase(text string, keys []string, optional ...string) (c Case, err error) {
	r := bufio.NewReader(strings.NewReader(text))
	if c.Head, err = textproto.NewReader(r).ReadMIMEHeader(); err != nil {
		return c, err
	}
	body, _ := io.ReadAll(r) // of a strings.Reader
	c.Body = string(body)
	keys = append([]string{"Section", "Kind", "Comment"}, keys...)
	for _, key := range keys {
		if strings.TrimSpace(c.Head.Get(key)) == "" {
			return c, fmt.Errorf("the header has no %q", key)
		}
	}
	for key := range c.Head {
		if !slices.Contains(keys, key) && !slices.Contains(optional, key) {
			return c, fmt.Errorf("unknown header key %q", key)
		}
	}
	if kind := c.Head.Get("Kind"); kind != "standard" && kind != "extension" {
		return c, fmt.Errorf("kind %q is neither standard nor extension", kind)
	}
	return c, nil
}

// Named reads the values that a line of a header names.
func Named[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](names string) ([]T, error) {
	var all []T
	for name := range strings.FieldsSeq(names) {
		var v T
		if err := P(&v).UnmarshalText([]byte(name)); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Cases are what parse makes of the .txt files of a folder, by their names.
func Cases[T any](t testing.TB, folder string, parse func(text string) (T, error)) iter.Seq2[string, T] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no cases (%v)", folder, err)
	}
	return func(yield func(string, T) bool) {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if !yield(strings.TrimSuffix(filepath.Base(file), ".txt"), v) {
				return
			}
		}
	}
}

// CheckStrict checks that a parser takes a good text, and none that a change makes of it: of the first of a pair, where it
// stands first, to the second. It returns what the good one is.
func CheckStrict[T any](t testing.TB, parse func(text string) (T, error), good string, changes ...[2]string) T {
	t.Helper()
	v, err := parse(good)
	if err != nil {
		t.Fatalf("%q: %v", good, err)
	}
	for _, change := range changes {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Errorf("%q is not in the text", change[0])
		} else if _, err := parse(bad); err == nil {
			t.Errorf("%q instead of %q: got no error", change[1], change[0])
		}
	}
	return v
}
