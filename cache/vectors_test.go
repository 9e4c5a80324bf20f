package cache_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// robotsVector is a line of caching-robots.jsonl.
type robotsVector struct {
	ID     string
	Note   string
	Config struct {
		MinTTL       *float64 `json:"min_ttl_s"`
		AfterHorizon string   `json:"after_horizon"`
		Status429    string   `json:"status_429"`
		Background   bool     `json:"background_refresh"`
		Accessible   *bool    `json:"site_accessible"` // what Google asks beside robots.txt
	}
	Server []struct {
		FromS  float64 `json:"from_s"`
		URL    string
		Answer answer
	}
	Lookups []struct {
		TS          float64 `json:"t_s"`
		URL         string
		Verdict     string
		Strict      string `json:"verdict_strict"`
		Google      string `json:"verdict_google"`
		Requests    atMost `json:"origin_requests"`
		Repeat      int
		Concurrency int
		CancelAfter float64 `json:"cancel_after_s"`
	}
}

// answer is what a server does with a request.
type answer struct {
	Status        int
	Headers       [][2]string
	Headers304    [][2]string `json:"headers_304"`
	Body          string
	BodySpec      []bodyPiece `json:"body_spec"`
	Fail          string
	DelayS        float64 `json:"delay_s"`
	Conditional   bool
	Unconditional *answer
	Transport     string

	bytes []byte // the body as sent
}

type bodyPiece struct {
	Text, Repeat string
	UntilBytes   int `json:"until_bytes"`
}

// atMost is a number, or a range {"min", "max"}.
type atMost struct{ Min, Max int }

func (n *atMost) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &n.Min); err == nil {
		n.Max = n.Min
		return nil
	}
	type both atMost
	return vectors.Strict(b, (*both)(n))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func TestRobotsStateMachineVectors(t *testing.T) {
	modes := []struct {
		name   string
		outage cache.Outage
	}{{"last good copy", cache.LastGood}, {"strict", cache.Strict}, {"Google", cache.GoogleLadder}}
	for _, v := range vectors.Read[robotsVector](t, "vectors/caching-robots.jsonl", "topic", "source") {
		t.Run(v.ID, func(t *testing.T) {
			for i := range v.Server {
				v.Server[i].Answer.encode()
			}
			for _, mode := range modes {
				synctest.Test(t, func(t *testing.T) { v.run(t, mode.name, mode.outage) })
			}
		})
	}
}

func (v robotsVector) run(t *testing.T, mode string, outage cache.Outage) {
	c, start := v.cache(outage), time.Now()
	var requests atomic.Int32
	src := v.source(roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		requests.Add(1)
		return v.answerTo(req, time.Since(start)).send(req)
	}))
	var leaving sync.WaitGroup
	defer leaving.Wait()
	for i, l := range v.Lookups {
		time.Sleep(seconds(l.TS) - time.Since(start))
		want := l.Verdict
		if outage == cache.Strict && l.Strict != "" {
			want = l.Strict
		} else if outage == cache.GoogleLadder && l.Google != "" {
			want = l.Google
		}
		if neverPermitted[fmt.Sprint(mode, ", ", v.ID, ", ", i)] {
			want = "disallow"
		}
		ask := func(ctx context.Context) {
			if got := v.verdict(ctx, t, c, src, l.URL); got != want && (want != "either" || got == "error") {
				t.Errorf("mode %s, lookup %d (%gs %s): %s, want %s; %s", mode, i, l.TS, l.URL, got, want, v.Note)
			}
		}
		if l.CancelAfter > 0 {
			leaving.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), seconds(l.CancelAfter))
				defer cancel()
				ask(ctx)
			})
			continue
		}
		for range max(1, l.Repeat) {
			var together sync.WaitGroup
			for range max(1, l.Concurrency) {
				together.Go(func() { ask(t.Context()) })
			}
			together.Wait()
		}
		synctest.Wait() // for what runs in the background
		if n := int(requests.Load()); n < l.Requests.Min || n > l.Requests.Max {
			t.Errorf("mode %s, lookup %d (%gs): %d requests, want %d to %d; %s", mode, i, l.TS, n, l.Requests.Min, l.Requests.Max, v.Note)
		}
	}
}

// neverPermitted are lookups after 30 days of an outage, where RFC 9309 §2.3.1.4 permits to
// take an origin for unavailable. Only GoogleLadder does.
var neverPermitted = map[string]bool{
	"last good copy, outage-30d-last-good-then-allow, 4": true,
	"last good copy, outage-no-copy-13h-and-31d, 4":      true,
	"strict, outage-30d-last-good-then-allow, 4":         true,
	"strict, outage-no-copy-13h-and-31d, 4":              true,
	"strict, outage-30d-last-good-kept, 3":               true,
}

// cache is configured as caching.README.md says. Only the jitter is not to be had by a
// field: expiry is tested to the second here.
func (v robotsVector) cache(outage cache.Outage) *cache.Cache {
	c := &cache.Cache{Outage: outage}
	if v.Config.MinTTL != nil {
		c.MinTTL = -1
	}
	if v.Config.AfterHorizon == "keep" {
		c.WithTerms(day, 100*365*day)
	}
	return c.WithoutSpread().WithSteadyRetry(300 * time.Second)
}

func (v robotsVector) source(rt http.RoundTripper) *cache.Source {
	src := sourceOf(&fetch.Fetcher{Transport: rt, UserAgent: "examplebot/1.0", Retries: -1})
	for _, s := range v.Server {
		if s.Answer.Status == http.StatusTooManyRequests && v.Config.Status429 != "unavailable" {
			src.Dialect = policy.Google
		}
	}
	return src
}

func (v robotsVector) answerTo(req *http.Request, t time.Duration) (a answer) {
	a.Fail = "dns" // no such server
	for _, s := range v.Server {
		if s.URL == req.URL.String() && seconds(s.FromS) <= t {
			a = s.Answer
		}
	}
	return a
}

// get asks as a caller who has nothing refreshed that holds, and waits for what is refreshed behind it; but not if
// the vector wants the background.
func (v robotsVector) get(ctx context.Context, c *cache.Cache, o fetch.Origin, src *cache.Source) (*fetch.Result, error) {
	known := &cache.Source{Dialect: src.Dialect, Reader: src.Reader}
	asks := src
	if !v.Config.Background && c.HoldsUntil(o, src).After(time.Now()) {
		asks = known
	}
	r, until, err := c.Get(ctx, o, asks)
	if err != nil || time.Until(until) > 0 || v.Config.Background {
		return r, err
	}
	time.Sleep(time.Nanosecond)
	if later, _, err := c.Get(ctx, o, known); err == nil {
		r = later
	}
	return r, nil
}

func (v robotsVector) verdict(ctx context.Context, t *testing.T, c *cache.Cache, src *cache.Source, raw string) string {
	r, err := v.get(ctx, c, origin(t, raw), src)
	u, _ := url.Parse(raw)
	switch {
	case err != nil || r == nil:
		return "error"
	case r.Policy.Decide("examplebot", u.RequestURI()).Allowed:
		return "allow"
	}
	return "disallow"
}

// send gives the answer in its bytes, and lets net/http read them.
func (a answer) send(req *http.Request) (*http.Response, error) {
	select {
	case <-time.After(seconds(a.DelayS)):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if err := a.failure(); err != nil {
		return nil, err
	}
	conditional := req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != ""
	switch {
	case a.Unconditional != nil && !conditional:
		return a.Unconditional.send(req)
	case a.Conditional && a.validatedBy(req):
		a = answer{Status: http.StatusNotModified, Headers: a.headers304()}
	}
	res, err := http.ReadResponse(bufio.NewReader(a.wire()), req)
	if err == nil && a.field("Cache-Control") == "" {
		// For HTTP/1.1 net/http reads "Pragma: no-cache" as a Cache-Control that the
		// origin did not send. What RFC 9111 §5.4 says of Pragma is tested without it;
		// in the field such an origin is asked once a minute.
		res.Header.Del("Cache-Control")
	}
	return res, err
}

func (a answer) failure() error {
	switch a.Fail {
	case "":
		return nil
	case "dns":
		return &net.DNSError{Err: "no such host", IsNotFound: true}
	case "timeout":
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case "refused":
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case "reset":
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case "tls":
		return errors.New("tls: failed to verify certificate")
	}
	panic("unknown failure " + a.Fail)
}

func (a answer) field(name string) string {
	for _, h := range a.Headers {
		if strings.EqualFold(h[0], name) {
			return httpDates(h[1])
		}
	}
	return ""
}

func (a answer) headers304() [][2]string {
	if a.Headers304 != nil {
		return a.Headers304
	}
	return a.Headers
}

func (a answer) validatedBy(req *http.Request) bool {
	if tag := req.Header.Get("If-None-Match"); tag != "" {
		return tag == a.field("ETag")
	}
	since := req.Header.Get("If-Modified-Since")
	return since != "" && since == a.field("Last-Modified")
}

func (a answer) wire() io.Reader {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d Status\r\n", a.Status)
	for _, h := range a.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], httpDates(h[1]))
	}
	switch {
	case a.Status == http.StatusNoContent || a.Status == http.StatusNotModified:
		b.WriteString("\r\n")
		return &b
	case strings.HasPrefix(a.Transport, "chunked"):
		fmt.Fprintf(&b, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(a.bytes), a.bytes)
		if a.Transport == "chunked_bad_size" {
			b.WriteString("zz\r\n")
		}
		return &b
	case a.Transport == "gzip" || a.Transport == "gzip_truncated":
		b.WriteString("Content-Encoding: gzip\r\n")
	}
	if a.field("Content-Length") == "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(a.bytes))
	}
	b.WriteString("\r\n")
	b.Write(a.bytes)
	return &b
}

// encode makes the body, once: one of them is a bomb of 100 MiB.
func (a *answer) encode() {
	if a.Unconditional != nil {
		a.Unconditional.encode()
	}
	var b bytes.Buffer
	w := io.Writer(&b)
	z := gzip.NewWriter(&b)
	if a.BodySpec != nil {
		z, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed)
	}
	if strings.HasPrefix(a.Transport, "gzip") {
		w = z
	}
	n, _ := io.WriteString(w, a.Body)
	for _, p := range a.BodySpec {
		k, _ := io.WriteString(w, p.Text)
		n += k
		for many := strings.Repeat(p.Repeat, 1+65536/(len(p.Repeat)+1)); p.Repeat != "" && n < p.UntilBytes; {
			piece := p.Repeat
			if n+len(many) <= p.UntilBytes {
				piece = many
			}
			k, _ := io.WriteString(w, piece)
			n += k
		}
	}
	if w == z {
		z.Close()
	}
	if a.Transport == "gzip_truncated" {
		b.Truncate(b.Len() - 8)
	}
	a.bytes = b.Bytes()
}

// httpDates replaces @now+N by a date.
func httpDates(value string) string {
	if s, ok := strings.CutPrefix(value, "@now"); ok {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return time.Now().Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
	}
	return value
}

// httpVector is a line of caching.jsonl: one fact of RFC 9111 from the conformance suite
// for HTTP caches.
type httpVector struct {
	ID, Topic, Expect, Kind, Scope, Recommend, Why string

	Expects   []string
	Responses []struct {
		answer
		DelayS float64 `json:"delay_s_before_next_request"`
		When   map[string]string
		Error  string // why the status is 0

		Interim [][]int // statuses of the answers before it, which net/http reads
	}
}

// httpVectors leaves out the fields of a request, which the cache does not make, and what is said of other caches.
func httpVectors(t *testing.T) []httpVector {
	return vectors.Read[httpVector](t, "vectors/caching.jsonl", "request_headers", "clamp_note", "pass_of", "suite_asks")
}

func (v *httpVector) UnmarshalJSON(b []byte) error {
	type plain httpVector
	if err := vectors.Strict(b, (*plain)(v)); err != nil {
		return err
	}
	if v.Expects == nil {
		v.Expects = []string{"miss", v.Expect}
	}
	if v.Kind == "check" {
		v.Expects[len(v.Expects)-1] = v.Recommend
	}
	return nil
}

// notOptimal says why some optional outcomes are none for robots.txt.
var notOptimal = map[string]string{
	"heuristic-501-cached":          "5xx is unreachable: the retry clock decides, not a lifetime",
	"status-503-fresh":              "5xx is unreachable: a long max-age must not freeze an origin in complete disallow",
	"status-504-fresh":              "as 503",
	"status-599-fresh":              "as 503",
	"status-301-fresh":              "a 301 without Location is no answer that could be reused",
	"status-308-fresh":              "as 301",
	"304-etag-update-response-ETag": "a 304 with another ETag validates nothing in hand (RFC 9111 §4.3.4); robots.txt is fetched anew",
}

func TestHTTPCachingVectors(t *testing.T) {
	for _, v := range httpVectors(t) {
		if v.Scope == "shared" { // ours is a private cache
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, want := fmt.Sprint(v.outcomes(t, v.cache())), fmt.Sprint(v.Expects)
				switch why := notOptimal[v.ID]; {
				case why != "" && v.Kind != "required":
					if got == want {
						t.Errorf("%v after all, although: %s", got, why)
					}
				case got != want:
					t.Errorf("%v, want %v (%s; %s)", got, want, v.Kind, v.Why)
				}
			})
		})
	}
}

// cache is one with the bounds of robots.txt out of the way: no floor, no default
// lifetime, no wait after a failure. What a cache of pages does with an error once its
// copy is stale, Strict does.
func (v httpVector) cache() *cache.Cache {
	c := &cache.Cache{MinTTL: -1, Outage: cache.Strict}
	if v.ID == "stale-sie-503" {
		c.Outage = cache.LastGood
	}
	c.WithSteadyRetry(0)
	if v.Topic == "heuristic" && v.Expects[1] == "hit" {
		return c.WithoutSpread() // a default in place of a heuristic
	}
	return c.WithTerms(0, 30*day).WithoutSpread()
}

func (v httpVector) outcomes(t *testing.T, c *cache.Cache) (all []string) {
	const contact = time.Millisecond // what asking the origin takes
	i, notModified := 0, false
	f := &fetch.Fetcher{Retries: -1, Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		time.Sleep(contact)
		a := v.Responses[i].answer
		for name, value := range v.Responses[i].When {
			if notModified = req.Header.Get(name) == value; !notModified {
				a.Status = http.StatusOK
			}
		}
		if a.Status == 0 {
			a.Fail = "reset"
		}
		return a.send(req)
	})}
	o := origin(t, "https://a.example")
	for ; i < len(v.Responses); i++ {
		notModified = false
		start := time.Now()
		r, _, err := c.Get(t.Context(), o, sourceOf(f))
		if err != nil {
			t.Fatal(err)
		}
		failed := v.Responses[i].Status == 0 || v.Responses[i].Status >= 500
		switch {
		case time.Since(start) < contact, failed && r.Err == nil:
			all = append(all, "hit")
		case notModified:
			all = append(all, "revalidate")
		default:
			all = append(all, "miss")
		}
		time.Sleep(seconds(v.Responses[i].DelayS))
		synctest.Wait()
	}
	return all
}
