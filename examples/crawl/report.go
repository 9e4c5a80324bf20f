package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/examples/internal/site"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// report prints what happens, in lines of at most 80 columns, and counts it.
type report struct {
	web     *site.Web
	started time.Time

	mu       sync.Mutex // guards what follows
	out, bar io.Writer
	reads    map[fetch.Origin]*fetch.Result // the last robots.txt of each site
	pages    int
	failures int
	reasons  map[policy.Reason]int // of refusals
}

func newReport(out, bar io.Writer, web *site.Web) *report {
	return &report{
		web: web, started: time.Now(), out: out, bar: bar, reads: map[fetch.Origin]*fetch.Result{},
		reasons: map[policy.Reason]int{},
	}
}

// fetched is told of each robots.txt that was read.
func (r *report) fetched(_ context.Context, f client.FetchedInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.Result == nil {
		r.print(f.Origin.RobotsURL(), "given up: "+f.Err.Error())
		return
	}
	r.reads[f.Origin] = f.Result
	what := r.asked(f.Origin)
	for _, to := range f.Result.Redirects {
		if u, err := url.Parse(to); err == nil {
			what += ", moved to " + u.Host
		}
	}
	r.print(f.Origin.RobotsURL(), what)
}

// asked says what a site answered for its robots.txt, and how often it was asked.
func (r *report) asked(o fetch.Origin) string {
	answer := fmt.Sprint(r.reads[o].StatusCode)
	if n := r.web.Robots(o.HostField()); n > 1 {
		answer += fmt.Sprintf(", asked %d times", n)
	}
	return answer
}

// sent is told of each page. It shows how long after the one before, for robots.txt or a page, its site saw the request.
func (r *report) sent(u *url.URL, status int, why client.Answer, noIndex bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages++
	o, _ := fetch.OriginOf(u) // a URL that was decided on has one
	apart := r.web.Apart(o.HostField(), u.Path)
	what := fmt.Sprintf("%d, %.2f s apart", status, apart.Seconds())
	if noIndex {
		what += ", noindex"
	}
	r.print(u, what, why.Decision.String())
}

func (r *report) refused(u *url.URL, why client.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons[why.Reason]++
	text := why.Decision.String()
	if o, err := fetch.OriginOf(u); err == nil && why.Reason == policy.ReasonUnreachable && r.reads[o] != nil {
		again := time.Until(why.Until).Round(time.Second)
		text += fmt.Sprintf(" (%s); again in %v", r.asked(o), again)
	}
	r.print(u, "refused", text)
}

func (r *report) failed(u *url.URL, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	r.print(u, "failed", err.Error())
}

// print is called with mu held.
func (r *report) print(u *url.URL, what string, why ...string) {
	page := u.Scheme + "://" + u.Host + u.RequestURI() // u.String would escape an internationalised host
	fmt.Fprint(r.bar, "\r\x1b[K")
	fmt.Fprintf(r.out, "%-39s  %s\n", page, what)
	for _, line := range why {
		fmt.Fprintf(r.out, "    %s\n", line)
	}
}

func (r *report) progress(left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.bar, "\r\x1b[K%d sent, %d refused, %d failed, %d to go", r.pages, r.refusals(), r.failures, left)
}

func (r *report) refusals() (n int) {
	for _, of := range r.reasons {
		n += of
	}
	return n
}

// totals prints what the crawl came to, and what the sites themselves saw of it.
func (r *report) totals() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.bar, "\r\x1b[K")
	counts, requests := r.web.Counts(), 0
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "site\tpages\trobots\twhat it shows")
	for _, n := range counts {
		requests += n.Robots
		fmt.Fprintf(w, "%s\t%5d\t%6d\t%s\n", n.Host, n.Pages, n.Robots, n.Shows)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.out, `
%d sites in %.1f s: %d pages sent, %d refused, %d failed
refused: %d by a rule, %d because robots.txt is unreachable
robots.txt: read for %d sites, with %d requests

Requests that the sites saw, for pages and for robots.txt:

%s`, len(counts), time.Since(r.started).Seconds(), r.pages, r.refusals(), r.failures,
		r.reasons[policy.ReasonRule], r.reasons[policy.ReasonUnreachable],
		len(r.reads), requests, table.String())
	return err
}
