package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// That other files take the memory is no failure of the origin that waits for it; a usual file
// waits for none.
func TestAFileThatWaitsForMemoryIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "User-agent: *\nDisallow: /p\n" + strings.Repeat("#", 20<<10)
		f := fetch.Fetcher{MaxMemory: 1, Retries: 1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			res := &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: nil}
			switch name, _, _ := strings.Cut(req.URL.Hostname(), "."); name {
			case "stalls":
				r, w := io.Pipe()
				go func() {
					io.WriteString(w, long)
					<-req.Context().Done()
					w.CloseWithError(req.Context().Err())
				}()
				res.Body = r
			case "breaks":
				res.Body = io.NopCloser(io.MultiReader(strings.NewReader(long), brokenReader{}))
			case "long":
				res.Body = io.NopCloser(strings.NewReader(long))
			default:
				res.Body = io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /p\n"))
			}
			return res, nil
		})}
		ask := func(host string) (string, time.Duration) {
			start := time.Now()
			r, err := f.Fetch(t.Context(), originOf(t, "http://"+host+".test"), nil)
			switch {
			case errors.Is(err, fetch.ErrBusy) && r == nil:
				return "no turn", time.Since(start)
			case err != nil:
				return err.Error(), time.Since(start)
			case r.Err != nil:
				return "unreachable", time.Since(start)
			}
			return fmt.Sprint(len(r.Body)), time.Since(start)
		}
		expect := func(host, want string, least, most time.Duration) {
			t.Helper()
			if got, took := ask(host); got != want || took < least || took > most {
				t.Errorf("%s: %s after %v, want %s in %v to %v", host, got, took, want, least, most)
			}
		}
		expect("breaks", "unreachable", 0, time.Second) // twice, and each gives back what it took
		expect("long", fmt.Sprint(len(long)), 0, 0)
		var stalled sync.WaitGroup
		stalled.Go(func() { expect("stalls", "unreachable", 15*time.Second, 31*time.Second) })
		time.Sleep(time.Second)
		expect("usual", "27", 0, 0)
		expect("long", fmt.Sprint(len(long)), 13*time.Second, 15*time.Second) // once the other's time is over
		stalled.Wait()
		for range 5 { // what a site did counts, whichever of the two has the memory at the second try
			var both sync.WaitGroup
			both.Go(func() { expect("stalls", "unreachable", 15*time.Second, 31*time.Second) })
			both.Go(func() { time.Sleep(time.Second); ask("stalls.other") })
			both.Wait()
		}

		stalled.Go(func() { ask("stalls") })
		time.Sleep(time.Millisecond)
		other := make(chan string)
		go func() {
			got, _ := ask("stalls") // waits behind it, and then stalls itself
			other <- got
		}()
		if got := <-other; got != "no turn" {
			t.Errorf("a file that waited for memory: %s, want no turn", got)
		}
		stalled.Wait()
		expect("long", fmt.Sprint(len(long)), 0, 0)
	})
}

// What zero and negative mean, and that one file is read whatever the bound.
func TestMaxMemoryOfEveryValue(t *testing.T) {
	for most, want := range map[int64]int32{0: 64 << 20 / (fetch.MaxBytes + 1), 1: 1, -1: 200} {
		synctest.Test(t, func(t *testing.T) {
			var admitted atomic.Int32
			f := fetch.Fetcher{MaxMemory: most, Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				res := response(200, "")
				long := strings.NewReader(strings.Repeat("#", 16<<10))
				res.Body = io.NopCloser(io.MultiReader(long, readFunc(func([]byte) (int, error) {
					admitted.Add(1)
					<-req.Context().Done()
					return 0, req.Context().Err()
				})))
				return res, nil
			})}
			ctx, cancel := context.WithCancel(t.Context())
			var fetches sync.WaitGroup
			for i := range 200 {
				fetches.Go(func() { f.Fetch(ctx, originOf(t, fmt.Sprintf("http://h%d.test", i)), nil) })
			}
			synctest.Wait()
			if n := admitted.Load(); n != want {
				t.Errorf("MaxMemory %d: %d long files are read at once, want %d", most, n, want)
			}
			cancel()
			fetches.Wait()
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }
