package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
)

// getter is "robots fetch".
type getter struct {
	*app
	network
	raw bool
}

// fetch makes the subcommand. It always asks the server: it is there to see what a
// server does, and what a cache holds is shown by check.
func (a *app) fetch() *cobra.Command {
	g := &getter{app: a}
	cmd := &cobra.Command{
		Use:   "fetch ORIGIN",
		Short: "Fetch the robots.txt of a site and show how it came",
		Long: `Fetch asks a site for its robots.txt as a crawler does, and shows the status, the
redirects, the header fields that concern caching, how long the answer holds and
why, and the file. ORIGIN is a URL of the site; one without a scheme means https.

The exit status is 2 if robots.txt is unreachable (no answer, 5xx, a broken one),
which disallows everything; a 4xx is an answer.`,
		Example: `  robots fetch example.com
  robots fetch http://localhost:8080 --raw > robots.txt
  robots fetch example.com --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(g.run),
	}
	dialectVar(cmd, &g.dialect)
	cmd.Flags().BoolVar(&g.raw, "raw", false, "write the file only, octet for octet")
	g.register(cmd)
	return cmd
}

// fetched is what --json writes.
type fetched struct {
	*answer
	Effect  string              `json:"effect"` // rules, unavailable, unreachable
	Header  map[string][]string `json:"header,omitempty"`
	Because string              `json:"lifetime"` // and how it came about
	Bytes   int                 `json:"bytes"`
	Body    string              `json:"body,omitempty"`
	BodyB64 []byte              `json:"body_b64,omitempty"` // instead, if the file is not UTF-8
}

func (g *getter) run(ctx context.Context, args []string) error {
	if g.json && g.raw {
		return usagef("--raw writes the file only: leave out --json")
	}
	u, err := parseURL(args[0])
	if err != nil {
		return err
	}
	o, err := fetch.OriginOf(u)
	if err != nil {
		return usageError{err}
	}
	gate, err := g.open(g.err)
	if err != nil {
		return err
	}
	defer gate.end(ctx, g.app)
	res, err := gate.Fetcher.Fetch(ctx, o, nil)
	if err != nil {
		return err
	}
	var out output
	if res.Err != nil { // a 404 has none: that there are no rules has been found out
		out.worsen(exitUnknown)
	}
	switch f := newFetched(o, res); {
	case g.json:
		out.json(f)
	case g.raw:
		out.Write(res.Body)
	default:
		g.print(&out, f)
	}
	return g.emit(&out)
}

// newFetched keeps the fields of the header that matter here, and no others: an answer
// may carry 64 KiB of them.
func newFetched(o fetch.Origin, res *fetch.Result) *fetched {
	f := &fetched{
		answer:  newAnswer(o, res),
		Header:  map[string][]string{},
		Effect:  effectOf(res),
		Because: explainLifetime(res),
		Bytes:   len(res.Body),
		Body:    string(res.Body),
	}
	if !utf8.Valid(res.Body) {
		f.Body, f.BodyB64 = "", res.Body
	}
	for _, name := range cachingFields {
		if values := res.Header[name]; len(values) > 0 {
			f.Header[name] = values
		}
	}
	return f
}

// cachingFields are the header fields that decide how long an answer holds and how it
// is asked for again (RFC 9111, RFC 9110 §8.8, §10.2.3), and what it is.
var cachingFields = []string{"Content-Type", "Cache-Control", "Expires", "Age", "Date", "Vary", "Etag", "Last-Modified", "Retry-After"}

// print writes the answer for people, and the file below an empty line. What came from
// the server is made visible, line by line: the file may well be the work of somebody
// who wants the terminal to show something else. --raw is for programs.
func (g *getter) print(out *output, f *fetched) {
	fmt.Fprintf(out, "%s\n", visible(f.URL))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "  %-14s %s\n", strings.ToLower(name), visible(value))
		}
	}
	if f.Status != 0 {
		field("status", fmt.Sprintf("%d %s", f.Status, http.StatusText(f.Status)))
	}
	field("effect", f.Effect)
	field("error", f.Error)
	for _, r := range f.Redirects {
		field("via", r)
	}
	for _, name := range cachingFields {
		for _, value := range f.Header[name] {
			field(name, value)
		}
	}
	field("lifetime", f.Because)
	if f.Bytes == 0 {
		return
	}
	field("bytes", fmt.Sprint(f.Bytes))
	out.WriteByte('\n')
	for l := range strings.Lines(f.Body + string(f.BodyB64)) {
		l = strings.TrimRight(l, "\r\n")
		for i, part := range strings.Split(l, "\t") {
			if i > 0 {
				out.WriteByte('\t') // the one control character that is harmless
			}
			out.WriteString(visible(part))
		}
		out.WriteByte('\n')
	}
}

// effectOf is the access result of RFC 9309 §2.3.1.
func effectOf(res *fetch.Result) string {
	if r := res.Policy.Reason(); r != 0 {
		return reasonName(r)
	}
	return "rules"
}

// The bounds of a cache.Cache whose fields are zero.
const (
	minTTL = time.Minute
	maxTTL = 24 * time.Hour
)

// explainLifetime says how long an answer holds and how that came about: which field
// states it, what Age takes from it, and which bound of a cache applies. They are tried
// in the order in which RFC 9111 §4.2.1 lets them count.
func explainLifetime(res *fetch.Result) string {
	if res.Err != nil {
		return "none: unreachable, so it will be asked for again soon"
	}
	lifetime := lifetimeOf(res)
	text := lifetime.String()
	direct, gone := *res, *res
	direct.RedirectHeaders, gone.StatusCode = nil, http.StatusNotFound
	switch {
	case lifetimeOf(&gone) != lifetime && res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden:
		text += ", as such a status passes"
	case lifetimeOf(&direct) > lifetime:
		text += ", stated by a redirect on the way"
	case states(res, "Cache-Control"):
		text += ", stated by Cache-Control"
	case states(res, "Expires", "Date"):
		text += ", stated by Expires"
	case states(res, "Vary"):
		text += ", for the answer varies by more than the request says"
	default:
		text += ", as the answer states none"
	}
	if lifetimeOf(without(res, "Age")) > lifetime {
		text += ", less Age: " + strings.Join(res.Header["Age"], ", ")
	}
	switch {
	case lifetime < minTTL:
		text += fmt.Sprintf("; caches keep it for %s at least", minTTL)
	case lifetime > maxTTL:
		text += fmt.Sprintf("; caches keep it for %s at most (RFC 9309 section 2.4)", maxTTL)
	}
	return text
}

// states reports whether these fields of the header state a lifetime.
func states(res *fetch.Result, names ...string) bool {
	r := &fetch.Result{Time: res.Time, Header: http.Header{}, StatusCode: http.StatusOK}
	for _, name := range names {
		r.Header[name] = res.Header[name]
	}
	_, stated := cache.FreshnessLifetime(r)
	return stated
}

// without is res with one field of its header missing.
func without(res *fetch.Result, name string) *fetch.Result {
	r := *res
	r.Header = res.Header.Clone()
	r.Header.Del(name)
	return &r
}
