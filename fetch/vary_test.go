package fetch_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
)

// A 304 by date would give us the file that was written for another User-Agent.
func TestValidatorsAreForTheUserAgentTheyCameWith(t *testing.T) {
	var vary string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if vary != "" {
			w.Header().Set("Vary", vary)
		}
		w.Header().Set("Last-Modified", "Thu, 01 Jan 1998 00:00:00 GMT")
		if r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, "User-agent: *\nDisallow: /"+r.UserAgent()+"\n")
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before, after string // the Vary with the file, and with the 304
		second        string // who validates it
		want          string // whose file that gets
	}{
		{"User-Agent", "User-Agent", "a", "a"},
		{"User-Agent", "User-Agent", "b", "b"},
		{"user-agent , Accept", "", "b", "b"},
		{"", "", "b", "a"},           // it is one file
		{"", "User-Agent", "b", "b"}, // it was
		{"", "User-Agent", "a", "a"},
	} {
		vary = c.before
		first, err := (&fetch.Fetcher{UserAgent: "a"}).Fetch(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if (first.UserAgent == "a") != (c.before != "") {
			t.Errorf("with Vary %q the answer is for %q", c.before, first.UserAgent)
		}
		vary = c.after
		f := &fetch.Fetcher{UserAgent: c.second}
		then, err := f.Fetch(t.Context(), o, first)
		if err != nil {
			t.Fatal(err)
		}
		if then.Policy.Decide("x", "/"+c.want).Allowed {
			t.Errorf("%+v: the file does not forbid /%s: %q", c, c.want, then.Body)
		}
		if c.after != "" && then.UserAgent != c.second {
			t.Errorf("%+v: the answer is for %q", c, then.UserAgent)
		}
		self, err := f.Fetch(t.Context(), fetch.Origin{}, nil)
		if err != nil || self.UserAgent != c.second || self.Err == nil {
			t.Errorf("the zero Origin: for %q, %v, %v", self.UserAgent, self.Err, err)
		}
	}
}
