package gatebench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/internal/sides"
)

// programs are what a process of the command is measured beside an empty one with: first the
// command itself, with and without a C library to load, then programs that only import what it
// needs, which is its floor.
var programs = []struct{ name, imports string }{
	{"robots", ""},
	{"robots-static", ""},
	{"imports-net-http", "net/http"},
	{"imports-cobra", "github.com/spf13/cobra"},
	{"imports-all", imports},
	{"imports-prometheus", imports + " github.com/prometheus/client_golang/prometheus/promhttp"},
}

const imports = "net/http github.com/spf13/cobra github.com/robotsgate/robotsgate/cache/dirstore " +
	"github.com/robotsgate/robotsgate/cache/redisstore"

// BenchmarkProcess is a process of "robots match", on one file and one URL, beside one that
// does nothing: its time of the processor, in user and kernel mode.
//
//	go test -run XXX -bench Process -benchtime 60x -count 3
func BenchmarkProcess(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "robots.txt")
	if err := os.WriteFile(file, []byte(robots), 0o600); err != nil {
		b.Fatal(err)
	}
	empty := process(b, program(b, dir, "empty", ""))
	for _, p := range programs {
		b.Run(p.name, func(b *testing.B) {
			side := func() func() time.Duration {
				if p.imports != "" {
					return process(b, program(b, dir, p.name, p.imports))
				}
				bin := filepath.Join(dir, "robots")
				if p.name == "robots-static" {
					b.Setenv("CGO_ENABLED", "0")
				}
				build(b, ".", bin, "github.com/robotsgate/robotsgate/cmd/robots")
				return process(b, bin, "match", "--robots", file, "/articles/page.html")
			}()
			sides.Compare(b, 1, side, empty)
		})
	}
}

// program builds one that does nothing but import packages.
func program(b *testing.B, dir, name, imports string) string {
	text := "package main\n"
	for path := range strings.FieldsSeq(imports) {
		text += "import _ \"" + path + "\"\n"
	}
	src, bin := filepath.Join(dir, name+".go"), filepath.Join(dir, name)
	if err := os.WriteFile(src, []byte(text+"func main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	build(b, filepath.Join("..", "..", "cmd", "robots"), bin, src)
	return bin
}

func build(b *testing.B, dir, bin, what string) {
	cmd := exec.Command("go", "build", "-o", bin, what)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

func process(b *testing.B, bin string, args ...string) func() time.Duration {
	return func() time.Duration {
		cmd := exec.Command(bin, args...)
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
}
