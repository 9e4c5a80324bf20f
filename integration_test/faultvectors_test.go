package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

type faultVector struct {
	ID       string `json:"id"`
	Server   string `json:"server"`
	Expected struct {
		Verdict    origins.Verdict `json:"verdict"`
		Google     origins.Verdict `json:"verdict_google"`
		MaxSeconds float64         `json:"max_seconds"`
		MaxBytes   int64           `json:"max_bytes_read"`
		Retries    string          `json:"retries"`
	} `json:"expected"`
}

// servers has what the "server" of each vector says, as a site.
var servers = map[string]func(name string) []*origins.Origin{
	"v01-404":                  origins.Answer(404, "<html>"+filler(1000)+"</html>"),
	"v02-403-json":             origins.Answer(403, `{"error":"forbidden"}`, "Content-Type: application/json"),
	"v03-502":                  origins.Answer(502, "<html>Bad Gateway</html>"),
	"v04-503-retry-after-3600": origins.Answer(503, "", "Retry-After: 3600"),
	"v05-429-plain":            origins.Answer(429, ""),
	"v06-301-to-https": func(name string) []*origins.Origin {
		return origins.InTurn(answer(301, "", "Location: https://"+name+"/robots.txt"), answer(200, origins.File))(name)
	},
	"v07-three-hosts":      origins.Hops(2, 302, true),
	"v08-twenty-redirects": origins.Hops(20, 301, false),
	"v09-redirect-to-ftp":  origins.Answer(302, "", "Location: ftp://a.test/robots.txt"),
	"v10-302-no-location":  origins.Answer(302, ""),
	"v11-304-unasked":      origins.InTurn(origins.Program{origins.Write(origins.Head("HTTP/1.1 304 Not Modified")), origins.Close}),
	"v12-status-999":       origins.Answer("HTTP/1.1 999 Denied", "<html>Denied</html>"),
	"v13-bom":              origins.Answer(200, "\xEF\xBB\xBF"+origins.File),
	"v14-json-200":         origins.Answer(200, `{"robots":"none"}`, "Content-Type: application/json"),
	"v15-cr-only":          origins.Answer(200, "User-agent: *\rDisallow: /private\r"),
	"v16-soft-404":         origins.Answer(200, "<html>Page not found</html>", "Content-Type: text/html"),
	"v17-nul-lines":        origins.Answer(200, "User-agent: *\n\x00\x00\x00\nDisallow: /private\n"),
	"v18-2mb-file":         origins.Answer(200, origins.File+filler(2<<20)),
	"v19-truncated":        origins.InTurn(origins.Program{origins.Write(origins.Head("HTTP/1.1 200 OK", "Content-Length: 1000") + origins.File), origins.Close}),
	"v20-accept-silence":   origins.InTurn(origins.Program{origins.Hang}),
	"v21-body-drip":        origins.InTurn(origins.Program{origins.Write(origins.Head("HTTP/1.1 200 OK", "Content-Length: 1000")), origins.Drip(filler(20), time.Second)}),
	"v22-header-flood":     origins.InTurn(origins.Program{origins.Write("HTTP/1.1 200 OK\r\n"), origins.Flood("X-Y: z\r\n")}),
	"v23-gzip-bomb": func(name string) []*origins.Origin {
		return origins.Answer(200, origins.Bomb(), "Content-Encoding: gzip")(name)
	},
	"v24-brotli-unasked": origins.Answer(200, string(make([]byte, 100)), "Content-Encoding: br"),
	"v25-rst-on-accept":  origins.OnAccept(origins.Program{origins.Reset}),
	"v26-expired-cert":   origins.WithTLS(origins.TLSExpired),
	"v27-nxdomain":       origins.Nowhere,
	"v28-flap-once":      origins.OnAccept(origins.Program{origins.Reset}, nil),
}

func answer(status any, body string, fields ...string) origins.Program {
	return origins.Program{origins.Write(origins.Reply(status, body, fields...))}
}

// filler returns n bytes of comment lines.
func filler(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '#'
		if i%80 == 79 {
			b[i] = '\n'
		}
	}
	return string(b)
}

// TestFaultVectors runs the shared cases in the configuration that their bounds assume:
// each in both dialects, without retries where the case counts on that, else with one and
// with as many as there are by default.
func TestFaultVectors(t *testing.T) {
	tier.Gate(t)
	aside(t)
	n, err := origins.Start(2)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	type row struct {
		faultVector
		name string
		*visit
		want origins.Verdict
	}
	var rows []row
	var visits []*visit
	all := vectors.Read[faultVector](t, "vectors/faults.jsonl", "source")
	for _, f := range all {
		site := servers[f.ID]
		if site == nil {
			t.Errorf("%s is not served", f.ID)
			continue
		}
		retries := map[string][]int{"no": {-1}, "yes": {1, 0}}[f.Expected.Retries]
		for _, d := range []policy.Dialect{policy.RFC9309, policy.Google} {
			want := f.Expected.Verdict
			if d == policy.Google && f.Expected.Google != "" {
				want = f.Expected.Google
			}
			timeout := 6 * time.Second
			if want != origins.Disallow {
				timeout = unhurried
			}
			for _, r := range retries {
				name := fmt.Sprintf("%s.d%d.r%d", f.ID, d, r+1)
				v := &visit{
					https: f.ID == "v26-expired-cert", sites: site(name + ".test"),
					fetcher: &fetch.Fetcher{Timeout: timeout, Retries: r}, dialect: d,
				}
				visits = append(visits, v)
				rows = append(rows, row{f, name, v, want})
			}
		}
	}
	late := proc.WatchMachine()
	run(n, visits)
	slack := 4 * late().Seconds()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			most, _ := r.check(t, r.want)
			if limit := map[string]int{"no": 1, "yes": 2}[r.Expected.Retries]; most > limit && r.ID != "v06-301-to-https" { // whose two URLs differ in their scheme
				t.Errorf("%d requests for one URL, want at most %d", most, limit)
			}
			limit := r.Expected.MaxSeconds
			if !*full { // on a busy machine; what waits for nothing until its time-out is still noticed
				limit *= 2.5
			}
			if r.took.Seconds() > limit+slack || r.bytes > r.Expected.MaxBytes {
				t.Errorf("took %v and %d bytes, want at most %v s and %d", r.took, r.bytes, limit, r.Expected.MaxBytes)
			}
			if r.ID == "v08-twenty-redirects" {
				if _, all := r.check(t, r.want); all != 6 {
					t.Errorf("%d requests, want 6", all)
				}
			}
		})
	}
	if len(all) != 28 {
		t.Errorf("ran %d vectors, want 28", len(all))
	}
}
