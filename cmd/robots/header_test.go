package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// A field for one site goes with its robots.txt and its pages, and over no redirect to another.
func TestAHeaderIsForItsSiteAlone(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got[r.Host+r.URL.Path] = r.Header.Get("X-Key")
		mu.Unlock()
		switch {
		case r.Host == "shop.example" && r.URL.Path == "/robots.txt":
			http.Redirect(w, r, "http://cdn.example/rules.txt", http.StatusFound)
		case r.URL.Path == "/rules.txt":
			w.Write([]byte("User-agent: *\nAllow: /\n"))
		case r.Host == "shop.example" && r.URL.Path == "/a":
			http.Redirect(w, r, "http://other.example/b", http.StatusFound)
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		}
	})
	file := written(t, "# of the shop\n\nhttp://shop.example X-Key: abc\n")
	want := map[string]string{
		"shop.example/robots.txt": "abc", "cdn.example/rules.txt": "",
		"shop.example/a": "abc", "other.example/robots.txt": "", "other.example/b": "",
	}
	for _, flag := range []string{"http://shop.example X-Key: abc", "@" + file} {
		clear(got)
		stdoutOf(t, "", "check", "--header", flag, to, "http://shop.example/a")
		stdoutOf(t, "", "page", "--header", flag, to, "http://shop.example/a")
		if !maps.Equal(got, want) {
			t.Errorf("page --header %q: the sites got %v, want %v", flag, got, want)
		}
		clear(got)
		v := startProxy(t, "--private", "--header", flag, to)
		v.do("GET", "http://shop.example/a")
		v.do("TRACE", "http://shop.example/t") // the answer to which would show it to the client
		if got["shop.example/robots.txt"] != "abc" || got["shop.example/a"] != "abc" || got["cdn.example/rules.txt"] != "" || got["shop.example/t"] != "" {
			t.Errorf("proxy --header %q: the sites got %v, want abc at the first two of shop.example alone", flag, got)
		}
	}
}

// What is asked for beside robots.txt is asked for as robots.txt is.
func TestLintAsksForTheMisspeltNameAsForTheOther(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got[r.URL.Path] = r.UserAgent() + " " + r.Header.Get("X-Key")
		mu.Unlock()
		http.NotFound(w, r)
	})
	stdoutOf(t, "", "lint", "--user-agent=ExampleBot/1.0", "--header=http://shop.example X-Key: abc", to, "http://shop.example")
	if want := map[string]string{"/robots.txt": "ExampleBot/1.0 abc", "/robot.txt": "ExampleBot/1.0 abc"}; !maps.Equal(got, want) {
		t.Errorf("the site got %v, want %v", got, want)
	}
}

// A file that does not come is waited for no longer than the user likes.
func TestInterruptedWhileAFileIsRead(t *testing.T) {
	for _, args := range [][]string{{"lint", "-"}, {"lint", "--fix", "-"}, {"match", "--robots=-", "/a"}} {
		in, more := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		defer time.AfterFunc(10*time.Second, func() { more.Close() }).Stop()
		if status := run(ctx, args, shell.Streams{In: in, Out: io.Discard, Err: t.Output()}); status != shell.ExitInterrupted {
			t.Errorf("%q: status %d, want %d", args, status, shell.ExitInterrupted)
		}
		more.Close()
	}
}

// sign check tells of requests that fail, and an interruption is none.
func TestInterruptedSignCheck(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.pem")
	stdoutOf(t, "", "sign", "keygen", key)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	args := []string{"sign", "check", "https://127.0.0.1:1/", "--sign-key=" + key, "--sign-agent=https://127.0.0.1:1"}
	if status := run(ctx, args, shell.Streams{Out: io.Discard, Err: t.Output()}); status != shell.ExitInterrupted {
		t.Errorf("status %d, want %d", status, shell.ExitInterrupted)
	}
}
