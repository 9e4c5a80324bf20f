package gatebench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
)

// Lines of the list that BenchmarkFilter filters, and their origins.
const (
	filterLines   = 1_000_000
	filterOrigins = 2_000
)

// BenchmarkFilter is "robots filter" on a million lines of 2,000 origins, beside "wc -l" on the
// same file: once with a --cache that has each robots.txt, once without one, when the origins'
// servers are this process.
//
//	go test -run XXX -bench Filter -benchtime 3x -count 3
func BenchmarkFilter(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "# %s\nUser-agent: *\nDisallow: /private/\n", r.Host)
	}))
	defer server.Close()
	dir := b.TempDir()
	list, bin, file := filepath.Join(dir, "urls"), filepath.Join(dir, "robots"), filepath.Join(dir, "robots.db")
	writeList(b, list)
	build(b, bin, "github.com/robotsgate/robotsgate/cmd/robots")
	filter := func(more ...string) func() time.Duration {
		args := []string{bin, "filter", "--connect-to", "::" + server.Listener.Addr().String()}
		return reading(b, list, append(args, more...)...)
	}
	filter("--cache", file)()
	for _, c := range []struct {
		name string
		side func() time.Duration
	}{
		{"warm", filter("--cache", file)},
		{"cold", filter()},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took time.Duration
			sides.Compare(b, filterLines, func() time.Duration {
				d := c.side()
				took += d
				return d
			}, reading(b, list, "wc", "-l"))
			b.ReportMetric(float64(b.N)*filterLines/took.Seconds(), "lines/s")
		})
	}
}

// writeList writes URLs, every tenth of which is refused, in random order of the origins.
func writeList(b *testing.B, name string) {
	var text bytes.Buffer
	random := rand.New(rand.NewPCG(3, 4))
	for i := range filterLines {
		path := "public"
		if i%10 == 0 {
			path = "private"
		}
		fmt.Fprintf(&text, "http://site%d.example/%s/page-%d?from=%d\n", random.IntN(filterOrigins), path, i, i%10)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
}

// reading is a process that reads the list as its standard input.
func reading(b *testing.B, list string, command ...string) func() time.Duration {
	return func() time.Duration {
		in, err := os.Open(list)
		if err != nil {
			b.Fatal(err)
		}
		defer in.Close()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdin = in
		begin := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
}
