package boltstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/cache/cachetest"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func open(t testing.TB, path string) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "robots.db") }

func TestStore(t *testing.T) {
	tier.Gate(t)
	cachetest.TestStore(t, func(t *testing.T) cache.Store { return open(t, file(t)) })
}

func TestValuesAreThereWhenTheFileIsOpenedAgain(t *testing.T) {
	path := file(t)
	s := open(t, path)
	for i := range 100 {
		if err := s.Put(t.Context(), fmt.Sprint(i), fmt.Append(nil, "value ", i), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	for i := range 100 {
		if got, err := s.Get(t.Context(), fmt.Sprint(i)); err != nil || string(got) != fmt.Sprint("value ", i) {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestTheFileDoesNotGrowWithWhatIsForgotten(t *testing.T) {
	tier.Gate(t)
	path := file(t)
	s := open(t, path)
	size := int64(0)
	for round := range 4 {
		for i := range 100 { // never the same key
			if err := s.Put(t.Context(), fmt.Sprint(round, ".", i), make([]byte, 10_000), -time.Second); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), fmt.Sprint(round, ".", i)); !errors.Is(err, cache.ErrMiss) {
				t.Fatalf("a value whose time has ended: %v", err)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			size = info.Size()
		} else if info.Size() > 2*size {
			t.Errorf("%d bytes after round %d, %d after the first", info.Size(), round, size)
		}
	}
}

func TestAFileInUseOrInTheWayIsAClearError(t *testing.T) {
	tier.Gate(t)
	if held := os.Getenv("BOLTSTORE_HELD"); held != "" { // in another process
		if _, err := boltstore.Open(held); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	}
	path := file(t)
	open(t, path)
	if _, err := boltstore.Open(path); err == nil || !strings.Contains(err.Error(), path+" is open in this process") {
		t.Errorf("a file in use: %v", err)
	}
	other := exec.Command(os.Args[0], "-test.run=TestAFileInUseOrInTheWayIsAClearError$")
	other.Env = append(os.Environ(), "BOLTSTORE_HELD="+path)
	if out, err := other.CombinedOutput(); err != nil || !strings.Contains(string(out), path+" is open in another process") {
		t.Errorf("a file in use by another process: %s, %v", out, err)
	}
	for _, path := range []string{t.TempDir(), filepath.Join(path, "x.db")} {
		_, err := boltstore.Open(path)
		if err == nil || !strings.Contains(err.Error(), path) || errors.Is(err, boltstore.ErrDamaged) {
			t.Errorf("%s: %v, want an error that names it, and no damage", path, err)
		}
	}
}

// Nobody is to remove a file because the disk is full.
func TestAFullDiskIsNoDamage(t *testing.T) {
	if full := os.Getenv("BOLTSTORE_FULL"); full != "" { // in a process that may write little
		_, err := boltstore.Open(full)
		fmt.Println(err, errors.Is(err, boltstore.ErrDamaged))
		os.Exit(0)
	}
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no shell to bound the size of a file")
	}
	for _, pages := range []int{2, 4} { // what bbolt begins a file with does not fit; the first transaction does not
		blocks := strconv.Itoa(pages * os.Getpagesize() / 512)
		little := exec.Command(sh, "-c", `ulimit -f "$0" && exec "$1" "$2"`, blocks, os.Args[0], "-test.run=TestAFullDiskIsNoDamage$")
		little.Env = append(os.Environ(), "BOLTSTORE_FULL="+file(t))
		out, err := little.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "file too large false") {
			t.Errorf("%d pages: %s, %v", pages, out, err)
		}
	}
}

// Whatever is in the file that bbolt did not write is ErrDamaged: to remove the file is the remedy.
func TestEachDamageIsErrDamaged(t *testing.T) {
	whole := file(t)
	s := open(t, whole)
	for i := range 100 {
		if err := s.Put(t.Context(), fmt.Sprint(i), make([]byte, 1000), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	zeroed := func(n int) []byte { return append(make([]byte, n), good[n:]...) }
	for name, contents := range map[string][]byte{
		"one byte": {0}, "text": []byte("hello"), "long text": []byte(strings.Repeat("not a database\n", 10_000)),
		"zeros": make([]byte, 8<<10), "many zeros": make([]byte, 1<<20), "one page": good[:4096], "half a page": good[:2048],
		"two pages": good[:8192], "three pages": good[:12288], "half": good[:len(good)/2], "no head": zeroed(8 << 10),
		"no metadata and more": zeroed(16 << 10), "nothing left": zeroed(len(good)),
	} {
		path := file(t)
		if err := os.WriteFile(path, contents, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := boltstore.Open(path)
		if !errors.Is(err, boltstore.ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want ErrDamaged and the path", name, err)
		}
		if err == nil {
			s.Close()
			continue
		}
		os.Remove(path)
		if s, err = boltstore.Open(path); err != nil {
			t.Fatalf("%s: after the file was removed: %v", name, err)
		}
		s.Close()
	}
}

// A damaged page may hold anything, but it must be an error or a value that
// the cache then checks, and not the end of the process.
func TestADamagedFileIsAnErrorAndNoPanic(t *testing.T) {
	whole := file(t)
	s := open(t, whole)
	for i := range 100 {
		if err := s.Put(t.Context(), fmt.Sprint(i), make([]byte, 1000), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for damage := range 16 {
		path, bad := file(t), append([]byte(nil), good...)
		for i := range 64 {
			bad[4096*2+(damage*9973+i*131)%(len(bad)-4096*2)] ^= 0x55 // beyond the two meta pages
		}
		if damage%4 == 0 {
			bad = bad[:len(bad)/2]
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := boltstore.Open(path)
		if err != nil {
			failed++
			continue
		}
		for i := range 100 {
			if _, err := s.Get(context.Background(), fmt.Sprint(i)); err != nil {
				failed++
			}
		}
		// Not closed in the end: bbolt may wait for ever for a transaction that broke off.
	}
	if failed == 0 {
		t.Error("no damage was noticed: the test damages nothing")
	}
}

func BenchmarkGet(b *testing.B) {
	s := open(b, file(b))
	if err := s.Put(b.Context(), "https://a.example", make([]byte, 2000), time.Hour); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(b.Context(), "https://a.example"); err != nil {
			b.Fatal(err)
		}
	}
}
