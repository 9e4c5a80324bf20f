package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// getter is "robots fetch".
type getter struct {
	*app
	network
	raw bool
}

// fetch makes the subcommand. It always asks the server: it shows what a server does, and
// check shows what a cache holds.
func (a *app) fetch() *cobra.Command {
	g := &getter{app: a}
	cmd := &cobra.Command{
		Use:   "fetch URL",
		Short: "Fetch the robots.txt of a site and show how it came",
		Long: `Fetch asks a site for its robots.txt as a crawler does. It shows the status, the
redirects, the header fields that concern caching, how long the answer holds and
why, and the file. URL is any URL of the site.

` + urlHelp + `

The exit status is 2 if robots.txt is unreachable (no answer, 5xx, a broken one),
which disallows everything; a 4xx is an answer.`,
		Example: `  robots fetch example.com
  robots fetch http://localhost:8080 --raw > robots.txt
  robots fetch example.com --json`,
		Args:              one("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(g.run),
	}
	dialectVar(cmd, &g.dialect)
	cmd.Flags().BoolVar(&g.raw, "raw", false, "write the file only, byte for byte")
	g.register(cmd)
	return cmd
}

// fetched is what --json writes. Every field is always there.
type fetched struct {
	Dialect  string              `json:"dialect"`
	Robots   *answer             `json:"robots"`
	Header   map[string][]string `json:"header"`
	Groups   int                 `json:"groups"`
	Rules    int                 `json:"rules"`
	Sitemaps []string            `json:"sitemaps"`
	Bytes    int                 `json:"bytes"`
	Body     *string             `json:"body"`     // null: no file, or not UTF-8
	BodyB64  []byte              `json:"body_b64"` // instead, if the file is not UTF-8
}

func (g *getter) run(ctx context.Context, args []string) error {
	if g.json && g.raw {
		return usagef("--raw writes the file only: leave out --json")
	}
	_, o, err := parseSiteAs(g.dialect.Dialect, 0, args[0])
	if err != nil {
		return err
	}
	gate, err := g.open(g.err)
	if err != nil {
		return err
	}
	defer gate.end(ctx, g.app)
	ask := newAsked(o)
	go ask.run(ctx, gate.fetch)
	g.await(ask)
	if ask.err != nil {
		return ask.err
	}
	return g.show(ask.result, newFetched(ask.result, gate.answer(o, ask.result)))
}

// show writes the answer in one of three forms.
func (g *getter) show(res *fetch.Result, f *fetched) error {
	var out output
	if res.Err != nil { // a 404 has none: that there are no rules has been found out
		out.worsen(exitUnknown)
	}
	switch {
	case g.json:
		out.json(f)
	case g.raw:
		out.warn(f.noFile())
		out.Write(res.Body)
	default:
		g.print(&out, res, f)
	}
	return g.emit(&out)
}

// noFile says why there is nothing to write for --raw.
func (f *fetched) noFile() error {
	a := f.Robots
	switch {
	case a.Error != nil:
		return fmt.Errorf("%s is unreachable: %s", a.URL, *a.Error)
	case a.Outcome != outcomeRules:
		return fmt.Errorf("%s is %s%s", a.URL, a.Outcome, a.why())
	case f.Bytes == 0:
		return errors.New(a.URL + " is empty")
	}
	return nil
}

// newFetched keeps the fields of the header that matter here, and no others: an answer
// may carry 64 KiB of them.
func newFetched(res *fetch.Result, a *answer) *fetched {
	f := &fetched{
		Dialect:  dialectName(res.Dialect),
		Robots:   a,
		Header:   map[string][]string{},
		Sitemaps: append([]string{}, slices.Collect(res.Policy.Sitemaps())...),
		Bytes:    len(res.Body),
	}
	f.count(res)
	switch text := string(res.Body); {
	case !utf8.ValidString(text):
		f.BodyB64 = res.Body
	case res.Body != nil:
		f.Body = &text
	}
	for _, name := range cachingFields {
		if values := res.Header[name]; len(values) > 0 {
			f.Header[name] = values
		}
	}
	return f
}

// count counts the groups and rules of the file, as it writes them: two groups with one
// name are two.
func (f *fetched) count(res *fetch.Result) {
	if f.Robots.Outcome != outcomeRules {
		return
	}
	listing := false // user-agent lines (RFC 9309 §2.1)
	for l := range lint.Lines(res.Dialect, res.Body) {
		switch l.Kind {
		case lint.LineUserAgent:
			if !listing {
				f.Groups++
			}
			listing = true
		case lint.LineAllow, lint.LineDisallow:
			f.Rules++
			listing = false
		}
	}
}

// cachingFields are the header fields that decide how long an answer holds and how it
// is asked for again (RFC 9111, RFC 9110 §8.8, §10.2.3), and what it is.
var cachingFields = []string{
	"Content-Type", "Cache-Control", "Expires", "Age", "Date", "Vary", "Etag", "Last-Modified", "Retry-After",
}

// print writes the answer for people, and the file below an empty line. What came from
// the server is made visible, line by line: a hostile file could otherwise steer the
// terminal. --raw is for programs.
func (g *getter) print(out *output, res *fetch.Result, f *fetched) {
	a := f.Robots
	fmt.Fprintf(out, "%s\n", visible(a.URL))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "  %-14s %s\n", strings.ToLower(name), visible(value))
		}
	}
	if a.Status != nil {
		field("status", fmt.Sprintf("%d %s", *a.Status, http.StatusText(*a.Status)))
	}
	field("effect", a.Outcome)
	field("wall", a.Wall)
	if a.Error != nil {
		field("error", *a.Error)
	}
	for _, r := range a.Redirects {
		field("via", r)
	}
	for _, name := range cachingFields {
		for _, value := range f.Header[name] {
			field(name, value)
		}
	}
	field("lifetime", explainLifetime(res, a))
	if f.Bytes == 0 {
		return
	}
	field("holds", fmt.Sprintf("%s, %s, %s in %s", plural(f.Groups, "group"), plural(f.Rules, "rule"),
		plural(len(f.Sitemaps), "sitemap"), plural(f.Bytes, "byte")))
	out.WriteByte('\n')
	printFile(out, string(res.Body))
}

// printFile writes the lines of a file. A tab is the one control character that is
// harmless.
func printFile(out *output, text string) {
	for l := range strings.Lines(text) {
		for i, part := range strings.Split(strings.TrimRight(l, "\r\n"), "\t") {
			if i > 0 {
				out.WriteByte('\t')
			}
			out.WriteString(visible(part))
		}
		out.WriteByte('\n')
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// explainLifetime says how long an answer holds and how that came about: which field
// states it, what Age takes from it, and which bound of a cache applies.
func explainLifetime(res *fetch.Result, a *answer) string {
	if res.Err != nil {
		text := "none: unreachable"
		if a.Retry != nil {
			text += fmt.Sprintf("; ask again after %s", time.Duration(*a.Retry)*time.Second)
			if seconds(res.RetryAfter) == *a.Retry {
				text += ", stated by Retry-After"
			}
		}
		return text
	}
	lifetime, _ := cache.FreshnessLifetime(res)
	text := lifetime.String() + ", " + map[string]string{
		fromStatus:       "as such a status passes",
		fromRedirect:     "stated by a redirect on the way",
		fromCacheControl: "stated by Cache-Control",
		fromExpires:      "stated by Expires",
		fromVary:         "for the answer varies by more than the request says",
		fromDefault:      "as the answer states none",
	}[sourceOf(res)]
	if unaged, _ := cache.FreshnessLifetime(without(res, "Age")); unaged > lifetime {
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
