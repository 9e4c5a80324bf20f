package integration_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/fetch/ftp"
	"github.com/robotsgate/robotsgate/integration_test/internal/origins"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// vsftpdSettings are those of every row. %[1]s is the port, and %[2]s what is served.
const vsftpdSettings = `
listen=YES
listen_address=127.0.0.1
listen_port=%[1]s
background=NO
run_as_launching_user=YES
seccomp_sandbox=NO
anonymous_enable=YES
anon_root=%[2]s
`

// startVsftpd serves dir over FTP and returns its URL.
func startVsftpd(t *testing.T, dir, settings string) string {
	t.Helper()
	tier.Gate(t)
	program, err := exec.LookPath("vsftpd")
	if err != nil {
		t.Skip("vsftpd is not in the PATH: install it, or add /usr/sbin to the PATH, to run this test")
	}
	port := proc.FreePort(t)
	conf := filepath.Join(t.TempDir(), "vsftpd.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, vsftpdSettings+settings, port, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	proc.Serve(t, exec.Command(program, conf), "127.0.0.1:"+port)
	return "ftp://127.0.0.1:" + port
}

// ftpRoot is a directory to serve with a robots.txt, unless that is "".
func ftpRoot(t *testing.T, robots string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "files")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if robots == "" {
		return dir
	}
	if err := os.WriteFile(filepath.Join(dir, "robots.txt"), []byte(robots), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A server as sites have it, in the ways that it can be set up.
func TestVsftpd(t *testing.T) {
	aside(t)
	long := origins.File + strings.Repeat("# more of it\n", 100_000)
	for _, row := range []struct {
		name, robots, settings string
		status                 int
		err                    string
		truncated              bool
	}{
		{"as installed", origins.File, "", 200, "", false},
		{"no password", origins.File, "no_anon_password=YES\n", 200, "", false},
		{"PASV, another address named", origins.File, "cmds_denied=EPSV\npasv_address=192.0.2.1\n", 200, "", false},
		{"a long greeting", origins.File, "ftpd_banner=" + strings.Repeat("welcome ", 100) + "\n", 200, "", false},
		{"a long file", long, "", 200, "", true},
		{"no file", "", "", 404, "", false},
		{"a file that is forbidden", origins.File, "deny_file=robots.txt\n", 404, "", false},
		{"no anonymous users", origins.File, "anonymous_enable=NO\nlocal_enable=YES\n", 0, "530", false},
		{"no downloads", origins.File, "download_enable=NO\n", 404, "", false},
		{"no data connections", origins.File, "pasv_enable=NO\n", 0, "550", false},
		{"TYPE refused", origins.File, "cmds_denied=TYPE\n", 0, "reply to TYPE: 550", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			aside(t)
			site := startVsftpd(t, ftpRoot(t, row.robots), row.settings)
			wire := new(http.Transport)
			wire.RegisterProtocol("ftp", new(ftp.Transport))
			f := fetch.Fetcher{Transport: wire}
			r, err := f.Fetch(t.Context(), originOf(t, site), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != row.status || !strings.Contains(fmt.Sprint(r.Err), row.err) || r.Truncated != row.truncated {
				t.Errorf("got %v, Truncated %v", r, r.Truncated)
			}
			if row.status == 200 && !strings.HasPrefix(string(r.Body), row.robots[:min(len(row.robots), 500<<10)]) {
				t.Errorf("got %d bytes, %.100q", len(r.Body), r.Body)
			}
		})
	}
}

// Every page of ftp is decided on by the robots.txt that the server has. What FTP clients make another path of is not
// sent.
func TestTheGateOverFTP(t *testing.T) {
	site := startVsftpd(t, ftpRoot(t, "User-agent: *\nDisallow: /private\n"), "")
	base := &http.Transport{}
	var sent pathsSent
	base.RegisterProtocol("ftp", &sent)
	gate := &client.Transport{Base: base, UserAgent: "ExampleBot/1.0"}
	defer gate.Shutdown(t.Context())
	c := &http.Client{Transport: gate}
	for path, want := range map[string]string{"/public": "<nil>", "/private/x": "disallow", "/%2Fprivate/x": "clients differ"} {
		res, err := c.Get(site + path)
		if err == nil {
			res.Body.Close()
		}
		if !strings.Contains(fmt.Sprint(err), want) || (err != nil) != errors.Is(err, client.ErrNotSent) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	if sent != "/public" {
		t.Errorf("sent %q", sent)
	}
}

// pathsSent answers every request but that for robots.txt, and keeps its path.
type pathsSent string

func (s *pathsSent) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/robots.txt" {
		return new(ftp.Transport).RoundTrip(r)
	}
	*s += pathsSent(r.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}
