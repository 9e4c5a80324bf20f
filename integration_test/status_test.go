package integration_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// verdict is what an answer for robots.txt means for the pages of its origin.
type verdict int

const (
	byRules verdict = iota // /public is sent, /private refused by its rule
	allowAll
	disallowAll
)

// check asks for both pages and for robots.txt itself, which is always allowed.
func check(t *testing.T, rt http.RoundTripper, origin string, want verdict) {
	t.Helper()
	for _, path := range []string{"/public", "/private"} {
		sent, refusal := get(t, rt, origin+path)
		wantSent := want == allowAll || want == byRules && path == "/public"
		if sent != wantSent {
			t.Errorf("%s: sent = %t, want %t (%v)", path, sent, wantSent, refusal)
			continue
		}
		wantReason := policy.ReasonRule
		if want == disallowAll {
			wantReason = policy.ReasonUnreachable
		}
		if !sent && refusal.Decision.Reason != wantReason {
			t.Errorf("%s: reason %v, want %v", path, refusal.Decision.Reason, wantReason)
		}
		if !sent && (refusal.Unreachable != nil) != (want == disallowAll) {
			t.Errorf("%s: cause %v, want one only where robots.txt is unreachable", path, refusal.Unreachable)
		}
	}
}

// The status table of RFC 9309 §2.3.1, as the README prints it.
func TestRFC9309_StatusDecidesForTheOrigin(t *testing.T) {
	for _, row := range []struct {
		status int
		want   verdict
	}{
		{200, byRules}, {201, byRules}, {203, byRules}, {226, byRules}, {299, byRules},
		{400, allowAll}, {401, allowAll}, {403, allowAll}, {404, allowAll}, {407, allowAll},
		{410, allowAll}, {418, allowAll}, {429, allowAll}, {451, allowAll}, {499, allowAll},
		{500, disallowAll}, {501, disallowAll}, {502, disallowAll}, {503, disallowAll},
		{504, disallowAll}, {520, disallowAll}, {599, disallowAll},
		{300, disallowAll}, {304, disallowAll}, {600, disallowAll}, {999, disallowAll},
	} {
		t.Run(fmt.Sprint(row.status), func(t *testing.T) {
			url, record := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(row.status)
				if row.status != http.StatusNotModified {
					fmt.Fprint(w, rules)
				}
			})
			check(t, gate(nil), url, row.want)
			if n := len(record.of("/robots.txt")); n != 1 {
				t.Errorf("robots.txt was fetched %d times, want once", n)
			}
			if row.want != allowAll && len(record.of("/private")) > 0 {
				t.Error("a forbidden page was asked for")
			}
		})
	}
}

func TestExtension_GoogleTreats429AsUnreachable(t *testing.T) {
	url, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	rt := &client.Transport{Fetcher: &fetch.Fetcher{Dialect: policy.Google, Retries: -1}}
	check(t, rt, url, disallowAll)
}

// RFC 9309 §2.3.1.4: no complete answer, no permission.
func TestRFC9309_NetworkFailureDisallowsAll(t *testing.T) {
	for name, robots := range map[string]http.HandlerFunc{
		"reset":            hijacked(""),
		"cut body":         hijacked("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + rules),
		"cut chunked body": hijacked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n21\r\n" + rules),
		"not HTTP":         hijacked("220 ready\r\n"),
		"unknown coding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, "x")
		},
		"redirect to ftp":  redirectTo("ftp://files.example/robots.txt"),
		"redirect nowhere": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) },
		"silence":          func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			url, record := serve(t, robots)
			rt := gate(nil)
			rt.Fetcher.Timeout = 500 * time.Millisecond
			check(t, rt, url, disallowAll)
			if len(record.of("/public"))+len(record.of("/private")) > 0 {
				t.Error("a page was asked for")
			}
		})
	}
	t.Run("refused", func(t *testing.T) { check(t, gate(nil), "http://"+closedPort(t), disallowAll) })
	t.Run("no such host", func(t *testing.T) { check(t, gate(nil), "http://no-such-host.invalid", disallowAll) })
	t.Run("bad certificate", func(t *testing.T) {
		s := httptest.NewTLSServer(handler(new(seen), text(rules)))
		t.Cleanup(s.Close)
		s.Config.ErrorLog = quiet()
		check(t, gate(&http.Transport{}), s.URL, disallowAll)
	})
}

func TestRFC9309_AServerErrorIsAskedAgainInLine(t *testing.T) {
	var n int
	url, record := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, rules)
	})
	check(t, &client.Transport{}, url, byRules)
	if got := len(record.of("/robots.txt")); got != 2 {
		t.Errorf("robots.txt was asked for %d times, want 2", got)
	}
}

// RFC 9309 §2.3.1.2: at least five hops; the rules hold for the origin asked.
func TestRFC9309_FiveRedirectsAreFollowed(t *testing.T) {
	for hops := range 8 {
		t.Run(fmt.Sprint(hops), func(t *testing.T) {
			elsewhere, _ := serve(t, text(rules))
			record := new(seen)
			mux := http.NewServeMux()
			s := httptest.NewServer(mux)
			t.Cleanup(s.Close)
			mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
				record.add(r)
				n := 0
				if r.URL.Path != "/robots.txt" {
					if _, err := fmt.Sscanf(r.URL.Path, "/hop/%d", &n); err != nil {
						fmt.Fprint(w, "page")
						return
					}
				}
				switch {
				case n == hops && n == 0:
					fmt.Fprint(w, rules)
				case n == hops-1:
					http.Redirect(w, r, elsewhere+"/robots.txt", http.StatusFound)
				default:
					http.Redirect(w, r, fmt.Sprintf("/hop/%d", n+1), http.StatusMovedPermanently)
				}
			})
			want := byRules
			if hops > 5 {
				want = allowAll
			}
			check(t, gate(nil), s.URL, want)
		})
	}
}

func TestRFC9309_ARedirectLoopIsUnavailable(t *testing.T) {
	url, record := serve(t, redirectTo("/robots.txt"))
	check(t, gate(nil), url, allowAll)
	if n := len(record.of("/robots.txt")); n > 6 {
		t.Errorf("robots.txt was asked for %d times, want at most %d", n, 6)
	}
}

// RFC 9309 §2.5: what lies past 500 KiB is not read, and half a line is no rule.
func TestRFC9309_ParsingLimit(t *testing.T) {
	pad := func(n int) string { return strings.Repeat("#", n-1) + "\n" }
	const group = "User-agent: *\n"
	for _, row := range []struct {
		name, body string
		want       verdict
	}{
		{"rule ends at the limit", group + pad(fetch.MaxBytes-len(group)-len("Disallow: /private\n")) + "Disallow: /private\n", byRules},
		{"rule is cut by the limit", group + pad(fetch.MaxBytes-len(group)-len("Disallow: /")) + "Disallow: /private\n", allowAll},
		{"rule after the limit", group + pad(fetch.MaxBytes-len(group)) + "Disallow: /private\n", allowAll},
		{"rule first, then a flood", rules + pad(4*fetch.MaxBytes), byRules},
	} {
		t.Run(row.name, func(t *testing.T) {
			url, _ := serve(t, text(row.body))
			check(t, gate(nil), url, row.want)
		})
	}
}

// hijacked writes raw bytes and resets the connection.
func hijacked(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		fmt.Fprint(conn, raw)
		if raw == "" {
			conn.(*net.TCPConn).SetLinger(0)
		}
		conn.Close()
	}
}

func redirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

// closedPort is a loopback address that refuses connections.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
