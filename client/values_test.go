package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
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
		{&client.UseError{URL: u, Answer: unwanted}, []string{"client: not sent", "train-ai"}},
		{&client.LateError{Origin: o, Paused: true}, []string{"client: not sent", "hhh", "pauses"}},
		{&client.DelayError{Origin: o, Delay: time.Hour}, []string{"client: not sent", "1h0m0s"}},
		{client.DecidedInfo{URL: u, Target: long, Answer: refused}, []string{"disallowed by line 2", "a.example"}},
		{client.DecidedInfo{URL: u, Err: broke}, []string{"it broke", "a.example"}},
		{client.DecidedInfo{}, []string{"no URL"}},
		{client.FetchedInfo{Origin: o, Err: broke}, []string{"it broke", "hhh"}},
		{client.FetchedInfo{Origin: o, Result: file}, []string{"rules", "hhh"}},
		{&client.FetchedInfo{}, []string{"robots.txt"}},
		{client.WaitedInfo{URL: u, Err: broke, Took: time.Second}, []string{"it broke", "1s", "a.example"}},
		{client.WaitedInfo{URL: u, Took: time.Second}, []string{"waited 1s", "a.example"}},
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
				t.Errorf("%T by %s: %d bytes: %.300q", row.value, how, len(text), text)
			}
		}
	}
}

// All errors but those of a context and of Base are ErrNotSent, from each method.
func TestEveryErrorOfOursIsErrNotSent(t *testing.T) {
	vault := errors.New("vault away")
	closed := &client.Transport{}
	closed.Close()
	for name, row := range map[string]struct {
		gate *client.Transport
		url  string
		ctx  func(context.Context) context.Context
		sent bool // by RoundTrip alone
	}{
		"disallowed":        {&client.Transport{Base: siteOf("User-agent: *\nDisallow: /")}, "http://a.example/x", nil, false},
		"a typo in Uses":    {&client.Transport{Base: siteOf(""), Uses: []string{"train"}}, "http://a.example/x", nil, false},
		"WithUses":          {&client.Transport{Base: siteOf("")}, "http://a.example/x", func(ctx context.Context) context.Context { return client.WithUses(ctx, "x") }, false},
		"a wrong Token":     {&client.Transport{Base: siteOf(""), Token: "a b"}, "http://a.example/x", nil, false},
		"WithToken":         {&client.Transport{Base: siteOf("")}, "http://a.example/x", func(ctx context.Context) context.Context { return client.WithToken(ctx, "a/1") }, false},
		"no origin":         {&client.Transport{Base: siteOf("")}, "http://127.1/x", nil, false},
		"no host":           {&client.Transport{Base: siteOf("")}, "http:///x", nil, false},
		"a long target":     {&client.Transport{Base: siteOf("")}, "http://a.example/" + strings.Repeat("x", 17<<10), nil, false},
		"a dot segment":     {&client.Transport{Base: siteOf("")}, "http://a.example/%2e%2e/x", nil, false},
		"ftp":               {&client.Transport{Base: siteOf("")}, "ftp://a.example/x?y", nil, false},
		"a bad UserAgent":   {&client.Transport{Base: siteOf(""), UserAgent: "a\nb"}, "http://a.example/x", nil, false},
		"two dialects":      {&client.Transport{Base: siteOf(""), Dialect: policy.Google, Fetcher: &fetch.Fetcher{Dialect: policy.Bing}}, "http://a.example/x", nil, false},
		"Sign":              {&client.Transport{Base: siteOf(""), Sign: func(*http.Request) error { return vault }}, "http://a.example/x", nil, false},
		"closed":            {closed, "http://a.example/x", nil, false},
		"no scheme of ours": {&client.Transport{Base: siteOf("")}, "ws://a.example/x", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if row.ctx != nil {
				ctx = row.ctx(ctx)
			}
			body := &closeCount{Reader: strings.NewReader("x")}
			_, err := row.gate.RoundTrip((&http.Request{URL: parse(row.url), Body: body}).WithContext(ctx))
			if row.sent != (err == nil) || err != nil && (!errors.Is(err, client.ErrNotSent) || body.closed != 1) {
				t.Errorf("RoundTrip: %v; the body was closed %d times", err, body.closed)
			}
			if _, err := row.gate.Decide(ctx, parse(row.url)); err != nil && !errors.Is(err, client.ErrNotSent) || err == nil && name != "disallowed" {
				t.Errorf("Decide: %v", err)
			}
			if _, err := row.gate.Lookup(ctx, parse(row.url)); err != nil && !errors.Is(err, client.ErrNotSent) {
				t.Errorf("Lookup: %v", err)
			}
			if name == "closed" {
				return
			}
			if _, err := row.gate.Turn(ctx, parse(row.url)); !errors.Is(err, client.ErrNotSent) { // without a Pacer, too
				t.Errorf("Turn: %v", err)
			}
		})
	}
}

// The errors of Base and of the context are as they are.
func TestErrorsOfOthersAreTheirs(t *testing.T) {
	reset := errors.New("connection reset")
	rt := &client.Transport{Base: pagesOf(func(*http.Request) (*http.Response, error) { return nil, reset })}
	if _, err := rt.RoundTrip(&http.Request{URL: parse("http://a.example/")}); err != reset {
		t.Errorf("got %v, want Base's own error", err)
	}
	gone := errors.New("the caller went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for how, err := range map[string]error{
		"RoundTrip": func() error {
			_, err := rt.RoundTrip((&http.Request{URL: parse("http://b.example/")}).WithContext(ctx))
			return err
		}(),
		"Decide": func() error { _, err := rt.Decide(ctx, parse("http://c.example/")); return err }(),
		"Lookup": func() error { _, err := rt.Lookup(ctx, parse("http://d.example/")); return err }(),
	} {
		if err != gone {
			t.Errorf("%s: got %v, want the context's cause", how, err)
		}
	}
}
