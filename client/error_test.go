package client_test

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/policy"
)

func TestErrorTextIsSafeInALogLine(t *testing.T) {
	base := &web{robots: "User-agent: *\nDisallow: /private"}
	rt := &client.Transport{Base: base}
	for _, u := range []*url.URL{
		mustParse(t, "http://a.example/private?q=\u009b2J\u202etxt.exe"), // a Location field can hold that
		mustParse(t, "http://a.example/private?\xff"),
		mustParse(t, "http://a.example/private?"+strings.Repeat("é", 300)),
	} {
		_, err := rt.RoundTrip(&http.Request{URL: u})
		var refusal *client.DisallowedError
		if !errors.As(err, &refusal) {
			t.Fatalf("%v", err)
		}
		text := refusal.Error()
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("unprintable or not UTF-8: %+q", text)
		}
	}
}

func TestDisallowedErrorNamesWhatACallerNeeds(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "a.example", Path: "/x", User: url.UserPassword("me", "secret")}
	rule := policy.Decision{Reason: policy.ReasonRule, Rule: policy.Rule{Pattern: "/x\n\x1b[31m" + strings.Repeat("y", 5000), Line: 7}}
	unreachable := policy.Decision{Reason: policy.ReasonUnreachable}
	for _, row := range []struct {
		err  client.DisallowedError
		want []string
	}{
		{client.DisallowedError{URL: u, Answer: client.Answer{Token: "ExampleBot", Decision: rule}}, []string{"https://me:xxxxx@a.example/x", "ExampleBot", "line 7", "Disallow", `/x\n`}},
		{client.DisallowedError{URL: u, Answer: client.Answer{Token: "ExampleBot", Decision: unreachable, Err: errors.New("no route to host")}}, []string{"unreachable", "no route to host"}},
		{client.DisallowedError{}, nil}, // the zero value prints, too
	} {
		text := row.err.Error()
		for _, part := range row.want {
			if !strings.Contains(text, part) {
				t.Errorf("%q does not name %q", text, part)
			}
		}
		if strings.ContainsAny(text, "\n\x1b") || strings.Contains(text, "secret") || len(text) > 1024 {
			t.Errorf("%q is not safe to log", text)
		}
	}
	if _, ok := reflect.TypeFor[*client.DisallowedError]().MethodByName("Unwrap"); ok {
		t.Error("DisallowedError unwraps: a time-out of robots.txt would look like the caller's deadline")
	}
}
