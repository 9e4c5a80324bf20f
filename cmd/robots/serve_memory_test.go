package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// status is a figure of a process, such as VmHWM, in MiB.
func status(t *testing.T, pid int, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kib >> 10
}

// manyRules is a file of 520 kB, of which crawlers read nearly all.
var manyRules = sync.OnceValue(func() string {
	b := []byte("User-agent: *\n")
	for len(b) < 520000 {
		b = fmt.Appendf(b, "Disallow: /p%d\n", len(b))
	}
	return string(b)
})

// manyPaths are as many URLs as the page shows, of which each is closed by many of manyRules.
func manyPaths() string {
	var b strings.Builder
	for i := range maxPageURLs {
		fmt.Fprintf(&b, "/p%d/x\n", 10000+i*9000)
	}
	return b.String()
}

func formOf(values ...string) string {
	q := url.Values{}
	for i := 0; i < len(values); i += 2 {
		q.Set(values[i], values[i+1])
	}
	return q.Encode()
}

func listOf(n int, text string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text+",", n), ",") + "]"
}

// Whatever is in the bodies that many send at once, and however slowly they take the answers: the memory
// of the service is bounded, and given back. (32 of 8 MiB took 5.6 GB, for as long as the clients liked.)
func TestServeAdmitsMemoryByBytes(t *testing.T) {
	const asJSON, asText, asForm = mediaJSON, "text/plain", "application/x-www-form-urlencoded"
	if !*million { // the race detector has memory of its own, and a busy machine takes minutes
		t.Skip("with -million")
	}
	const clients = 32
	for _, c := range []struct {
		name, path, media, body string
		clients, status         int
	}{
		{"empty URLs", "/v1/match", asJSON, `{"robots":"User-agent: *\nDisallow: /x","urls":` + listOf(2790000, `""`) + `}`, clients, 400},
		{"long URLs", "/v1/match", asJSON, `{"robots":"User-agent: *\nDisallow: /x","urls":` + listOf(10000, `"/`+strings.Repeat("x", 800)+`"`) + `}`, clients, 200},
		{"one long URL", "/v1/match", asJSON, `{"robots":"","urls":["` + strings.Repeat("x", 8e6) + `"]}`, clients, 400},
		{"escapes", "/v1/match", asJSON, `{"urls":["/"],"robots":"` + strings.Repeat(`\u0061`, 1<<20) + `"}`, clients, 200},
		{"many rules", "/v1/match", asJSON, `{"robots":"` + strings.ReplaceAll(manyRules(), "\n", `\n`) + `","urls":` + listOf(9999, `"/"`) + `}`, clients, 200},
		{"short lines", "/v1/lint", asText, strings.Repeat("D:/n\n", 200000), clients, 200},
		{"the page", "/", asForm, formOf("source", "text", "robots", manyRules(), "urls", manyPaths()), clients, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, at := process(t, "--cache=none")
			addr := strings.TrimPrefix(at, "http://")
			var all sync.WaitGroup
			for range c.clients {
				all.Go(func() { slowClient(t, addr, c.path, c.media, c.body, c.status) })
			}
			all.Wait()
			if peak := status(t, cmd.Process.Pid, "VmHWM"); peak > 300 {
				t.Errorf("%d MiB at the peak, want at most 300", peak)
			} else {
				t.Logf("%d MiB at the peak", peak)
			}
			deadline := time.Now().Add(20 * time.Second)
			for status(t, cmd.Process.Pid, "VmRSS") > 64 {
				if time.Now().After(deadline) {
					t.Fatalf("%d MiB are not given back", status(t, cmd.Process.Pid, "VmRSS"))
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// slowClient sends a body, and takes little of the answer.
func slowClient(t *testing.T, addr, path, media, body string, status int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	c.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, media, len(body))
	io.WriteString(c, body)
	in := bufio.NewReaderSize(c, 256)
	res, err := http.ReadResponse(in, nil)
	if err == nil && res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") == "1" { // on a busy machine
		c.Close()
		time.Sleep(time.Second)
		slowClient(t, addr, path, media, body, status)
		return
	}
	if err != nil || res.StatusCode != status {
		t.Errorf("%v, %v, want %d", res, err, status)
		return
	}
	io.CopyN(io.Discard, res.Body, 512)
}

// Many questions of 100 clients, with slow readers, hang-ups and bodies that are too large among them:
// each is answered or refused with a reason, and memory is flat. With -million they are 24,000.
func TestServeUnderAMixedCrowd(t *testing.T) {
	tier.Nightly(t)
	t.Parallel()
	questions := 10
	if *million {
		questions = 240
	}
	cmd, at := process(t, "--cache=none", "--private", siteServer(t, schemaSite))
	addr := strings.TrimPrefix(at, "http://")
	heavy := `{"robots":"User-agent: *\nDisallow: /x","urls":` + listOf(10000, `"/"`) + `}`
	var all sync.WaitGroup
	for client := range 100 {
		all.Go(func() {
			for i := range questions {
				switch (client + i) % 25 {
				case 0:
					slowClient(t, addr, "/v1/match", mediaJSON, heavy, 200)
				case 1:
					c, err := net.Dial("tcp", addr)
					if err != nil {
						t.Error(err)
						return
					}
					io.WriteString(c, "POST /v1/lint HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 999999\r\n\r\nUser-agent: *\n")
					c.Close()
				case 2:
					answered(t, "POST", at+"/v1/lint", "text/plain", strings.Repeat("x", maxText+1), 413)
				case 3:
					answered(t, "POST", at+"/v1/decide", "text/plain", "http://rules.example/a\nhttp://rules.example/private\n", 200)
				case 4:
					answered(t, "POST", at, "application/x-www-form-urlencoded", formOf("source", "text", "robots", "Disallow: /"), 200)
				default:
					answered(t, "GET", at+"/v1/decide?url=http://rules.example/"+strconv.Itoa(i), "", "", 200)
				}
			}
		})
	}
	all.Wait()
	peak := status(t, cmd.Process.Pid, "VmHWM")
	t.Logf("%d MiB at the peak", peak)
	if peak > 300 {
		t.Errorf("%d MiB at the peak, want at most 300", peak)
	}
}

// largeFiles are files of 500 kB that take most, for each byte, of what reads and keeps them.
var largeFiles = sync.OnceValue(func() (files []string) {
	for _, c := range []struct{ head, line string }{
		{"User-agent: *\n", "Allow:/\n"},
		{"User-agent: *\n", "Allow:" + strings.Repeat("\x80", 16) + "\n"}, // kept as written and percent-encoded
		{"", "User-agent:a\nAllow:/\n"},
		{"User-agent: *\nDisallow: /", "*"}, // a rule as long as the file decides
		{"User-agent: *\nDisallow: /", "x"},
	} {
		files = append(files, c.head+strings.Repeat(c.line, 500000/len(c.line))+"\n")
	}
	return files
})

// A thousand sites whose robots.txt are as large as crawlers read, asked about at once. (In a stream they took 1.9 GB, and
// in eight 6.5 GB: what was read waited for its place in the cache, and for its line.)
func TestServeHoldsFewLargeFiles(t *testing.T) {
	tier.Nightly(t)
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimSuffix(r.Host, ".example"))
		files := largeFiles()
		io.WriteString(w, files[n%len(files)])
	})
	for _, c := range []struct {
		name           string
		streams, lines int // of as many sites
	}{{"questions", 0, 1000}, {"a stream", 1, 1000}, {"streams", 8, 500}} {
		t.Run(c.name, func(t *testing.T) {
			cmd, at := process(t, "--cache=none", "--private", to)
			var all sync.WaitGroup
			for i := range c.lines {
				if c.streams == 0 {
					all.Go(func() { answered(t, "GET", fmt.Sprintf("%s/v1/decide?url=http://%d.example/", at, i), "", "", 200) })
				}
			}
			for stream := range c.streams {
				all.Go(func() {
					var list strings.Builder
					for i := range c.lines {
						fmt.Fprintf(&list, "http://%d.example/\n", stream*c.lines+i)
					}
					answered(t, "POST", at+"/v1/decide", "text/plain", list.String(), 200)
				})
			}
			all.Wait()
			peak := status(t, cmd.Process.Pid, "VmHWM")
			t.Logf("%d MiB at the peak", peak)
			if peak > 300 {
				t.Errorf("%d MiB at the peak, want at most 300", peak)
			}
		})
	}
}

// The same sites in a list and on a command line, where the answer of the first comes late. (They took 700 MiB and 2 GB: a
// line kept the rules of its site until the lines before it were answered.)
func TestListsHoldFewLargeFiles(t *testing.T) {
	tier.Nightly(t)
	const sites = 1000
	for _, c := range []struct {
		name  string
		args  []string
		lists int // how often each site is in the list of standard input; 0: it is an argument
		late  int // as many others are asked for before the first answers
	}{
		{"filter", []string{"filter", "--json", "--refused=/dev/stdout"}, 1, 500},
		{"filter behind a slow site", []string{"filter", "--json", "--refused=/dev/stdout"}, 1, sites - 1},
		{"filter twice", []string{"filter", "--json", "--refused=/dev/stdout"}, 2, sites - 1},
		{"check", []string{"check", "--json"}, 0, 0},
		{"check behind a slow site", []string{"check", "--json"}, 0, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked sync.WaitGroup // before the first answers
			asked.Add(c.late)
			var others atomic.Int64
			measured := make(chan struct{})
			to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
				n, err := strconv.Atoi(strings.TrimSuffix(r.Host, ".example"))
				switch files := largeFiles(); {
				case err != nil: // the last one, which keeps the process waiting
					<-measured
					return
				case n == 0:
					asked.Wait()
				case others.Add(1) <= int64(c.late):
					defer asked.Done()
					fallthrough
				default:
					io.WriteString(w, files[n%len(files)])
				}
			})
			var list []string
			for i := range sites * max(c.lists, 1) {
				list = append(list, fmt.Sprintf("http://%d.example/", i%sites))
			}
			answers := len(list)
			list = append(list, "http://last.example/")
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Args = append([]string{"robots", to}, c.args...)
			if c.lists == 0 {
				cmd.Args = append(cmd.Args, list...)
			} else {
				cmd.Stdin = strings.NewReader(strings.Join(list, "\n"))
			}
			proc.Own(t, cmd)
			stdout, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			for i := range answers {
				if _, err := out.ReadString('\n'); err != nil {
					t.Errorf("%d answers, want %d: %v", i, answers, err)
					break
				}
			}
			peak := status(t, cmd.Process.Pid, "VmHWM")
			close(measured)
			io.Copy(io.Discard, out)
			cmd.Wait()
			t.Logf("%d MiB at the peak, %v of processor time", peak, cmd.ProcessState.UserTime())
			if peak > 300 {
				t.Errorf("%d MiB at the peak, want at most 300", peak)
			}
		})
	}
}

// answered checks that a question has an answer of a status, or a refusal that says why and when to come
// again.
func answered(t *testing.T, method, url, media, body string, status int) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", media)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	busy := res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" && bytes.Contains(data, []byte("detail"))
	if err != nil || res.StatusCode != status && !busy {
		t.Errorf("%s %s: got %s, %v, want %d: %.200s", method, url, res.Status, err, status, data)
	}
}
