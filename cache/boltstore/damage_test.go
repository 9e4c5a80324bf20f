package boltstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache/boltstore"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// What a damaged page does to bbolt, it may do as late as in the commit. Each file is put
// into by a process of its own, which must live.
func TestADamagedFileEndsNoProcessThatPuts(t *testing.T) {
	tier.Gate(t)
	if path := os.Getenv("BOLTSTORE_DAMAGED"); path != "" {
		s, err := boltstore.Open(path)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for i := range 6 { // commits of ten
			var puts sync.WaitGroup
			for n := range 10 {
				puts.Go(func() { _ = s.Put(ctx, fmt.Sprint((10*i+n)*7), make([]byte, 1500), time.Hour) })
			}
			put := make(chan struct{})
			go func() {
				puts.Wait()
				close(put)
			}()
			select {
			case <-put:
			case <-ctx.Done():
				fmt.Println("STUCK")
				os.Exit(0)
			}
		}
		os.Exit(0)
	}
	whole := file(t)
	s := open(t, whole)
	for i := range 300 {
		if err := s.Put(t.Context(), fmt.Sprint(i), make([]byte, 1000), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	good, _ := os.ReadFile(whole)
	crashed, stuck := 0, 0
	for damage := range 40 {
		r := rand.New(rand.NewPCG(uint64(damage), 1))
		bad := append([]byte(nil), good...)
		switch damage % 3 {
		case 0: // random bit flips in page headers
			for range 12 {
				p := 2 + r.IntN(len(bad)/4096-2)
				bad[p*4096+r.IntN(64)] ^= byte(1 << r.IntN(8))
			}
		case 1: // a swapped page
			for range 4 {
				a, b := 2+r.IntN(len(bad)/4096-2), 2+r.IntN(len(bad)/4096-2)
				copy(bad[a*4096:a*4096+4096], good[b*4096:b*4096+4096])
			}
		case 2: // a zeroed page
			for range 4 {
				a := 2 + r.IntN(len(bad)/4096-2)
				clear(bad[a*4096 : a*4096+4096])
			}
		}
		path := file(t)
		os.WriteFile(path, bad, 0o600)
		cmd := exec.Command(os.Args[0], "-test.run=TestADamagedFileEndsNoProcessThatPuts$")
		cmd.Env = append(os.Environ(), "BOLTSTORE_DAMAGED="+path, "GORACE=atexit_sleep_ms=0") // by default each takes a second to exit
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "STUCK") {
			stuck++
		}
		if err != nil {
			crashed++
			t.Logf("damage %d: %v\n%.1500s", damage, err, out)
		}
	}
	if crashed > 0 || stuck > 0 {
		t.Errorf("of 40 damaged files %d ended the process, and %d a Put that did not return", crashed, stuck)
	}
}
