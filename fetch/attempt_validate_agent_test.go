package fetch_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// A Vary that is too long to be kept still says whose the file is when a 304 renews it.
func TestA304LeavesTheFileToWhomItIsFor(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"`+r.UserAgent()+`"`)
		w.Header().Set("Cache-Control", "max-age=60")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Vary", "User-Agent, "+strings.Repeat("X-Padding, ", 1000)+"Accept")
		io.WriteString(w, "User-agent: *\nDisallow: /"+r.UserAgent()+"\n")
	}))
	defer s.Close()
	u, _ := url.Parse(s.URL)
	o, _ := fetch.OriginOf(u)
	c := &cache.Cache{MinTTL: -1, MaxTTL: 10 * time.Millisecond, NoRefresh: true}
	a, b := &fetch.Fetcher{UserAgent: "a"}, &fetch.Fetcher{UserAgent: "b"}
	for range 3 {
		r, err := c.Get(context.Background(), o, &cache.Source{Load: a.Fetch, UserAgent: a.UserAgent})
		if err != nil || r.Policy.Decide("x", "/a").Allowed {
			t.Fatal("a: ", err, r)
		}
		r, err = c.Get(context.Background(), o, &cache.Source{Load: b.Fetch, UserAgent: b.UserAgent})
		if err != nil || r.Policy.Decide("x", "/b").Allowed {
			t.Fatal("b has a's file")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
