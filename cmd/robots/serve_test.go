package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// What README.md says of bodies, and of the page.
const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
	maxText     = 1 << 20
	maxBody     = 6*maxText + 2<<20
	maxPageURLs = 50
)

// serving is a running "robots serve".
type serving struct {
	t    *testing.T
	url  string
	addr string
	stop context.CancelFunc
	end  chan int // its exit status
	log  *bytes.Buffer
}

// startServe runs "robots serve" in this process, with limits and flags.
func startServe(t *testing.T, l serve.Limits, args ...string) *serving {
	t.Helper()
	v := &serving{t: t, log: new(bytes.Buffer)}
	s := newServer(&shell.App{Streams: shell.Streams{Err: v.log}})
	s.limits = l
	var said string
	said, v.stop, v.end = startCommand(t, s.command(), s.App,
		append([]string{"--listen=127.0.0.1:0", "--cache=none"}, args...))
	v.url = strings.TrimSuffix(strings.TrimPrefix(said, "robots serve: "), "\n")
	if !strings.HasPrefix(v.url, "http://") {
		t.Fatalf("it says %q", said)
	}
	v.addr = strings.TrimPrefix(v.url, "http://")
	return v
}

// startCommand runs a command of a in this process until the test ends, and returns what it says first.
func startCommand(t *testing.T, cmd *cobra.Command, a *shell.App, args []string,
) (said string, stop context.CancelFunc, end chan int) {
	t.Helper()
	out, in := io.Pipe()
	a.Out = in
	ctx, cancel := context.WithCancel(t.Context())
	end = make(chan int, 1) // its exit status
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	go func() {
		status := shell.ExitOK
		if err := cmd.ExecuteContext(ctx); err != nil {
			fmt.Fprintln(in, err)
			status = shell.ExitUnknown
		}
		in.Close()
		end <- max(status, a.Status)
	}()
	t.Cleanup(func() {
		cancel()
		go io.Copy(io.Discard, out)
		select {
		case end <- <-end:
		case <-time.After(15 * time.Second):
			t.Error("it does not end")
		}
	})
	line := make([]byte, 200)
	n, _ := out.Read(line)
	return string(line[:n]), cancel, end
}

func (v *serving) do(method, path, body string, fields ...string) (*http.Response, string) {
	v.t.Helper()
	return talk(v.t, http.DefaultTransport, method, v.url+path, body, fields...)
}

// talk sends a request, and reads the answer; fields are lines "Name: value".
func talk(t *testing.T, rt http.RoundTripper, method, url, body string, fields ...string) (*http.Response, string) {
	t.Helper()
	res := answerTo(t, rt, requestOf(t, method, url, strings.NewReader(body), fields...))
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

// answerTo is an answer whose body may still be coming.
func answerTo(t *testing.T, rt http.RoundTripper, req *http.Request) *http.Response {
	t.Helper()
	res, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func requestOf(t *testing.T, method, url string, body io.Reader, fields ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if name, value, ok := strings.Cut(f, ": "); name == "Host" {
			req.Host = value
		} else if ok {
			req.Header.Add(name, value)
		}
	}
	return req
}

// siteServer serves h for all names, and returns the flag that leads there.
func siteServer(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return "--connect-to=::" + server.Listener.Addr().String()
}

// moment is what depends on when a question was asked, and on how long robots.txt was on its way: what
// is left of a max-age of 5 (RFC 9111 §4.2.3 counts from Date, in whole seconds).
var moment = regexp.MustCompile(`"fetched":"[^"]*","age_seconds":\d+|"lifetime_seconds":[1-5],|"Date":\["[^"]*"\]`)

func timeless(text string) string { return moment.ReplaceAllString(text, "") }

// --as is for questions that name no dialect. It takes nothing away from those that name one: Yandex, for one,
// reads no file with a 206.
func TestServeDecidesAsCheckDoes(t *testing.T) {
	to := siteServer(t, schemaSite)
	v := startServe(t, serve.UsualLimits(), "--private", "--as=yandex", to)
	for _, name := range schemaSites {
		for _, as := range append(answer.DialectNames(), "all", "") {
			own, query := cmp.Or(as, "yandex"), "&as="+as
			if as == "" {
				query = ""
			}
			for _, path := range []string{"", "/private?a=b&c", "/robots.txt", "/%70rivate/../x"} {
				u := "http://" + name + ".example" + path
				want := string(stdoutOf(t, "", "check", "--json", "--agent=ExampleBot", "--as="+own, to, u))
				res, got := v.do("GET", "/v1/decide?agent=ExampleBot/1.0"+query+"&url="+url.QueryEscape(u), "")
				if res.StatusCode != 200 || timeless(got) != timeless(want) {
					t.Errorf("%s as %s: %s\ngot  %swant %s", u, as, res.Status, got, want)
				}
				if res.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: Cache-Control is %q, want \"no-store\"", u, res.Header.Get("Cache-Control"))
				}
			}
		}
		want := string(stdoutOf(t, "", "fetch", "--json", to, "http://"+name+".example"))
		if _, got := v.do("GET", "/v1/robots?as=rfc9309&origin=http://"+name+".example", ""); timeless(got) != timeless(want) {
			t.Errorf("%s: got %s\nwant %s", name, got, want)
		}
	}
}

// Each line has an answer for its own agent, in its own dialect, and in UTF-8 (RFC 8259 §8.1), whatever the line was.
func TestServeAnswersEachLineOfAStream(t *testing.T) {
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "User-agent: a\nDisallow: /\nUser-agent: b\nAllow: /\n")
	})
	v := startServe(t, serve.UsualLimits(), "--private", "--agent=b", to)
	list, rows := "", []struct{ line, want string }{
		{`{"url":"http://s.example/","agent":"a"}`, "false a google rule"},
		{`http://s.example/`, "true b google rule"},
		{`{"url":"http://s.example/","agent":"b","as":"yandex"}`, "true b yandex rule"},
		{`{"url":"http://s.example/","agent":"two words"}`, "false b google malformed"},
		{`{"url":"http://s.example/","as":"lycos"}`, "false b google malformed"},
		{`{"url":"http://s.example/","\u0061gent":"\u0061"}`, "false a google rule"},
		{"{\"url\":\"http://s.example/\xe9\"}", "false b google malformed"},
		{"{\"url\":\"http://s.example/\",\"title\":\"\xe9\"}", "true b google rule"},
		{"http://s.example/\xe9", "true b google rule"},
		{"\xe9", "false b google malformed"},
		{`{"url":"http://s.example/\ufffd"}`, "true b google rule"},
		{`{"url":"http://s.example/%zz","agent":"a","as":"bing"}`, "false a bing malformed"},
		{`{"url":"/path","agent":"a"}`, "false a google malformed"},
		{`{"url":"http://s.example/","url":"http://s.example/","agent":"a"}`, "false b google malformed"},
	}
	for _, r := range rows {
		list += r.line + "\n"
	}
	_, text := v.do("POST", "/v1/decide?as=google", list, "Content-Type: "+mediaNDJSON)
	answers := verdicts(t, []byte(text))
	if len(answers) != len(rows) || !utf8.ValidString(text) {
		t.Fatalf("%d answers, want %d in UTF-8: %q", len(answers), len(rows), text)
	}
	for i, d := range answers {
		if got := fmt.Sprint(d.Allowed, " ", d.Agent, " ", d.Dialect, " ", d.Reason); got != rows[i].want || d.Number != i+1 {
			t.Errorf("line %d, %q: got %s of line %d, want %s", i+1, rows[i].line, got, d.Number, rows[i].want)
		}
	}
}

// What is known goes out while the body is still being written, and while a site is silent.
func TestServeStreamsFlushWhatIsKnown(t *testing.T) {
	silent := make(chan struct{})
	to := siteServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "silent.example" {
			<-silent
		}
	})
	v := startServe(t, serve.UsualLimits(), "--private", to)
	body, write := io.Pipe()
	req := requestOf(t, "POST", v.url+"/v1/decide", body, "Content-Type: "+mediaNDJSON)
	go io.WriteString(write, "http://a.example/\nhttp://silent.example/\nhttp://a.example/\nhttp://b.ex") // half a line
	d := json.NewDecoder(answerTo(t, http.DefaultTransport, req).Body)
	for i, before := range []func(){func() {}, func() { close(silent) }, func() {},
		func() { io.WriteString(write, "ample/\n") }, func() { write.Close() }} {
		before()
		var got answer.Verdict
		if err := d.Decode(&got); i == 4 {
			if err != io.EOF {
				t.Errorf("behind the last: %v, want EOF", err)
			}
		} else if err != nil || got.Number != i+1 || !got.Allowed {
			t.Fatalf("%d: got %+v, %v, want number %d, allowed", i, got, err, i+1)
		}
	}
}

func TestServeProblems(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--connect-to=::127.0.0.1:1", "--timeout=1s")
	long := strings.Repeat("x", 17<<10)
	for _, c := range []struct {
		method, path, body, media string
		status                    int
		parameter                 string
	}{
		{"GET", "/v1/decide", "", "", 400, "url"},
		{"GET", "/v1/decide?url=", "", "", 400, "url"},
		{"GET", "/v1/decide?url=example.com&agnt=a", "", "", 400, "agnt"},
		{"GET", "/v1/decide?url=example.com&url=example.org", "", "", 400, "url"},
		{"GET", "/v1/decide?url=%zz", "", "", 400, "query"},
		{"GET", "/v1/decide?url=example.com&agent=a+b", "", "", 400, "agent"},
		{"GET", "/v1/decide?url=example.com&as=lycos", "", "", 400, "as"},
		{"GET", "/v1/decide?url=ftp://example.com/", "", "", 422, ""},
		{"GET", "/v1/decide?url=http://", "", "", 422, ""},
		{"GET", "/v1/decide?url=http://example.com/" + long, "", "", 422, ""},
		{"GET", "/v1/decide?url=http://example.com/" + strings.Repeat("x", 80000), "", "", 431, "-"},
		{"POST", "/v1/decide?as=all", "", mediaNDJSON, 400, "as"},
		{"GET", "/v1/robots", "", "", 400, "origin"},
		{"GET", "/v1/robots?origin=example.com&as=all", "", "", 400, "as"},
		{"POST", "/v1/match", "", mediaJSON, 400, "body"},
		{"POST", "/v1/match", "{} {}", mediaJSON, 400, "body"},
		{"POST", "/v1/match", `{"url":"/"}`, mediaJSON, 400, "url"},
		{"POST", "/v1/match", `[]`, mediaJSON, 400, "body"},
		{"POST", "/v1/match", `{"robots":5,"urls":["/"]}`, mediaJSON, 400, "robots"},
		{"POST", "/v1/match", `{"robots":"","urls":[5]}`, mediaJSON, 400, "urls"},
		{"POST", "/v1/match", `{"robots":"","urls":"/"}`, mediaJSON, 400, "urls"},
		{"POST", "/v1/match", `{"robots":"","urls":` + listOf(10001, `""`) + `}`, mediaJSON, 400, "urls"},
		{"POST", "/v1/match", `{"robots":"","urls":["` + strings.Repeat("x", answer.MaxURL+1) + `"]}`, mediaJSON, 400, "urls"},
		{"POST", "/v1/match", "{\"robots\":\"\",\"urls\":[\"/\xe9\"]}", mediaJSON, 400, "urls"},
		{"POST", "/v1/match", `{"robots":"","urls":["/\ud800"]}`, mediaJSON, 400, "urls"},
		{"POST", "/v1/turns", `{"url":"example.com/\ud800"}`, mediaJSON, 400, "url"},
		{"POST", "/v1/turns", `{"url":"example.com","wait":30}`, mediaJSON, 400, "wait"},
		{"POST", "/v1/turns", `{"url":"mailto:x","URL":"http://example.com"}`, mediaJSON, 400, "URL"},
		{"POST", "/v1/turns", `{"url":"mailto:x","url":"http://example.com"}`, mediaJSON, 400, "url"},
		{"POST", "/v1/turns", `{"url":"http://example.com"`, mediaJSON, 400, "body"},
		{"POST", "/v1/turns", "{\"url\":\"http://example.com/\xe9\"}", mediaJSON, 400, "url"},
		{"POST", "/v1/turns/x", `{"status":"429"}`, mediaJSON, 400, "status"},
		{"POST", "/v1/turns/x", `{"Status":429}`, mediaJSON, 400, "Status"},
		{"POST", "/v1/match", `{"robots":""}`, mediaJSON, 400, "urls"},
		{"POST", "/v1/match", `{"urls":["/"]}`, mediaJSON, 400, "robots"},
		{"POST", "/v1/match", `{"urls":["/"],"robots_b64":"?"}`, mediaJSON, 400, "robots_b64"},
		{"POST", "/v1/match", `{"urls":["/"],"robots":"","robots_b64":"RGlzYWxsb3c6IC8="}`, mediaJSON, 400, "robots_b64"},
		{"POST", "/v1/match", `{"robots":"User-agent: *\nDisallow: /","urls":["/"],"Robots":""}`, mediaJSON, 400, "Robots"},
		{"POST", "/v1/match", `{"robots":"User-agent: *\nDisallow: /","urls":["/"],"robots":""}`, mediaJSON, 400, "robots"},
		{"POST", "/v1/match", `{"urls":["/"],"robots":"` + strings.Repeat("x", maxText+1) + `"}`, mediaJSON, 413, ""},
		{"POST", "/v1/match", strings.Repeat(" ", maxBody+1), mediaJSON, 413, ""},
		{"POST", "/v1/lint?format=html", "", "text/plain", 400, "format"},
		{"POST", "/v1/lint", "", "application/x-www-form-urlencoded", 415, ""},
		{"DELETE", "/v1/decide", "", "", 405, "-"},
		{"POST", "/healthz", "", "", 405, "-"},
		{"GET", "/v2", "", "", 404, "-"},
		{"GET", "/page/", "", "", 404, "-"},
		{"GET", "/page/none.js", "", "", 404, "-"},
		{"GET", "/page/index.html", "", "", 404, "-"},
	} {
		t.Run(c.method+" "+answer.Brief(c.path)+" "+answer.Brief(c.body), func(t *testing.T) {
			var fields []string
			if c.media != "" {
				fields = append(fields, "Content-Type: "+c.media)
			}
			res, got := v.do(c.method, c.path, c.body, fields...)
			var p struct {
				Type, Title, Detail, Parameter string
				Status                         int
			}
			switch err := json.Unmarshal([]byte(got), &p); {
			case res.StatusCode != c.status:
				t.Errorf("status %d, want %d: %s", res.StatusCode, c.status, got)
			case c.parameter == "-": // net/http's own answer
			case err != nil || p.Status != c.status || p.Parameter != c.parameter || p.Type == "" || p.Detail == "" ||
				res.Header.Get("Content-Type") != "application/problem+json" || res.Header.Get("Cache-Control") != "no-store":
				t.Errorf("got %s, %v, want a problem document that is not stored", got, res.Header)
			}
		})
	}
}

// A semicolon needs no escape in a query (URL Standard §5.1), and url.ParseQuery takes none.
func TestServeTakesSemicolons(t *testing.T) {
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "User-agent: *\nDisallow: /a;b=c\n")
	}))
	for _, semicolon := range []string{";", "%3B"} {
		_, got := v.do("GET", "/v1/decide?url=http://s.example/a"+semicolon+"b=c", "")
		if !strings.Contains(got, `"url":"http://s.example/a;b=c"`) || !strings.Contains(got, `"allowed":false`) {
			t.Errorf("%s: got %s, want it refused", semicolon, got)
		}
	}
}

func TestServeReadsNoCodedBody(t *testing.T) {
	v := startServe(t, serve.UsualLimits())
	for _, path := range []string{"/v1/lint", "/v1/decide"} {
		for coding, want := range map[string]int{
			"gzip": 415, "br": 415, "identity": 200, "": 200, "identity|Content-Encoding: gzip": 415, "|Content-Type: text/html": 415,
		} {
			res, got := v.do("POST", path, "", strings.Split("Content-Type: text/plain|Content-Encoding: "+coding, "|")...)
			if res.StatusCode != want {
				t.Errorf("%s, %q: status %d, want %d: %s", path, coding, res.StatusCode, want, got)
			}
		}
	}
}

// A client that sends all before it reads gets the 413, and no broken connection.
func TestServeTellsThatABodyIsTooLarge(t *testing.T) {
	v := startServe(t, serve.UsualLimits())
	const size = 20 << 20 // more than the kernel takes for a reader that has gone
	const header = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
	for path, media := range map[string]string{"/v1/lint": "text/plain", "/": "application/x-www-form-urlencoded"} {
		c := v.dial(fmt.Sprintf(header, path, media, size))
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 413 {
			t.Errorf("%s: got %v, %v, want 413", path, res, err)
		}
	}
}

func TestServeLintsAsLintDoes(t *testing.T) {
	v := startServe(t, serve.UsualLimits())
	const file = "Disallow: /\nUser-agent: *\nDisallow /x\nAllow: *a\n\xff\x00"
	for _, format := range []string{"json", "sarif"} {
		want := stdoutOf(t, file, "lint", "-", "--format="+format)
		if _, got := v.do("POST", "/v1/lint?format="+format, file, "Content-Type: text/plain"); got != string(want) {
			t.Errorf("%s: got %s\nwant %s", format, got, want)
		}
	}
}
