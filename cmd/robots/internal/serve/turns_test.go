package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
)

// turnSite has robots.txt files by host. It is asked for nothing else.
func turnSite(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	switch r.URL.Host {
	case "down.example":
		rec.Header().Set("Retry-After", "120")
		rec.WriteHeader(http.StatusServiceUnavailable)
	case "wild.example":
		io.WriteString(rec, "User-agent: *\nAllow: /private\nDisallow: /*rivate$\n")
	default:
		io.WriteString(rec, "User-agent: *\nDisallow: /private\nUser-agent: slow\nCrawl-delay: 5\n")
	}
	return rec.Result(), nil
}

// turnService is a service without a socket, for the time of a synctest bubble.
type turnService struct {
	*Service
	t *testing.T
	http.Handler
	drain context.CancelFunc
}

func newTurnService(t *testing.T, turns int, web roundtrip.Func) *turnService {
	t.Helper()
	v := &Service{Asker: answer.Asker{Agent: "*"}, Limits: UsualLimits(), Log: slog.New(slog.DiscardHandler), TurnTime: 2 * time.Minute}
	v.Limits.Turns, v.Guard.Loopback = turns, true
	f := &fetch.Fetcher{Transport: web, UserAgent: "test", Retries: -1}
	v.Open(&site.Gate{Transport: &client.Transport{Base: web, Fetcher: f, Cache: new(cache.Cache)}})
	ends, drain := context.WithCancel(t.Context())
	return &turnService{v, t, v.Handler(ends), drain}
}

// ask asks, and tells how long that took.
func (v *turnService) ask(ctx context.Context, method, path, body string,
) (status int, text string, took time.Duration) {
	begin := time.Now()
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", mediaJSON)
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w.Code, w.Body.String(), time.Since(begin)
}

// turn asks for a turn.
func (v *turnService) turn(question string) (a turnAnswer, took time.Duration) {
	v.t.Helper()
	status, text, took := v.ask(v.t.Context(), "POST", "/v1/turns", question)
	if err := json.Unmarshal([]byte(text), &a); err != nil || status != 200 {
		v.t.Fatalf("%s: %d %s %v", question, status, text, err)
	}
	return a, took
}

func (v *turnService) end(a turnAnswer, body string) {
	v.t.Helper()
	if status, text, _ := v.ask(v.t.Context(), "POST", "/v1/turns/"+*a.Turn, body); status != 204 {
		v.t.Fatalf("%d %s", status, text)
	}
}

// A turn is waited for from the end of the one before, and what the site answered counts.
func TestServeTurnsKeepThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTurnService(t, 10, turnSite)
		const question = `{"url":"http://a.example/x","agent":"slow"}`
		began := time.Now()
		first, took := v.turn(question)
		if took != 5*time.Second || *first.Delay != "5s" || !first.Allowed || first.RetryAfter != nil ||
			len(*first.Turn) != 26 {
			t.Errorf("after robots.txt: got %+v after %v, want a turn", first, took)
		}
		if want := began.Add(5*time.Second + 2*time.Minute); !first.Expires.Equal(want) {
			t.Errorf("it expires %v, want %v", first.Expires, want)
		}
		d := first.Decision
		if !d.Allowed || d.URL != "http://a.example/x" || d.Agent != "slow" || d.Robots.Outcome != answer.OutcomeRules {
			t.Errorf("got the decision %+v, want that of slow for http://a.example/x, by rules", d)
		}
		time.AfterFunc(7*time.Second, func() { v.end(first, "") })
		second, took := v.turn(question)
		if took != 12*time.Second {
			t.Errorf("after a turn of 7s: %v, want 12s", took)
		}
		if *second.Turn == *first.Turn {
			t.Error("two turns have one name")
		}
		v.end(second, `{"status":429,"retry_after":"20"}`)
		third, took := v.turn(question)
		if took != 20*time.Second {
			t.Errorf("after a 429: %v, want 20s", took)
		}
		if status, _, _ := v.ask(t.Context(), "DELETE", "/v1/turns/"+*third.Turn, ""); status != 204 {
			t.Errorf("DELETE: %d, want 204", status)
		}
		for _, method := range []string{"POST", "DELETE"} {
			if status, text, _ := v.ask(t.Context(), method, "/v1/turns/"+*third.Turn, ""); status != 404 {
				t.Errorf("%s again: %d %s, want 404", method, status, text)
			}
		}
		if _, took := v.turn(`{"url":"http://b.example/"}`); took != time.Second {
			t.Errorf("another site: %v, want 1s", took)
		}
	})
}

// What cannot come in time, and what is refused, is said at once.
func TestServeTurnsSayNoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTurnService(t, 10, turnSite)
		v.turn(`{"url":"http://a.example/"}`) // is under way from now on
		for question, want := range map[string]string{
			`{"url":"http://a.example/private","wait":"2m"}`:         "false rule <nil>",
			`{"url":"http://down.example/","wait":"0s"}`:             "false unreachable 120",
			`{"url":"http://a.example/","wait":"0s"}`:                "true no-rule 1",
			`{"url":"http://c.example/","wait":"0s"}`:                "true no-rule 1", // robots.txt was read just now
			`{"url":"http://d.example/","agent":"slow","wait":"1s"}`: "true no-rule 5",
		} {
			a, took := v.turn(question)
			retry := "<nil>"
			if a.RetryAfter != nil {
				retry = fmt.Sprint(*a.RetryAfter)
			}
			got := fmt.Sprintf("%v %s %s", a.Allowed, a.Decision.Reason, retry)
			if got != want || a.Turn != nil || took > leastWait {
				t.Errorf("%s: %s after %v, want %s", question, got, took, want)
			}
		}
	})
}

// A turn is decided on as the agent's engine reads, like the question: Yandex counts no wildcards in a rule's length.
func TestServeTurnsAreOfTheAgentsDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTurnService(t, 10, turnSite)
		for agent, want := range map[string]bool{"YandexBot": true, "Bingbot": false} {
			if a, _ := v.turn(`{"url":"http://wild.example/private","agent":"` + agent + `"}`); a.Allowed != want || (a.Turn != nil) != want {
				t.Errorf("%s: %+v, want %v", agent, a, want)
			}
		}
	})
}

// A turn that is not ended gives its place back.
func TestServeTurnsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTurnService(t, 1, turnSite)
		first, _ := v.turn(`{"url":"http://a.example/"}`)
		if status, text, _ := v.ask(t.Context(), "POST", "/v1/turns", `{"url":"http://b.example/"}`); status != 429 {
			t.Errorf("beyond the bound: %d %s, want 429", status, text)
		}
		time.Sleep(2*time.Minute - time.Nanosecond)
		if len(v.turns.Bounded) != 1 {
			t.Error("it expired too soon")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, took := v.turn(`{"url":"http://a.example/"}`); took != time.Second {
			t.Errorf("after its expiry: %v, want 1s", took)
		}
		if status, text, _ := v.ask(t.Context(), "POST", "/v1/turns/"+*first.Turn, ""); status != 404 {
			t.Errorf("the end of one that has expired: %d %s, want 404", status, text)
		}
	})
}

// A client that hangs up while it waits, or as it is answered, leaves no place behind.
func TestServeTurnsOfClientsThatHangUp(t *testing.T) {
	for name, answered := range map[string]bool{"as it waits": false, "as it is answered": true} {
		synctest.Test(t, func(t *testing.T) {
			v := newTurnService(t, 2, turnSite)
			first, _ := v.turn(`{"url":"http://a.example/"}`)
			v.end(first, "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/turns",
				strings.NewReader(`{"url":"http://a.example/"}`))
			r.Header.Set("Content-Type", mediaJSON)
			w := &goneWriter{httptest.NewRecorder(), cancel}
			if !answered {
				time.AfterFunc(500*time.Millisecond, cancel)
			}
			v.ServeHTTP(w, r)
			synctest.Wait()
			if n := len(v.turns.Bounded); n > 0 || strings.Contains(w.Body.String(), `"turn":"`) != answered {
				t.Errorf("%s: %d turns are left, want none; got %s, want a turn: %v", name, n, w.Body, answered)
			}
			if _, took := v.turn(`{"url":"http://a.example/"}`); took > time.Second {
				t.Errorf("%s: the next waited %v, want 1s at most", name, took)
			}
		})
	}
}

// goneWriter is the connection of a client that hangs up when it is answered.
type goneWriter struct {
	*httptest.ResponseRecorder
	hangUp func()
}

func (w *goneWriter) Write(p []byte) (int, error) {
	w.hangUp()
	return w.ResponseRecorder.Write(p)
}

// The end of the service is no reason to wait.
func TestServeTurnsEndWithTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newTurnService(t, 10, turnSite)
		v.turn(`{"url":"http://a.example/"}`)
		time.AfterFunc(3*time.Second, v.drain)
		status, text, took := v.ask(t.Context(), "POST", "/v1/turns", `{"url":"http://a.example/"}`)
		if status != 503 || took != 3*time.Second {
			t.Errorf("got %d after %v, want 503 after 3s: %s", status, took, text)
		}
		v.turns.Close()
		if n := len(v.turns.Bounded); n > 0 {
			t.Errorf("%d turns are left, want none", n)
		}
	})
}

// The rules of the moment when the turn comes.
func TestServeTurnsAreDecidedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := "User-agent: *\nAllow: /\n"
		v := newTurnService(t, 10, func(*http.Request) (*http.Response, error) {
			rec := httptest.NewRecorder()
			rec.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(rec, rules)
			return rec.Result(), nil
		})
		first, _ := v.turn(`{"url":"http://a.example/"}`)
		rules = "User-agent: *\nDisallow: /\n"
		time.AfterFunc(90*time.Second, func() { v.end(first, "") })
		a, took := v.turn(`{"url":"http://a.example/","wait":"2m"}`)
		if a.Allowed || a.Turn != nil || a.Decision.Reason != "rule" || took < 90*time.Second {
			t.Errorf("got %+v after %v, want it refused by a rule, after 90s or more", a, took)
		}
	})
}
