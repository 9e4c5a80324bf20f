package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// watchProxy is startProxy with a listener for what watches it.
func watchProxy(t *testing.T, args ...string) (v *relay, watch string) {
	t.Helper()
	v = startProxy(t, append([]string{"--metrics-listen=127.0.0.1:0"}, args...)...)
	return v, v.watch
}

// see asks what watches, and returns the status and the text.
func see(t *testing.T, at string, fields ...string) (int, string) {
	t.Helper()
	res, text := talk(t, http.DefaultTransport, "GET", at, "", fields...)
	return res.StatusCode, text
}

// series reads the values of /metrics that a prefix has.
func series(t *testing.T, watch, prefix string) map[string]float64 {
	t.Helper()
	_, text := see(t, watch+"/metrics")
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, prefix) {
			values[strings.TrimPrefix(name, prefix)], _ = strconv.ParseFloat(value, 64)
		}
	}
	return values
}

// What happens is counted by what it was, in words of ours alone.
func TestProxyCountsItsAnswers(t *testing.T) {
	site := &origin{robots: map[string]string{"rules.example.com": "User-agent: *\nDisallow: /private\n"}}
	sites := bothSites(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "down.") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		site.ServeHTTP(w, r)
	})
	v, watch := watchProxy(t, append(sites, "--private")...)
	const name = "robots_proxy_answers_total"
	before := series(t, watch, name)
	if len(before) != len(proxy.Kinds) {
		t.Errorf("got %v, want one for each of %q", before, proxy.Kinds)
	}
	v.do("GET", "http://rules.example.com/a")
	v.do("GET", "http://rules.example.com/private")
	v.do("GET", "http://rules.example.com/private")
	v.do("GET", "http://down.example.com/")
	v.do("GET", "http://rules.example.com:22/")
	v.connectTo("rules.example.com:443", "")
	want := map[string]float64{"passed": 1, "rule": 2, "unreachable": 1, "target": 1, "tunnel": 1}
	for kind, n := range series(t, watch, name) {
		if kind = strings.TrimSuffix(strings.TrimPrefix(kind, `{kind="`), `"}`); n != want[kind] {
			t.Errorf("%s: %v, want %v", kind, n, want[kind])
		}
	}
	for _, some := range []string{"go_goroutines", "process_resident_memory_bytes", "process_cpu_seconds_total",
		"robots_cache_origins", "robots_proxy_underway", `robots_fetches_total{outcome="rules"}`} {
		if got := series(t, watch, some); len(got) != 1 {
			t.Errorf("%s: got %v, want one", some, got)
		}
	}
	readme := strings.Join(strings.Fields(string(read(t, "README.md"))), " ")
	if list := "`" + strings.Join(proxy.Kinds, "`, `") + "`"; !strings.Contains(readme, list) {
		t.Errorf("README.md does not have %s", list)
	}
}

func TestProxyIsWatchedByThoseWhoMay(t *testing.T) {
	_, open := watchProxy(t)
	_, closed := watchProxy(t, "--token-file="+written(t, "0123456789abcdef\n"))
	for _, c := range []struct {
		at, field string
		status    int
	}{
		{open + "/healthz", "", 200}, {open + "/readyz", "", 200}, {open + "/metrics", "", 200}, {open + "/", "", 404},
		{open + "/metrics", "Host: rebound.example", 421}, {open + "/healthz", "Host: rebound.example", 421},
		{closed + "/healthz", "", 200}, {closed + "/readyz", "", 200}, {closed + "/metrics", "", 401},
		{closed + "/metrics", "Authorization: Bearer 0123456789abcdef", 200},
		{closed + "/metrics", "Authorization: Bearer 0123456789abcdeg", 401},
	} {
		if status, text := see(t, c.at, c.field); status != c.status {
			t.Errorf("%s %s: %d %s, want %v", c.at, c.field, status, text, c.status)
		}
	}
	if status, said := fails(t, "proxy", "--cache=none", "--listen=127.0.0.1:0", "--metrics-listen=0.0.0.0:0"); status != shell.ExitUsage {
		t.Errorf("beyond loopback: status %d: %s, want %d", status, said, shell.ExitUsage)
	}
}

// While what is under way goes on to its end, the proxy is alive and not ready.
func TestProxyIsNotReadyWhileItDrains(t *testing.T) {
	began, release := make(chan bool), make(chan bool)
	v, watch := watchProxy(t, "--private", "--drain=20s", siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			began <- true
			<-release
		}
	}))
	done := make(chan bool)
	go func() {
		v.do("GET", "http://s.example/slow")
		close(done)
	}()
	<-began
	if status, text := see(t, watch+"/readyz"); status != 200 {
		t.Errorf("before: %d %s, want 200", status, text)
	}
	v.stop()
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200} {
		if status, text := see(t, watch+path); status != want {
			t.Errorf("%s: %d %s, want %v", path, status, text, want)
		}
	}
	close(release)
	<-done
}
