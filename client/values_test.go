package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/roundtrip"
	"github.com/robotsgate/robotsgate/policy"
)

// Each exported value that a hook, a log or %v may meet says in one bounded line what it holds, its error first.
func TestValuesSpeak(t *testing.T) {
	long := strings.Repeat("long\x1b[31m\n\xff", 10_000)
	p := policy.Parse([]byte("User-agent: *\nDisallow: /" + strings.Repeat("a", 50_000)))
	u := parse("http://user:secret@a.example/" + strings.Repeat("u", 20_000))
	u.RawQuery = "\x1b"
	o, err := fetch.OriginOf(parse("http://" + strings.Repeat(strings.Repeat("h", 60)+".", 4) + "example/"))
	if err != nil {
		t.Fatal(err)
	}
	broke := errors.New("it broke " + long)
	refused := client.Answer{Decision: p.Decide("b", "/"+strings.Repeat("a", 50_000)), Token: long}
	down := client.Answer{Decision: policy.Decision{Reason: policy.ReasonUnreachable}, Token: "b", Unreachable: broke}
	unwanted := client.Answer{Decision: policy.Decision{Reason: policy.ReasonUse}, Use: "train-ai", By: long}
	file := &fetch.Result{Policy: p, StatusCode: 200, Body: bytes.Repeat([]byte("x"), 1<<20), Header: http.Header{"X": {long}}}
	for _, row := range []struct {
		value any
		want  []string // in this order
	}{
		{refused, []string{"disallowed by line 2 of robots.txt: Disallow: /aaa"}},
		{&refused, []string{"disallowed by line 2"}},
		{down, []string{"disallowed", "unreachable", "it broke"}},
		{unwanted, []string{`disallows the use "train-ai"`}},
		{&client.DisallowedError{URL: u, Answer: refused}, []string{"client: not sent for", "disallowed by line 2"}},
		{&client.DisallowedError{URL: u, Answer: down}, []string{"client: not sent for", "it broke"}},
		{&client.DisallowedError{URL: u, Answer: unwanted}, []string{"client: not sent", "train-ai"}},
		{&client.LateError{Origin: o, Paused: true}, []string{"client: not sent", "hhh", "pauses"}},
		{file, []string{"rules"}},
	} {
		texts := map[string]string{"%v": fmt.Sprintf("%v", row.value), "%s": fmt.Sprintf("%s", row.value), "%+v": fmt.Sprintf("%+v", row.value)}
		var buf bytes.Buffer
		for name, h := range map[string]slog.Handler{"text": slog.NewTextHandler(&buf, nil), "JSON": slog.NewJSONHandler(&buf, nil)} {
			buf.Reset()
			slog.New(h).Info("told", "value", row.value)
			texts[name] = strings.TrimSuffix(buf.String(), "\n")
		}
		for how, text := range texts {
			rest := strings.ReplaceAll(text, `\"`, `"`)
			for _, want := range row.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("%T by %s: %.300q has no %q where it belongs", row.value, how, text, want)
					break
				}
				rest = after
			}
			if len(text) > 2000 || strings.ContainsAny(text, "\n\x1b") || strings.Contains(text, "secret") {
				t.Errorf("%T by %s: got %d bytes: %.300q, want one line of 2000 at most, without the password", row.value, how, len(text), text)
			}
		}
	}
}

// All errors but those of a context and of Base are ErrNotSent, from each method, and say what is wrong.
func TestEveryErrorOfOursIsErrNotSent(t *testing.T) {
	vault, x := errors.New("vault away"), parse("http://a.example/x")
	closed := &client.Transport{}
	closed.Close()
	for name, row := range map[string]struct {
		gate *client.Transport
		url  *url.URL
		ctx  func(context.Context) context.Context
		says string // in each error, parted by |
	}{
		"disallowed":        {&client.Transport{Base: siteOf("User-agent: *\nDisallow: /")}, x, nil, "disallowed by line 2"},
		"a typo in Uses":    {&client.Transport{Uses: []string{"search", "train_ai"}}, x, nil, `"train_ai"|search, train-ai,`},
		"WithUses":          {&client.Transport{}, x, func(ctx context.Context) context.Context { return client.WithUses(ctx, "train_ai") }, `"train_ai"`},
		"a wrong Token":     {&client.Transport{Token: "a b"}, x, nil, "Token"},
		"an agent as Token": {&client.Transport{Token: "ExampleBot/1.0 (+https://example.com/bot)"}, x, nil, `set Token to "ExampleBot"`},
		"WithToken":         {&client.Transport{}, x, func(ctx context.Context) context.Context { return client.WithToken(ctx, "a/1") }, "WithToken"},
		"no URL":            {&client.Transport{}, nil, nil, "no URL"},
		"no scheme":         {&client.Transport{}, &url.URL{Host: "a.example", Path: "/x"}, nil, "scheme"},
		"neither that":      {&client.Transport{}, &url.URL{Path: "/x"}, nil, "no Host"},
		"opaque":            {&client.Transport{}, &url.URL{Scheme: "http", Opaque: "//a.example/private"}, nil, "opaque"},
		"no origin":         {&client.Transport{}, parse("http://127.1/x"), nil, "127.1"},
		"a port":            {&client.Transport{}, parse("http://a.example:99999/x"), nil, "99999"},
		"no host":           {&client.Transport{}, parse("http:///x"), nil, "no Host in request URL"}, // as net/http ends it
		"an asterisk":       {&client.Transport{}, &url.URL{Scheme: "http", Host: "a.example", Path: "*"}, nil, `"*"`},
		"no slash":          {&client.Transport{}, &url.URL{Scheme: "http", Host: "a.example", Path: "private"}, nil, `"private"`},
		"a long target":     {&client.Transport{}, parse("http://a.example/" + strings.Repeat("x", 17<<10)), nil, "16384"},
		"a # in the query":  {&client.Transport{}, &url.URL{Scheme: "http", Host: "a.example", Path: "/", RawQuery: "a#b"}, nil, "%23"},
		"a dot segment":     {&client.Transport{}, parse("http://a.example/%2e%2e/x"), nil, "resolve it"},
		"ftp":               {&client.Transport{}, parse("ftp://a.example/x?y"), nil, "%3F"},
		"a bad UserAgent":   {&client.Transport{UserAgent: "a\nb"}, x, nil, "UserAgent"},
		"Sign":              {&client.Transport{Sign: func(*http.Request) error { return vault }}, x, nil, "vault away"},
		"closed":            {closed, x, nil, "closed"},
		"a WebSocket":       {&client.Transport{}, parse("ws://a.example/x"), nil, "http, https or ftp|ws://a.example/x"},
		"mail":              {&client.Transport{}, parse("mailto:a@a.example"), nil, "http, https or ftp|a@a.example"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, base := t.Context(), row.gate.Base
			if row.ctx != nil {
				ctx = row.ctx(ctx)
			}
			if base == nil {
				base = siteOf("")
			}
			asked := 0
			row.gate.Base = roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				asked++
				return base.RoundTrip(req)
			})
			row.gate.Pacer = &client.Pacer{Delay: -1}
			body := &closeCount{Reader: strings.NewReader("x")}
			_, sent := row.gate.RoundTrip((&http.Request{URL: row.url, Body: body}).WithContext(ctx))
			_, decided := row.gate.Decide(ctx, row.url)
			other := row.url != nil && (row.url.Scheme == "ws" || row.url.Scheme == "mailto")
			if want := name == "disallowed" || other; (asked > 0) != want || asked > 1 {
				t.Errorf("%d requests were sent, want any: %t", asked, want)
			}
			_, found := row.gate.Lookup(ctx, row.url)
			_, turn := row.gate.Turn(ctx, row.url)
			for method, err := range map[string]error{"RoundTrip": sent, "Decide": decided, "Lookup": found, "Turn": turn} {
				if err == nil && (method == "Lookup" || method == "Decide" && name == "disallowed" || method == "RoundTrip" && other) {
					continue
				}
				for says := range strings.SplitSeq(row.says, "|") {
					if !errors.Is(err, client.ErrNotSent) || !strings.Contains(err.Error(), says) {
						t.Errorf("%s: got %v, want ErrNotSent that says %q", method, err, says)
					}
				}
			}
			if sent != nil && body.closed != 1 {
				t.Errorf("the body was closed %d times, want once", body.closed)
			}
		})
	}
	bare := &client.Transport{Base: siteOf(""), Sign: func(*http.Request) error { return vault }}
	_, turn := bare.Turn(t.Context(), x)
	_, decided := bare.Decide(t.Context(), x)
	_, found := bare.Lookup(t.Context(), x)
	for what, err := range map[string]error{"Turn": turn, "Decide": decided, "Lookup": found} {
		if !errors.Is(err, client.ErrNotSent) {
			t.Errorf("%s without a Pacer: got %v, want ErrNotSent", what, err)
		}
	}
	_, err := bare.RoundTrip(&http.Request{Method: http.MethodConnect, URL: parse("http://a.example:443")})
	if !errors.Is(err, client.ErrNotSent) || !strings.Contains(err.Error(), "CONNECT") {
		t.Errorf("got %v, want ErrNotSent that says CONNECT", err)
	}
}

// The errors of Base are as they are. For those of the context, see TestACauseIsTheErrorAsNetHTTPHasIt.
func TestErrorsOfOthersAreTheirs(t *testing.T) {
	reset := errors.New("connection reset")
	rt := &client.Transport{Base: pagesOf(func(*http.Request) (*http.Response, error) { return nil, reset })}
	if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != reset {
		t.Errorf("got %v, want Base's own error", err)
	}
}

func TestDisallowedErrorNamesWhatACallerNeeds(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "a.example", Path: "/x", User: url.UserPassword("me", "secret")}
	rule := policy.Decision{Reason: policy.ReasonRule, Rule: policy.Rule{Pattern: "/x\n\x1b[31m" + strings.Repeat("y", 5000), Line: 7}, GroupToken: "b\u202eot\x9b"}
	unreachable := policy.Decision{Reason: policy.ReasonUnreachable}
	answer := func(d policy.Decision, err error) client.Answer {
		return client.Answer{Decision: d, Token: "ExampleBot", Unreachable: err}
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{&client.DisallowedError{URL: u, Answer: answer(policy.Parse([]byte("User-agent: *\nDisallow: /x")).Decide("a", "/x"), nil)},
			`client: not sent for "ExampleBot": disallowed by line 2 of robots.txt: Disallow: /x (user-agent: *)`},
		{&client.DisallowedError{URL: u, Answer: answer(rule, nil)},
			`client: not sent for "ExampleBot": disallowed by line 7 of robots.txt: Disallow: /x%0A%1B[31m` + strings.Repeat("y", 248) + `… (user-agent: b%E2%80%AEot%9B)`},
		{&client.DisallowedError{URL: u, Answer: answer(unreachable, errors.New("no route to host"))},
			`client: not sent for "ExampleBot": disallowed: robots.txt is unreachable: no route to host`},
		{&client.DisallowedError{URL: u, Answer: answer(unreachable, nil)}, `client: not sent for "ExampleBot": disallowed: robots.txt is unreachable`},
		{&client.DisallowedError{}, `client: not sent for "": disallowed`}, // the zero value prints, too
	} {
		if text := row.err.Error(); text != row.want {
			t.Errorf("got  %q\nwant %q", text, row.want)
		}
	}
	if _, ok := reflect.TypeFor[*client.DisallowedError]().MethodByName("Unwrap"); ok {
		t.Error("DisallowedError unwraps: a time-out of robots.txt would look like the caller's deadline")
	}
}

// Without robots, Decide still says what is wrong with the Transport, and for whom it answers.
func TestDecideWithoutRobots(t *testing.T) {
	u := &url.URL{Scheme: "http", Host: "a.example", Path: "/page"}
	ctx := client.WithoutRobots(t.Context())
	if a, err := (&client.Transport{Token: "ExampleBot"}).Decide(ctx, u); err != nil || !a.Allowed || a.Token != "ExampleBot" {
		t.Errorf("got %+v, %v, want it allowed for ExampleBot", a, err)
	}
	if a, err := (&client.Transport{Token: "Example Bot"}).Decide(ctx, u); err == nil {
		t.Errorf("a wrong Token: got %+v, want an error", a)
	}
}

// A time-out says that it is one, as net/http's own do, whatever was waited for.
func TestTheEndOfAWaitIsATimeout(t *testing.T) {
	never := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	for name, rt := range map[string]*client.Transport{
		"robots.txt":        {Base: never},
		"robots.txt, paced": {Base: never, Pacer: new(client.Pacer)},
		"a store of turns":  {Base: pagesOf(ok), Pacer: &client.Pacer{Turns: hangs{}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.example/", nil)
			_, err := (&http.Client{Transport: rt}).Do(req)
			failure, ok := errors.AsType[*url.Error](err)
			if !ok || !failure.Timeout() || !os.IsTimeout(err) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waiting for") {
				t.Errorf("%s: got %v, want a time-out that says what was waited for", name, err)
			}
			cancel()
			rt.Close()
		})
	}
}

// hangs is a turns.Store that never answers.
type hangs struct{}

func (hangs) Reserve(ctx context.Context, _ string, _, _, _ time.Duration) (time.Duration, bool, error) {
	<-ctx.Done()
	return 0, false, ctx.Err()
}

func (hangs) Pause(ctx context.Context, _ string, _ time.Duration) (time.Duration, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}
