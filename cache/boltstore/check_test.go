package boltstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// bitFile makes a file of n values, and returns its keys. If they are many, it has branch
// pages on two levels, values of several pages, and free pages; if they are few, all is in
// one page.
func bitFile(t *testing.T, n int) (path string, keys []string) {
	path = file(t)
	s := open(t, path)
	for i := range n {
		key, size := fmt.Sprintf("https://%0120d.example", i), 700
		if i%12 == 5 {
			size = 9000
		}
		keys = append(keys, key)
		if err := s.Put(t.Context(), key, make([]byte, size), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, keys
}

// Some of what a wrong bit does to bbolt cannot be recovered from, and some of it never
// ends. So a process of its own opens, reads and writes each file.
func TestNoFlippedBitEndsTheProcess(t *testing.T) {
	tier.Nightly(t)
	if path := os.Getenv("BOLTSTORE_BITS"); path != "" {
		flipBits(path, strings.Fields(os.Getenv("BOLTSTORE_KEYS")))
		os.Exit(0)
	}
	for _, n := range []int{1, 60} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { flipBitsElsewhere(t, n) })
	}
}

func flipBitsElsewhere(t *testing.T, n int) {
	path, keys := bitFile(t, n)
	cmd := exec.Command(os.Args[0], "-test.run=^TestNoFlippedBitEndsTheProcess$")
	cmd.Env = append(os.Environ(), "BOLTSTORE_BITS="+path, "BOLTSTORE_KEYS="+strings.Join(keys, " "))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.3000s", err, out)
	}
	var flipped, refused int
	if _, err := fmt.Sscanf(string(out), "%d flipped, %d refused", &flipped, &refused); err != nil {
		t.Fatalf("%v\n%.3000s", err, out)
	}
	t.Logf("of %d files %d were refused", flipped, refused)
	if flipped < 34*n || refused < flipped/40 || refused > flipped*9/10 {
		t.Errorf("of %d files %d were refused: too few or too many to mean much", flipped, refused)
	}
}

// flipBits is the other process.
func flipBits(path string, keys []string) {
	good, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	bits := make(chan int)
	go func() {
		defer close(bits)
		const pageSize = 4096
		r := rand.New(rand.NewPCG(15, 2))
		for range 400 { // anywhere, mostly in values and on free pages
			bits <- r.IntN(len(good) * 8)
		}
		for page := 0; page < len(good)/pageSize; page++ {
			if id := binary.NativeEndian.Uint64(good[page*pageSize:]); id != uint64(page) || page > 1 && id == 0 {
				continue // the second page of a large value, or none
			}
			for range 20 { // the header, and the first elements
				bits <- page*pageSize*8 + r.IntN(16*8)
				bits <- page*pageSize*8 + r.IntN(200*8)
			}
		}
	}()
	var mu sync.Mutex
	flipped, refused := 0, 0
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			path := filepath.Join(filepath.Dir(path), fmt.Sprint(w))
			for bit := range bits {
				bad := append([]byte(nil), good...)
				bad[bit/8] ^= 1 << (bit % 8)
				os.Remove(path)
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					panic(err)
				}
				late := time.AfterFunc(time.Minute, func() { panic(fmt.Sprint("a hang after a flip of bit ", bit)) })
				opened := use(path, keys)
				late.Stop()
				mu.Lock()
				flipped++
				if !opened {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	fmt.Printf("%d flipped, %d refused\n", flipped, refused)
}

// use reports whether the file could be opened, and reads and writes it.
func use(path string, keys []string) bool {
	s, err := boltstore.Open(path)
	if err != nil {
		if !errors.Is(err, boltstore.ErrDamaged) || !strings.Contains(err.Error(), "remove it") {
			panic(err)
		}
		return false
	}
	ctx := context.Background()
	for _, key := range keys {
		if _, err := s.Get(ctx, key); err != nil && err != cache.ErrMiss {
			panic(err) // what can be opened can be read
		}
	}
	for range 2 {
		var puts sync.WaitGroup
		for i := 0; i < len(keys); i += 7 {
			puts.Go(func() {
				if err := s.Put(ctx, keys[i]+"x", make([]byte, 1500), -time.Second); err != nil { // and deleted soon
					panic(err)
				}
			})
		}
		puts.Wait()
	}
	if err := s.Close(); err != nil {
		panic(err)
	}
	return true
}

// The kinds that no process survives.
func TestADamagedTreeIsRefused(t *testing.T) {
	tier.Gate(t)
	const pageSize, branch, leaf, list = 4096, 0x01, 0x02, 0x10
	n := binary.NativeEndian
	path, _ := bitFile(t, 60)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The pages of the file as it is now; the first two are free of a tree.
	pages := map[uint16][]int{}
	for at := 2 * pageSize; at < len(good); at += pageSize {
		if id := n.Uint64(good[at:]); id == uint64(at/pageSize) {
			kind := n.Uint16(good[at+8:])
			pages[kind] = append(pages[kind], at)
		}
	}
	rows := []struct {
		name   string
		pages  []int
		damage func(page []byte, id int)
		want   string // what Open says
	}{
		{"a branch page that is its own child", pages[branch], func(p []byte, id int) { n.PutUint64(p[24:], uint64(id)) }, "used twice"},
		{"a child beyond the file", pages[branch], func(p []byte, id int) { n.PutUint64(p[24:], 1<<40) }, "beyond the file"},
		{"one child twice", pages[branch], func(p []byte, id int) { copy(p[40:48], p[24:32]) }, "used twice"},
		{"a branch page without children", pages[branch], func(p []byte, id int) { n.PutUint16(p[10:], 0) }, "0 elements"},
		{"a branch page of two billion pages", pages[branch], func(p []byte, id int) { p[15] ^= 0x80 }, "beyond the file"},
		{"a leaf page of two billion pages", pages[leaf], func(p []byte, id int) { p[15] ^= 0x80 }, "beyond the file"},
		{"a leaf page with the page behind it", pages[leaf], func(p []byte, id int) { p[12] ^= 1 }, "used twice"},
		{"a leaf page of another number", pages[leaf], func(p []byte, id int) { p[0] ^= 1 }, "says that it is"},
		{"a value of a gigabyte", pages[leaf], func(p []byte, id int) { p[31] ^= 0x40 }, "a value up to"},
		{"a first key that the parent does not have", pages[leaf], func(p []byte, id int) { p[16+n.Uint32(p[20:])+n.Uint32(p[24:])-1]-- }, "begins with another key"},
		{"keys out of order", pages[leaf], func(p []byte, id int) {
			if n.Uint16(p[10:]) > 1 {
				p[32+n.Uint32(p[36:])] = ' '
			}
		}, "out of order"},
		{"a bucket among the values", pages[leaf], func(p []byte, id int) { p[16] ^= 1 }, "flags 0x1"},
		{"a free page that is the list", pages[list], func(p []byte, id int) { n.PutUint64(p[16:], uint64(id)) }, "used twice"},
		{"a free page beyond the file", pages[list], func(p []byte, id int) { n.PutUint64(p[16:], 1<<40) }, "beyond the file"},
		{"a list of 2⁴⁰ free pages", pages[list], func(p []byte, id int) { n.PutUint16(p[10:], 0xffff); n.PutUint64(p[16:], 1<<40) }, "free pages of"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			// Some pages are those of trees that are no more, so not all of them count.
			refused := 0
			for _, at := range row.pages {
				bad := append([]byte(nil), good...)
				row.damage(bad[at:at+pageSize], at/pageSize)
				path := file(t)
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				s, err := boltstore.Open(path)
				switch {
				case err == nil:
					s.Close()
				case !errors.Is(err, boltstore.ErrDamaged):
					t.Fatal(err)
				case strings.Contains(err.Error(), row.want):
					refused++
				}
			}
			if refused == 0 {
				t.Errorf("of %d pages there is none of which Open says %q", len(row.pages), row.want)
			}
		})
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boltstore.Open(path); !errors.Is(err, boltstore.ErrDamaged) {
		t.Errorf("half a file: %v", err)
	}
}

// Whatever is put and forgotten, the next process can open it.
func TestAnUndamagedFileIsNeverRefused(t *testing.T) {
	tier.Gate(t)
	path := file(t)
	for round := range 40 {
		r := rand.New(rand.NewPCG(uint64(round), 15))
		s := open(t, path) // fails the test if it is refused
		for range r.IntN(8) {
			var puts sync.WaitGroup
			for range r.IntN(60) {
				key := strings.Repeat("k", r.IntN(60)) + fmt.Sprint(r.IntN(500))
				size, ttl := r.IntN(1500), time.Duration(r.IntN(3)-1)*time.Hour
				if r.IntN(40) == 0 {
					size = r.IntN(60_000)
				}
				puts.Go(func() {
					if err := s.Put(t.Context(), key, make([]byte, size), ttl); err != nil {
						t.Error(err)
					}
				})
			}
			puts.Wait()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := file(b)
			s := open(b, path)
			for i := 0; i < n; i += 1000 {
				var puts sync.WaitGroup
				for j := range 1000 {
					puts.Go(func() { _ = s.Put(b.Context(), fmt.Sprintf("https://%d.example", i+j), make([]byte, 2000), time.Hour) })
				}
				puts.Wait()
			}
			s.Close()
			for b.Loop() {
				s, err := boltstore.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}
