package dirstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/cachetest"
	"github.com/robotsgate/robotsgate/cache/dirstore"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

func open(t testing.TB, dir string) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *dirstore.Store, key, value string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), key, []byte(value), ttl); err != nil {
		t.Fatal(err)
	}
}

// files are the paths of all files of a Store.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStore(t *testing.T) {
	tier.Gate(t)
	cachetest.TestStore(t, func(t *testing.T) cache.Store { return open(t, t.TempDir()) })
}

func TestAnotherProcessFindsWhatWasPut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	first, second := open(t, dir), open(t, dir)
	for i := range 100 {
		put(t, first, fmt.Sprint("https://a", i, ".example"), fmt.Sprint("value ", i), time.Hour)
	}
	for i := range 100 {
		got, err := second.Get(t.Context(), fmt.Sprint("https://a", i, ".example"))
		if want := fmt.Sprint("value ", i); err != nil || string(got) != want {
			t.Errorf("%d: got %q, %v, want %q", i, got, err, want)
		}
	}
	all := files(t, dir)
	if len(all) != 100 {
		t.Errorf("%d files, want 100", len(all))
	}
	for _, path := range append(all, dir) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("%s: %v, %v: others may read it", path, info.Mode(), err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	put(t, first, "https://a.example", "anew", time.Hour)
	if got, err := second.Get(t.Context(), "https://a.example"); string(got) != "anew" {
		t.Errorf("after the directory was removed: got %q, %v", got, err)
	}
}

// A value ends when its time has come, and its file goes by and by; so does what a killed process has
// left. What is not of a Store stays.
func TestWhatHasLapsedIsSwept(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		s := open(t, dir)
		put(t, s, "lapses", "value", time.Minute)
		put(t, s, "lives", "value", 48*time.Hour)
		lapses, lives := files(t, dir)[0], files(t, dir)[1]
		if info, err := os.Stat(lapses); err != nil || info.ModTime().After(time.Now().Add(time.Hour)) {
			lapses, lives = lives, lapses
		}
		left, foreign := filepath.Join(filepath.Dir(lapses), "123.robots"), filepath.Join(filepath.Dir(lapses), "notes")
		for _, path := range []string{left, foreign} {
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, time.Now(), time.Now())); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if got, err := s.Get(t.Context(), "lapses"); !errors.Is(err, cache.ErrMiss) {
			t.Errorf("after its time: got %q, %v, want a miss", got, err)
		}
		puts := func(most int) {
			for range most { // one in 256 sweeps
				put(t, s, "lapses", "", -2*time.Hour)
				if _, err := os.Stat(left); err != nil {
					return
				}
			}
		}
		puts(500)
		if _, err := os.Stat(left); err != nil {
			t.Error("a file that may be being written was removed")
		}
		time.Sleep(time.Hour)
		puts(10_000)
		for path, want := range map[string]bool{left: false, foreign: true, lives: true} {
			if _, err := os.Stat(path); (err == nil) != want {
				t.Errorf("%s is there %t, want %t", path, err == nil, want)
			}
		}
	})
}

// A damaged file is neither what was put nor absent; it harms no other key, and a Put mends it.
func TestADamagedFileHarmsOneKey(t *testing.T) {
	long := append([]byte("https://a.example\n"), make([]byte, 600<<10+1)...)
	for name, damage := range map[string]func(path string) error{
		"empty":          func(path string) error { return os.Truncate(path, 0) },
		"cut in its key": func(path string) error { return os.Truncate(path, 3) },
		"of another key": func(path string) error { return os.WriteFile(path, []byte("https://b.example\nvalue"), 0o600) },
		"zeros":          func(path string) error { return os.WriteFile(path, make([]byte, 4096), 0o600) },
		"too long":       func(path string) error { return os.WriteFile(path, long, 0o600) },
		"without end":    func(path string) error { return os.Truncate(path, 1<<40) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			put(t, s, "https://a.example", "value", time.Hour)
			path := files(t, dir)[0]
			put(t, s, "https://c.example", "other", time.Hour)
			end := time.Now().Add(time.Hour)
			if err := errors.Join(damage(path), os.Chtimes(path, end, end)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(t.Context(), "https://a.example"); string(got) == "value" || errors.Is(err, cache.ErrMiss) {
				t.Errorf("got %d bytes, %v, want neither the value nor a miss", len(got), err)
			}
			if got, err := s.Get(t.Context(), "https://c.example"); string(got) != "other" {
				t.Errorf("the other key: got %q, %v", got, err)
			}
			put(t, s, "https://a.example", "anew", time.Hour)
			if got, err := s.Get(t.Context(), "https://a.example"); string(got) != "anew" {
				t.Errorf("put anew: got %q, %v", got, err)
			}
		})
	}
}

// After a loss of power many files may be damaged, one after the other. Whole ones are still read.
func TestManyDamagedFilesLeaveTheOthers(t *testing.T) {
	dir, fetches := t.TempDir(), 0
	src := &cache.Source{Load: func(_ context.Context, o fetch.Origin, _ *fetch.Result) (*fetch.Result, error) {
		fetches++
		return &fetch.Result{StatusCode: 404, Policy: policy.Unavailable(), Time: time.Now()}, nil
	}}
	crawl := func() *cache.Cache {
		c := &cache.Cache{Store: open(t, dir)}
		for i := range 20 {
			o, err := fetch.OriginOf(&url.URL{Scheme: "https", Host: fmt.Sprintf("a%d.example", i)})
			if err == nil {
				_, _, err = c.Get(t.Context(), o, src)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	crawl()
	damaged := 0
	for _, path := range files(t, dir) {
		if text, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		} else if bytes.Contains(text, []byte("a19.")) {
			continue
		}
		end := time.Now().Add(time.Hour)
		if err := errors.Join(os.Truncate(path, 0), os.Chtimes(path, end, end)); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	fetches = 0
	if c := crawl(); fetches != damaged || damaged != 19 || c.Stats().StoreErrors != 19 {
		t.Errorf("%d fetches and %d errors after %d of 20 files were damaged, want 19 of each", fetches, c.Stats().StoreErrors, damaged)
	}
}

func TestOpenSaysWhatIsInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "robots.db")
	if err := os.WriteFile(file, bytes.Repeat([]byte{1}, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                      file + " is a file, such as earlier versions kept: remove it, or name a directory",
		filepath.Join(file, "x"):  "not a directory",
		"missing/robots":          "missing/robots: no such file",
		"/proc/1/cannot/be/there": "/proc/1/cannot/be/there",
		"/proc/self":              "/proc/self/", // in which nothing can be written
	} {
		if _, err := dirstore.Open(path); err == nil || !strings.Contains(err.Error(), want) && runtime.GOOS == "linux" {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

// On a full disk a Put is an error, the old value holds, and nothing is left beside it.
func TestAFullDisk(t *testing.T) {
	if dir := os.Getenv("DIRSTORE_FULL"); dir != "" { // in a process that may write little
		s := open(t, dir)
		fmt.Println(s.Put(t.Context(), "https://a.example", make([]byte, 100_000), time.Hour))
		got, err := s.Get(t.Context(), "https://a.example")
		fmt.Printf("then %q, %v\n", got, err)
		os.Exit(0)
	}
	sh, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no shell to bound the size of a file")
	}
	dir := t.TempDir()
	put(t, open(t, dir), "https://a.example", "old", time.Hour)
	little := exec.Command(sh, "-c", `ulimit -f 8 && exec "$0" -test.run='^TestAFullDisk$'`, os.Args[0])
	little.Env = append(os.Environ(), "DIRSTORE_FULL="+dir)
	out, err := little.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "dirstore: put: ") || !strings.Contains(string(out), "then \"old\", <nil>\n") {
		t.Errorf("%s, %v: want an error of Put, and the old value", out, err)
	}
	if n := len(files(t, dir)); n != 1 {
		t.Errorf("%d files, want one", n)
	}
}

// What is on a disk that is really full can be read, and is put again when there is room.
func TestADiskWithoutRoom(t *testing.T) {
	tier.Gate(t)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "robotsgate", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system of a size can be had: %v, %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	s, there := open(t, dir), 0
	for i := range 100 {
		err := s.Put(t.Context(), fmt.Sprint(i), make([]byte, 10_000), time.Hour)
		got, missed := s.Get(t.Context(), fmt.Sprint(i))
		if err == nil {
			there++
		}
		if err == nil && len(got) != 10_000 || err != nil && !errors.Is(missed, cache.ErrMiss) {
			t.Errorf("%d: %d bytes, %v, after a Put with %v", i, len(got), missed, err)
		}
	}
	if n := len(files(t, dir)); there == 100 || n != there {
		t.Errorf("%d of 100 values are there, in %d files", there, n)
	}
	if err := os.Remove(files(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	put(t, s, "small", "value", time.Hour)
}

// A process that is killed while it writes leaves each value old or new.
func TestAKilledWriterTearsNothing(t *testing.T) {
	tier.Gate(t)
	value := func(n byte) []byte { return bytes.Repeat([]byte{n}, 50_000+int(n)) }
	if dir := os.Getenv("DIRSTORE_KILLED"); dir != "" {
		s := open(t, dir)
		for n := byte(1); ; n = n%200 + 1 {
			put(t, s, "https://a.example", string(value(n)), time.Hour)
		}
	}
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "https://a.example", string(value(1)), time.Hour)
	for kill := range 30 {
		writer := exec.Command(os.Args[0], "-test.run=^TestAKilledWriterTearsNothing$")
		writer.Env = append(os.Environ(), "DIRSTORE_KILLED="+dir)
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); time.Since(start) < time.Duration(30+kill*7%100)*time.Millisecond; {
			got, err := s.Get(t.Context(), "https://a.example")
			if err != nil || len(got) <= 50_000 || !bytes.Equal(got, value(got[0])) {
				t.Fatalf("kill %d: %d bytes that were never put, %v", kill, len(got), err)
			}
		}
		_ = writer.Process.Kill()
		_ = writer.Wait()
	}
	t.Logf("%d files after 30 kills", len(files(t, dir)))
}
