package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// given is what a test looks at of the answer of POST /v1/turns.
type given struct {
	Turn       *string
	RetryAfter *float64 `json:"retry_after"`
}

// Two services with one Redis server are one visitor.
func TestServeTurnsHoldForTheFleet(t *testing.T) {
	tier.Gate(t)
	site := &visits{delay: 300 * time.Millisecond}
	to, at := siteServer(t, site.ServeHTTP), redis(t)
	a := startServe(t, serve.UsualLimits(), "--private", "--cache="+at, to)
	b := startServe(t, serve.UsualLimits(), "--private", "--cache="+at, to)
	for _, v := range []*serving{a, b, b, a} {
		_, got := v.do("POST", "/v1/turns", `{"url":"http://a.example/"}`, "Content-Type: application/json")
		var turn given
		if err := json.Unmarshal([]byte(got), &turn); err != nil || turn.Turn == nil {
			t.Fatalf("got %s, %v, want a turn", got, err)
		}
		site.at = append(site.at, time.Now())
		v.do("DELETE", "/v1/turns/"+*turn.Turn, "")
	}
	site.check(t, 5)
}

// Without the server of turns there are none, and the service is not ready.
func TestServeTurnsNeedTheirStore(t *testing.T) {
	tier.Gate(t)
	t.Parallel()
	v := startServe(t, serve.UsualLimits(), "--private", "--cache=redis://127.0.0.1:1/0",
		siteServer(t, func(http.ResponseWriter, *http.Request) {}))
	if res, got := v.do("GET", "/readyz", ""); res.StatusCode != 503 {
		t.Errorf("/readyz: %s %s, want 503", res.Status, got)
	}
	if _, got := v.do("GET", "/v1/decide?url=http://a.example/", ""); !strings.Contains(got, `"allowed":true`) {
		t.Errorf("a decision: got %s, want it allowed", got)
	}
	_, got := v.do("POST", "/v1/turns", `{"url":"http://a.example/","wait":"0.2s"}`, "Content-Type: application/json")
	var a given
	if err := json.Unmarshal([]byte(got), &a); err != nil || a.Turn != nil || a.RetryAfter == nil || *a.RetryAfter < 1 {
		t.Errorf("a turn: got %s, want none, and retry_after", got)
	}
	// To read robots.txt takes a turn as well.
	res, got := v.do("POST", "/v1/turns", `{"url":"http://unknown.example/","wait":"0s"}`, "Content-Type: application/json")
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("a turn at a site that is not known: got %s %s, want 503 and Retry-After", res.Status, got)
	}
}

// Over HTTP/2 a stream ends at the deadline of its answer, even if there is none yet: a wait is no such deadline.
func TestServeTurnsAreWaitedForOverHTTP2(t *testing.T) {
	tier.Gate(t)
	flags, pool := certified(t)
	c := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer c.CloseIdleConnections()
	s := newServer(&shell.App{Streams: shell.Streams{Err: t.Output()}})
	s.limits.Question, s.limits.Answer = 800*time.Millisecond, 100*time.Millisecond
	said, _, _ := startCommand(t, s.command(), s.App, append(flags, "--listen=127.0.0.1:0", "--cache=none", "--private",
		siteServer(t, func(http.ResponseWriter, *http.Request) {})))
	at := strings.TrimSpace(strings.TrimPrefix(said, "robots serve: "))
	for i, wait := range []string{"2s", "1.5s"} { // the first has the place
		res, got := talk(t, c, "POST", at+"/v1/turns", `{"url":"http://a.example/","wait":"`+wait+`"}`, "Content-Type: application/json")
		var a given
		if err := json.Unmarshal([]byte(got), &a); err != nil || res.ProtoMajor != 2 || (a.Turn != nil) != (i == 0) {
			t.Errorf("%d: got %s %s, %v, want a turn for the first alone, over HTTP/2", i, res.Proto, got, err)
		}
	}
}

// A turn that a client waits for ends when it hangs up its real connection.
func TestServeTurnsSeeAClientHangUp(t *testing.T) {
	tier.Gate(t)
	v := startServe(t, serve.UsualLimits(), "--private", siteServer(t, func(http.ResponseWriter, *http.Request) {}))
	const question = `{"url":"http://a.example/","wait":"2m"}`
	v.do("POST", "/v1/turns", question, "Content-Type: application/json") // has the place
	c := v.dial(fmt.Sprintf("POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(question), question))
	v.waits(1)
	c.Close()
	v.waits(0)
}

// waits returns when so many questions wait for a turn.
func (v *serving) waits(n int) {
	v.t.Helper()
	want := fmt.Sprintf("robots_turns_waiting %d\n", n)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		_, scrape := v.do("GET", "/metrics", "")
		if strings.Contains(scrape, want) {
			return
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("want %s in\n%s", want, scrape)
		}
	}
}
