package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// pythonClient asks as its arguments say, with nothing but the standard library.
const pythonClient = `
import sys, urllib.error, urllib.request
method, url, media, body = sys.argv[1:]
headers = {"Content-Type": media} if media else {}
request = urllib.request.Request(url, body.encode() if body else None, headers, method=method)
try:
    answer = urllib.request.urlopen(request, timeout=20)
except urllib.error.HTTPError as error:
    answer = error
sys.stdout.write("%d\n" % answer.status + answer.read().decode())
`

// Real programs get what the service promises.
func TestServeAnswersRealClients(t *testing.T) {
	tier.Nightly(t)
	t.Parallel()
	for name, command := range map[string]func(method, url, media, body string) []string{
		"curl": func(method, url, media, body string) []string {
			args := []string{"curl", "-sS", "--noproxy", "*", "-m", "20", "-X", method, url, "-w", "%{stderr}%{http_code}"}
			if media != "" {
				args = append(args, "-H", "Content-Type: "+media, "--data-binary", body)
			}
			return args
		},
		"python3": func(method, url, media, body string) []string {
			return []string{"python3", "-c", pythonClient, method, url, media, body}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tier.Nightly(t)
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("%v: apt-get install %s", err, name)
			}
			v := startServe(t, serve.UsualLimits, "--private", siteServer(t, schemaSite))
			ask := func(method, path, media, body string) (status, answer string) {
				args := command(method, v.url+path, media, body)
				cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
				var errs strings.Builder
				cmd.Stderr = &errs
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, &errs)
				}
				if name == "curl" {
					return errs.String(), string(out)
				}
				status, answer, _ = strings.Cut(string(out), "\n")
				return status, answer
			}
			for _, c := range []struct{ method, path, media, body, status, says string }{
				{"GET", "/v1/decide?url=http://rules.example/private", "", "", "200", `"allowed":false,"covers":"url","reason":"rule","line":2`},
				{"GET", "/v1/decide?as=all&url=http://rules.example/", "", "", "200", `"dialect":"original","dialect_by":"as","fallback":null,"allowed":true`},
				{"GET", "/v1/decide", "", "", "400", `"parameter":"url"`},
				{"POST", "/v1/decide", mediaNDJSON, "http://rules.example/\n{\"url\":\"http://down.example/\"}\n", "200",
					`"allowed":false,"covers":"url","reason":"unreachable"`},
				{"GET", "/v1/robots?origin=http://rules.example", "", "", "200", `"sitemaps":["https://rules.example/s.xml"]`},
				{"POST", "/v1/match", mediaJSON, `{"robots":"User-agent: *\nDisallow: /x","urls":["/x"]}`, "200",
					`"rule":"Disallow: /x"`},
				{"POST", "/v1/lint", "text/plain", "Disallow /x\n", "200", `"id":"RT101"`},
				{"POST", "/v1/turns", mediaJSON, `{"url":"http://rules.example/private"}`, "200", `"turn":null`},
				{"GET", "/v1/openapi.json", "", "", "200", `"openapi":"3.1.0"`},
				{"GET", "/readyz", "", "", "200", "ok"},
				{"GET", "/metrics", "", "", "200", "robots_cache_origins 2\n"},
				{"PUT", "/v1/lint", "text/plain", "x", "405", "takes no PUT"},
			} {
				status, answer := ask(c.method, c.path, c.media, c.body)
				if status != c.status || !strings.Contains(answer, c.says) {
					t.Errorf("%s %s: %s %s, want %s %s", c.method, c.path, status, answer, c.status, c.says)
				}
			}
			var a given
			_, answer := ask("POST", "/v1/turns", mediaJSON, `{"url":"http://rules.example/"}`)
			if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Turn == nil {
				t.Fatal(answer)
			}
			for _, want := range []string{"204", "404"} {
				if status, answer := ask("POST", "/v1/turns/"+*a.Turn, mediaJSON, `{"status":200}`); status != want {
					t.Errorf("the end of a turn: %s %s, want %s", status, answer, want)
				}
			}
		})
	}
}
